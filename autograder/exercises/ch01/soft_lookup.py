"""A dictionary that returns a mixture."""

import torch
import torch.nn.functional as F

from autograder.exercise import exercise


@exercise(
    "ch01",
    points={"values": 2, "temperature": 1, "stability": 1, "gradient": 1},
    takes="query: D, keys: S D, values: S Dv",
    returns="output: Dv, weights: S",
    uses=("ch01/softmax",),
    see="01-soft-retrieval#soft-dictionary",
)
def soft_lookup(query, keys, values, temperature=1.0):
    """softmax(k·q / temperature) over the keys, and the mixture of the values with these weights."""
    scores = torch.stack([(key * query).sum() for key in keys]) / temperature
    e = (scores - scores.max()).exp()
    weights = e / e.sum()
    return (weights[:, None] * values).sum(0), weights


soft_lookup.simpler("the temperature is 1", temperature=lambda t: 1.0)
soft_lookup.simpler("all scores are equal (the query is 0)", query=torch.zeros_like)


def entries(draw):
    """Scores are about 1, so that in the cold, too, more than one key has a share."""
    S, D, Dv = draw.sizes("S D Dv")
    return {"query": draw.normal(D, scale=D**-0.5), "keys": draw.normal(S, D), "values": draw.normal(S, Dv)}


@soft_lookup.case("values")
def every_size_differs(draw):
    return entries(draw)


@soft_lookup.case("values")
def square(draw):  # S = D = Dv: exchanged roles do not show by their shape
    (D,) = draw.sizes("D")
    return {"query": draw.normal(D, scale=D**-0.5), "keys": draw.normal(D, D), "values": draw.normal(D, D)}


@soft_lookup.case("values")
def one_entry(draw):
    inputs = entries(draw)
    return inputs | {name: inputs[name][:1] for name in ("keys", "values")}


@soft_lookup.case("values")
def widths_of_one(draw):
    inputs = entries(draw)
    return {"query": inputs["query"][:1], "keys": inputs["keys"][:, :1], "values": inputs["values"][:, :1]}


@soft_lookup.case("temperature")
def cold(draw):
    return entries(draw) | {"temperature": draw.between(0.3, 0.6)}


@soft_lookup.case("temperature", unchanged=True)
def hot(draw):
    return entries(draw) | {"temperature": draw.between(5.0, 20.0)}


def in_proportion(draw, temperature):
    """The scores are as large as the temperature: a bound on it shows, and so does a hard choice in the cold."""
    inputs = entries(draw)
    return inputs | {"query": temperature * inputs["query"], "temperature": temperature}


@soft_lookup.case("temperature", unchanged=True)
def as_cold_as_scores_are_small(draw):
    return in_proportion(draw, 1e-5)


@soft_lookup.case("temperature")
def as_hot_as_scores_are_large(draw):
    return in_proportion(draw, 1000.0)


@soft_lookup.case("stability")
def scores_to_ten_thousand(draw):  # of either sign; yet most keys nearly tie
    inputs = entries(draw)
    inputs["query"][0], inputs["keys"][:, 0], inputs["keys"][-1, 0] = 100.0, 100.0, -100.0
    return inputs


@soft_lookup.case("stability")
def scores_to_minus_ten_thousand(draw):  # all of them, and the first score is none to take off
    inputs = entries(draw)
    inputs["query"][0], inputs["keys"][:, 0], inputs["keys"][0, 0] = 100.0, -100.0, -102.0
    return inputs


@soft_lookup.case("stability")
def nearly_frozen(draw):  # two keys nearly tie: to the best two, the temperature still matters
    inputs = entries(draw)
    query, keys = inputs["query"], inputs["keys"]
    best = int((keys @ query).argmax())
    keys[best - 1] = keys[best] - draw.between(0.0005, 0.0015) * query / (query @ query)
    return inputs | {"temperature": 0.001}


@soft_lookup.case("gradient", gradient=("query", "keys", "values"))
def of_every_input(draw):
    return entries(draw) | {"temperature": draw.between(1.5, 2.5)}


SCORES = {
    "dot product": lambda query, keys: keys @ query,
    "cosine": lambda query, keys: F.cosine_similarity(keys, query[None], -1),
    "dot product / √D": lambda query, keys: keys @ query / len(query) ** 0.5,
}
HEATED = {"divided": lambda s, t: s / t, "multiplied": lambda s, t: s * t, "not at all": lambda s, t: s}


