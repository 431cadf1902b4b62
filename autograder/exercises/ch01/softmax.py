"""Softmax along any axis, for scores of any size."""

import torch

from autograder.exercise import BF16, F16, F32, exercise


@exercise(
    "ch01",
    points={"values": 1, "any axis": 1, "stability": 1, "half precision": 1, "inputs unchanged": 1},
    returns="weights",
    see="01-soft-retrieval#the-softmax",
)
def softmax(scores, dim):
    """e^s over its sum along dim. The largest score is taken off first: that cancels, and no exponential overflows."""
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


softmax.simpler("dim is the last axis", dim=lambda dim: -1)


@softmax.case("values")
def rows_of_a_matrix(draw):
    return {"scores": draw.normal(*draw.sizes("N S")), "dim": -1}


@softmax.case("values")
def square(draw):  # what has lost an axis still fits, on another one
    (N,) = draw.sizes("N")
    return {"scores": draw.normal(N, N), "dim": -1}


@softmax.case("values")
def a_matrix_of_one_row(draw):
    return {"scores": draw.normal(1, *draw.sizes("S")), "dim": -1}


@softmax.case("values")
def a_vector(draw):
    return {"scores": draw.normal(*draw.sizes("S")), "dim": 0}


@softmax.case("any axis")
def the_middle_of_three(draw):
    return {"scores": draw.normal(*draw.sizes("B S D")), "dim": 1}


@softmax.case("any axis")
def the_last_but_one_of_three(draw):
    return {"scores": draw.normal(*draw.sizes("B S D")), "dim": -2}


@softmax.case("any axis")
def the_last_but_two_of_four(draw):  # neither axis 3 nor axis 2
    return {"scores": draw.normal(*draw.sizes("B H N S")), "dim": -3}


@softmax.case("any axis")
def the_first(draw):
    return {"scores": draw.normal(*draw.sizes("N D Dv")), "dim": 0}


@softmax.case("any axis")
def cube(draw):  # what has lost an axis fits here too
    (N,) = draw.sizes("N")
    return {"scores": draw.normal(N, N, N), "dim": 1}


@softmax.case("stability")
def all_at_ten_thousand(draw):
    return {"scores": 1e4 + draw.normal(*draw.sizes("N S"), scale=2.0), "dim": -1}


@softmax.case("stability")
def all_at_minus_ten_thousand(draw):  # the largest, not the largest without its sign
    return {"scores": -1e4 + draw.normal(*draw.sizes("N S"), scale=2.0), "dim": -1}


@softmax.case("stability")
def rows_at_ten_thousand_of_either_sign(draw):  # one maximum for all leaves the lower rows without a sum
    N, S = draw.sizes("N S")
    scores = torch.tensor([1e4, -1e4, 0.0])[torch.arange(N) % 3, None] + draw.normal(N, S, scale=2.0)
    scores[:, 0] -= 200  # no row can take its smallest score off; its mean it can
    return {"scores": scores, "dim": -1}


@softmax.case("stability")
def ten_thousand_of_either_sign_in_a_row(draw):  # the mean lies far below the largest; the largest nearly tie
    S, D = draw.sizes("S D")
    level = torch.tensor([1e4, -1e4, 1e4])[torch.arange(S) % 3]
    return {"scores": level[:, None] + draw.normal(S, D, scale=2.0), "dim": 0}


@softmax.case("stability")
def one_at_ten_thousand_in_a_row(draw):  # only the largest can be taken off: neither the middle nor any fixed place
    N, S = draw.sizes("N S")
    place = draw.integers(0, S - 1, N)
    place[0] = S - 1  # one row in which the last is the largest
    return {"scores": draw.normal(N, S).index_put((torch.arange(N), place), 1e4 + draw.normal(N)), "dim": -1}


@softmax.case("half precision", dtypes=(F16, BF16, F32), same_dtype=True)
def in_and_out(draw):
    return {"scores": draw.normal(*draw.sizes("B S D")), "dim": 1}


@softmax.case("inputs unchanged", unchanged=True)
def nothing_written_to(draw):
    return {"scores": draw.normal(*draw.sizes("N S")), "dim": -1}


