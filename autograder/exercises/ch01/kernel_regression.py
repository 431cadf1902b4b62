"""Attention with fixed scores: the regression of Nadaraya and Watson."""

import torch

from autograder.exercise import exercise


@exercise(
    "ch01",
    points={"values": 2, "bandwidth": 1, "far from every key": 1},
    takes="x_query: N, x_keys: S, y_keys: S",
    returns="y: N",
    uses=("ch01/softmax",),
    see="01-soft-retrieval#kernel-regression",
)
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    """Σ_j K_j y_j / Σ_j K_j with K_j = exp(−(x − x_j)² / (2 bandwidth²)) (Nadaraya 1964, Watson 1964).

    The largest exponent of each query is taken off first: that cancels, and far from every key some K_j is still 1.
    """
    found = []
    for x in x_query:
        exponents = -((x - x_keys) ** 2) / (2 * bandwidth**2)
        kernel = (exponents - exponents.max()).exp()
        found.append((kernel * y_keys).sum() / kernel.sum())
    return torch.stack(found)


kernel_regression.simpler("the bandwidth is 1", bandwidth=lambda h: 1.0)
kernel_regression.simpler("all y are equal", y_keys=torch.ones_like)


def strewn(draw, N, S, bandwidth=1.0, width=4.0):
    """Keys strewn over a stretch, and queries within reach of one."""
    x_keys = width * draw.uniform(S)
    x_query = x_keys[draw.integers(0, S, N)] + 0.7 * bandwidth * draw.normal(N)
    return {"x_query": x_query, "x_keys": x_keys, "y_keys": draw.normal(S, mean=1.0), "bandwidth": bandwidth}


def fewer_queries(draw):
    return sorted(draw.sizes("N S"))


@kernel_regression.case("values")
def more_keys_than_queries(draw):
    return strewn(draw, *fewer_queries(draw))


@kernel_regression.case("values")
def more_queries_than_keys(draw):
    N, S = fewer_queries(draw)
    return strewn(draw, S, N)


@kernel_regression.case("values")
def one_query(draw):
    return strewn(draw, 1, *draw.sizes("S"))


@kernel_regression.case("values")
def one_key(draw):  # it has all the weight
    return strewn(draw, *draw.sizes("N"), 1)


@kernel_regression.case("values")
def square(draw):  # normalising the wrong way does not show by its shape
    (N,) = draw.sizes("N")
    return strewn(draw, N, N)


@kernel_regression.case("bandwidth")
def narrow(draw):
    return strewn(draw, *fewer_queries(draw), bandwidth=draw.between(0.3, 0.6), width=2.0)


@kernel_regression.case("bandwidth", unchanged=True)
def wide(draw):
    return strewn(draw, *fewer_queries(draw), bandwidth=draw.between(2.0, 4.0), width=8.0)


@kernel_regression.case("bandwidth")
def micrometres_in_metres(draw):  # a floor under the bandwidth shows
    return strewn(draw, *fewer_queries(draw), bandwidth=1e-5, width=4e-5)


@kernel_regression.case("bandwidth")
def kilometres_in_metres(draw):
    return strewn(draw, *fewer_queries(draw), bandwidth=1e3, width=4e3)


@kernel_regression.case("bandwidth")
def years(draw):  # x² − 2xx' + x'² loses the difference of two large squares; torch.cdist does so from 26 keys on
    inputs = strewn(draw, *draw.sizes("N"), 30, bandwidth=draw.between(0.2, 0.3), width=0.5)
    return inputs | {name: 2000.0 + inputs[name] for name in ("x_query", "x_keys")}


def close_together(draw):
    """Keys so close together that each has a share far away too; and their place, which is not 0."""
    N, S = fewer_queries(draw)
    h = draw.between(0.5, 2.0)
    place = 40 * h
    inputs = strewn(draw, N, S, bandwidth=h, width=h / 20)
    return inputs | {name: place + inputs[name] for name in ("x_query", "x_keys")}, place


@kernel_regression.case("far from every key")
def all_equally_far(draw):  # every kernel rounds to 0, in float64 too
    inputs, place = close_together(draw)
    return inputs | {"x_query": place + inputs["bandwidth"] * (40.0 + draw.uniform(len(inputs["x_query"])) / 4)}


@kernel_regression.case("far from every key")
def some_near_and_some_far(draw):  # one maximum for all leaves the far ones without a sum
    inputs, place = close_together(draw)
    far = place - inputs["bandwidth"] * (40.0 + draw.uniform(len(inputs["x_query"])) / 4)
    inputs["x_query"][::2] = far[::2]
    return inputs


@kernel_regression.case("far from every key")
def ten_thousand_away(draw):  # of keys well apart: the nearest has it all
    N, S = fewer_queries(draw)
    return strewn(draw, N, S) | {"x_query": 1e4 * draw.signs(N), "x_keys": draw.permutation(S) + 0.2 * draw.uniform(S)}