def look_up(
    query, keys, values, temperature=1.0, *, score="dot product", heat="divided", cool=False, stable=True,
    share="exponential", divide=True, mix="values", mean=False, cut="nowhere", returns="both",
):  # fmt: skip
    """One implementation with a knob for each slip."""
    scores = HEATED[heat](SCORES[score](query, keys), temperature)
    parts = {
        "exponential": lambda: (scores - scores.max() if stable else scores).exp(),
        "score": lambda: scores,
        "all or nothing": lambda: (scores == scores.max()).to(scores.dtype),
    }[share]()
    weights = (parts / parts.sum() if divide else parts) / (temperature if cool else 1)
    weights = weights.detach() if cut in ("weights", "everywhere") else weights
    shares = weights.detach() if cut == "output" else weights
    output = shares @ (values if mix == "values" else keys) / (len(keys) if mean else 1)
    output = output.detach() if cut == "everywhere" else output
    weights = weights.detach() if cut == "returned weights" else weights
    return {"both": (output, weights), "swapped": (weights, output), "weights": weights, "output": output}[returns]


slip = soft_lookup.slips(look_up)
slip(
    "times_temperature",
    "The scores are multiplied by the temperature. Divide them by it: a low one sharpens the weights.",
    heat="multiplied",
)
slip("temperature_ignored", "The temperature changes nothing. Divide the scores by it.", heat="not at all")
slip(
    "weights_over_temperature",
    "The weights are divided by the temperature, and do not sum to 1. Divide the scores, before the softmax.",
    heat="not at all",
    cool=True,
)
slip(
    "cosine", "The scores are cosines, without the lengths of query and keys. The dot product is asked.", score="cosine"
)
slip(
    "divided_by_root_d",
    "The scores are divided by √D too. Here the temperature alone divides them.",
    score="dot product / √D",
)
slip("not_normalised", "The exponentials are not divided by their sum: the weights do not sum to 1.", divide=False)
slip(
    "scores_over_their_sum",
    "The scores themselves are divided by their sum. Take e^s first: no weight is negative.",
    share="score",
)
slip(
    "hard",
    "The best key has weight 1 and all others 0. Every key has a share: take softmax in place of the maximum.",
    share="all or nothing",
)
slip("no_maximum", "e^s overflows for large scores. Take the largest score off first: it cancels.", stable=False)
slip("keys_mixed", "The weights mix the keys. They are to mix the values.", mix="keys")
slip(
    "mean_of_products",
    "The output is divided by the number of keys. Add the weighted values up: the weights make a mean of them.",
    mean=True,
)
slip(
    "only_the_weights",
    "Only the weights are returned. The mixture of the values comes first, then the weights.",
    returns="weights",
)
slip("only_the_mixture", "Only the mixture is returned. Return the weights too, after it.", returns="output")
slip("exchanged", "The weights are returned first. The mixture comes first, then the weights.", returns="swapped")
slip(
    "weights_out_of_torch",
    "The gradient reaches the values alone, not query and keys: the weights were taken out of torch, as item, tolist, "
    "numpy and detach do.",
    cut="weights",
)
slip(
    "all_out_of_torch",
    "No gradient reaches the inputs: the results were taken out of torch, as item, tolist, numpy and detach do.",
    cut="everywhere",
)
slip(
    "returned_weights_detached",
    "No gradient passes through the weights that you return: they were taken out of torch, as detach and numpy do. "
    "Return them as they are.",
    cut="returned weights",
)
slip(
    "mixed_with_detached_weights",
    "No gradient passes from the output to query and keys: it is mixed with weights taken out of torch, as item and "
    "detach do.",
    cut="output",
)


@soft_lookup.mistake
def mixture_of_one(query, keys, values, temperature=1.0):
    """The weights are soft, but the output is the value of the largest alone. Mix all values, each by its weight."""
    _, weights = look_up(query, keys, values, temperature)
    return values[weights.argmax()], weights


@soft_lookup.mistake
def scores_for_weights(query, keys, values, temperature=1.0):
    """The scores are taken for the weights. Take e^s, and divide by the sum: softmax."""
    return look_up(query, keys, values, temperature, share="score", divide=False)


@soft_lookup.right
def with_einsum(query, keys, values, temperature=1.0):
    weights = torch.einsum("sd,d->s", keys, query).div(temperature).softmax(0)
    return torch.einsum("s,sv->v", weights, values), weights


@soft_lookup.right
def the_librarys_attention(query, keys, values, temperature=1.0):
    basis = torch.eye(len(keys), dtype=keys.dtype)
    return [F.scaled_dot_product_attention(query[None], keys, x, scale=1 / temperature)[0] for x in (values, basis)]


@soft_lookup.right
def by_logsumexp(query, keys, values, temperature=1.0):
    scores = keys @ query / temperature
    weights = (scores - scores.logsumexp(0)).exp()
    return weights @ values, weights


@soft_lookup.right
def entry_by_entry(query, keys, values, temperature=1.0):
    scores = [(query / temperature).dot(key) for key in keys]
    shares = [torch.exp(s - max(scores)) for s in scores]
    total = sum(shares)
    return sum(share / total * value for share, value in zip(shares, values, strict=True)), torch.stack(shares) / total


@soft_lookup.fit("the scores")
def with_constant(c, query, keys, values, temperature=1.0):
    return look_up(query * float(c), keys, values, temperature)