@softmax.case("inputs unchanged", unchanged=True)
def nor_along_the_first_axis(draw):  # which is where others move dim; of a vector, for whom the axis is not the point
    return {"scores": draw.normal(*draw.sizes("S")), "dim": 0}


@softmax.case("inputs unchanged", unchanged=True)
def nor_where_they_are_large(draw):  # and e^86 is still a float32
    return {"scores": 82 + 4 * draw.uniform(*draw.sizes("N S")), "dim": -1}


@softmax.case("inputs unchanged", dtypes=(F32, F16), unchanged=True)
def nor_to_three_axes_of_halves(draw):
    return {"scores": draw.normal(*draw.sizes("B S D")), "dim": -1}


def normalise(
    scores, dim, *, over="dim", off="maximum", keep_maximum=True, keep_sum=True, exponentials=True, divide=True,
    in_place=False, returns=None,
):  # fmt: skip
    """One implementation with a knob for each slip."""
    axis = {"dim": dim, "last axis": -1, "everything": tuple(range(scores.ndim))}[over]
    top = {
        "maximum": lambda: scores.amax(axis, keepdim=keep_maximum),
        "maximum of all": lambda: scores.amax(),
        "mean": lambda: scores.mean(axis, keepdim=True),
        "nothing": lambda: 0,
    }[off]()
    e = scores
    if exponentials:
        e = (scores.sub_(top) if in_place else scores - top).exp()
    return (e / e.sum(axis, keepdim=keep_sum) if divide else e).to(returns or scores.dtype)


slip = softmax.slips(normalise)
slip("not_normalised", "The exponentials are not divided by their sum: the weights do not sum to 1.", divide=False)
slip(
    "scores_over_their_sum",
    "The scores themselves are divided by their sum. Take e^s first: no weight is negative.",
    exponentials=False,
)
slip(
    "dim_ignored",
    "You always normalise along the last axis. Normalise along the axis that dim names.",
    over="last axis",
)
slip(
    "over_everything", "All weights together sum to 1. Those of each row along dim are to sum to 1.", over="everything"
)
slip(
    "no_maximum",
    "e^s overflows for large scores, and rounds to 0 for low ones. Take the largest along dim off first: it cancels.",
    off="nothing",
)
slip(
    "one_maximum_for_all",
    "The largest of all scores is taken off. In a row far below it every e^s rounds to 0: take off each row's own.",
    off="maximum of all",
)
slip(
    "mean_taken_off",
    "The mean score is taken off, and e^s still overflows for one far above it. Take off the largest.",
    off="mean",
)
slip(
    "sum_loses_its_axis",
    "The sums have lost the axis dim, and are laid along another. Keep it, with size 1.",
    keep_sum=False,
)
slip(
    "maximum_loses_its_axis",
    "The maxima have lost the axis dim, and are laid along another. Keep it, with size 1.",
    keep_maximum=False,
)
slip(
    "scores_changed",
    "You write into the scores, which the caller still needs. Make new tensors: no -=, no method that ends in _.",
    in_place=True,
)
slip(
    "float32_returned", "The weights come in float32 whatever the scores are. Give them the scores' dtype.", returns=F32
)


@softmax.mistake
def scores_returned(scores, dim):
    """The scores come back as they are. Take e^s, and divide by the sum along dim."""
    return scores + 0


@softmax.right
def the_librarys(scores, dim):
    return torch.softmax(scores, dim)


@softmax.right
def by_logsumexp(scores, dim):
    return (scores - scores.logsumexp(dim, keepdim=True)).exp()


@softmax.right
def row_by_row(scores, dim):
    rows = scores.movedim(dim, -1)
    weights = [(row - row.max()).exp() / (row - row.max()).exp().sum() for row in rows.reshape(-1, rows.shape[-1])]
    return torch.stack(weights).view(rows.shape).movedim(-1, dim)


@softmax.right
def from_differences(scores, dim):
    """One over the sum of e^(s_j − s_i): what overflows becomes a weight of 0."""
    rows = scores.movedim(dim, -1)
    return (1 / (rows[..., None, :] - rows[..., :, None]).exp().sum(-1)).movedim(-1, dim)