POWERS = {
    "(x − y)²": lambda x, y: (x - y) ** 2,
    "x² − 2xy + y²": lambda x, y: x**2 - 2 * x * y + y**2,
    "|x − y|": lambda x, y: (x - y).abs(),
    "x − y": lambda x, y: x - y,
}
WIDTHS = {"h²": lambda h: h**2, "h": lambda h: h, "1/h²": lambda h: h**-2, "1": lambda h: 1.0}


def regress(
    x_query, x_keys, y_keys, bandwidth, *, power="(x − y)²", width="h²", divisor=2, sign=-1, off="of each query",
    empty=None, over="keys", mix="y", returns="mixture",
):  # fmt: skip
    """One implementation with a knob for each slip."""
    exponents = sign * POWERS[power](x_query[:, None], x_keys) / (divisor * WIDTHS[width](bandwidth))
    axis = 0 if over == "queries" else 1
    if over in ("keys", "queries"):
        exponents = exponents - {"of each query": exponents.amax(axis, True), "of all": exponents.max(), "0": 0}[off]
    kernel = exponents.exp()
    total = {"keys": kernel.sum(1, True), "queries": kernel.sum(0), "nothing": 1, "S": len(x_keys)}[over]
    weights = kernel / total
    weights = weights if empty is None else weights.nan_to_num(empty)
    return weights if returns == "weights" else weights @ (y_keys if mix == "y" else x_keys)


slip = kernel_regression.slips(regress)
slip(
    "wrong_sign",
    "The nearest key has the least weight: the minus in the exponent is missing.",
    sign=1,
    off="of each query",
)
slip("not_squared", "The distance |x − x_j| is not squared.", power="|x − y|")
slip(
    "no_square",
    "The difference x − x_j is not squared, so that the keys on one side have the most weight, near or not.",
    power="x − y",
    sign=-1,
)
slip(
    "multiplied_out",
    "(x − x_j)² is multiplied out: far from 0 that takes two large squares from each other, and float32 keeps too few "
    "of their digits. Subtract first. torch.cdist multiplies out from 26 places on.",
    power="x² − 2xy + y²",
)
slip("no_two", "The 2 is missing: divide the squared distance by 2 bandwidth².", divisor=1)
slip("two_squared", "There is a 4 in the place of the 2: divide the squared distance by 2 bandwidth².", divisor=4)
slip(
    "bandwidth_not_squared",
    "The bandwidth is not squared: divide the squared distance by 2 bandwidth².",
    width="h",
)
slip(
    "times_bandwidth",
    "The distances are multiplied by the bandwidth. Divide them by it: a wide one reaches further.",
    width="1/h²",
)
slip(
    "bandwidth_ignored",
    "The bandwidth changes nothing. Divide the distances by it, before they are squared.",
    width="1",
)
slip("over_queries", "You normalise over the queries. One query's weights over the keys sum to 1.", over="queries")
slip("not_normalised", "The kernels are not divided by their sum over the keys.", over="nothing")
slip("divided_by_s", "You divide by the number of keys. Divide by the sum of the kernels over the keys.", over="S")
slip(
    "no_maximum",
    "Far from every key all kernels round to 0, and 0/0 is NaN. Take each query's largest exponent off "
    "first: it cancels.",
    off="0",
)
slip(
    "zero_far_away",
    "Far from every key you return 0: all kernels round to 0 there. Take each query's largest "
    "exponent off first: it cancels.",
    off="0",
    empty=0.0,
)
slip(
    "one_maximum_for_all",
    "One largest exponent is taken off for all queries. Those further away still get 0/0: take off each query's own.",
    off="of all",
)
slip("x_mixed", "The weights mix the keys' x. They are to mix their y.", mix="x")
slip("weights_returned", "You return the weights. Return the mixture that they make of y.", returns="weights")


@kernel_regression.mistake
def nearest(x_query, x_keys, y_keys, bandwidth):
    """You return the y of the nearest key alone. Every key takes part, by its kernel."""
    return y_keys[(x_query[:, None] - x_keys).abs().argmin(1)]


@kernel_regression.right
def softmax_of_exponents(x_query, x_keys, y_keys, bandwidth):
    z = (x_query.unsqueeze(1) - x_keys.unsqueeze(0)) / bandwidth
    return (-z.square() / 2).softmax(1) @ y_keys


@kernel_regression.right
def the_normal_distribution(x_query, x_keys, y_keys, bandwidth):
    """Its constant factor cancels."""
    logs = torch.distributions.Normal(x_keys, bandwidth).log_prob(x_query[:, None])
    return (logs - logs.logsumexp(1, keepdim=True)).exp() @ y_keys


@kernel_regression.right
def attention_without_the_querys_square(x_query, x_keys, y_keys, bandwidth):
    """−(x − x')² = 2xx' − x'² − x², and x² cancels; about the keys' middle, lest large squares round."""
    middle = x_keys.mean()
    q, k = ((x - middle) / bandwidth for x in (x_query, x_keys))
    return (torch.outer(q, k) - k**2 / 2).softmax(-1) @ y_keys
