"""How much do dot products spread? Measured on samples that are given."""

import torch

from autograder.exercise import exercise


@exercise(
    "ch02",
    points={"values": 2},
    takes="q: M D, k: M D",
    returns="variance",
    see="02-queries-keys-values#why-root-d",
)
def dot_product_variance(q, k):
    """The sample variance of the scores q_m · k_m: squares about their mean, divided by M − 1."""
    scores = [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in zip(q, k, strict=True)]
    mean = sum(scores) / len(scores)
    return sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)


@dot_product_variance.case("values")
def independent_components(draw):
    M, D = draw.sizes("M D")
    return {"q": draw.normal(M, D), "k": draw.normal(M, D)}


@dot_product_variance.case("values")
def components_with_a_mean(draw):  # the mean score is far from 0: squares alone are no variance
    M, D = draw.sizes("M D")
    return {"q": draw.normal(M, D, mean=0.7), "k": draw.normal(M, D, mean=0.7, scale=0.5)}


SCORES = {
    "pairs": lambda q, k: (q * k).sum(-1),
    "all pairs": lambda q, k: (q @ k.mT).flatten(),
    "components": lambda q, k: (q * k).flatten(),
    "columns": lambda q, k: (q * k).sum(0),
}


def spread(q, k, *, of="pairs", power=0.0, divisor="M − 1", about="mean", root=False):
    """One implementation with a knob for each slip."""
    scores = SCORES[of](q, k) / q.shape[-1] ** power
    squares = (scores - scores.mean() if about == "mean" else scores).square()
    variance = squares.sum() / {"M − 1": len(squares) - 1, "M": len(squares), "D − 1": q.shape[-1] - 1, "1": 1}[divisor]
    return variance.sqrt() if root else variance


slip = dot_product_variance.slips(spread)
slip("divided_by_m", "You divide by M. The mean comes from the same samples, so divide by M − 1.", divisor="M")
slip("divided_by_d_less_one", "You divide by D − 1. There are M scores: divide by M − 1.", divisor="D − 1")
slip("not_divided", "The sum of the squares is not divided. Divide it by M − 1.", divisor="1")
slip("standard_deviation", "You take the root: that makes a standard deviation. The variance is without it.", root=True)
slip("mean_not_subtracted", "The mean score is not taken off before the squares.", about="zero")
slip("every_pair", "You take every q with every k. Here q_m goes with k_m: M scores, not M².", of="all pairs")
slip("components", "That is the spread of single products. Add up each row's: that is the score.", of="components")
slip("summed_over_pairs", "You add up over the M pairs. A score adds up over one row, its D components.", of="columns")
slip("scaled_scores", "The scores are divided by √D already. The spread of q·k itself is asked.", power=0.5)


@dot_product_variance.mistake
def of_the_theory(q, k):
    """That is D, the variance in theory for independent components of variance 1. Measure it on the samples."""
    return torch.tensor(float(q.shape[-1]))


@dot_product_variance.right
def by_var(q, k):
    return (q * k).sum(-1).var()


@dot_product_variance.right
def with_einsum_in_double(q, k):
    return torch.einsum("md,md->m", q.double(), k.double()).var(correction=1)


@dot_product_variance.right
def two_moments(q, k):
    scores = torch.linalg.vecdot(q.double(), k.double())
    return (scores.square().mean() - scores.mean() ** 2) * len(scores) / (len(scores) - 1)


@dot_product_variance.right
def diagonal_of_all(q, k):
    return torch.var((q @ k.mT).diagonal())
