"""Scores by a small network: the additive alignment."""

import torch
import torch.nn.functional as F

from autograder.exercise import exercise


@exercise(
    "ch01",
    points={"values": 2, "gradient": 1},
    takes="queries: N E, keys: S E, w_q: E D, w_k: E D, v: D",
    returns="scores: N S",
    see="01-soft-retrieval#additive-alignment",
)
def additive_scores(queries, keys, w_q, w_k, v):
    """e_ij = v · tanh(q_i W_q + k_j W_k), pair by pair (Bahdanau et al. 2015, appendix A.1.2)."""
    return torch.stack(
        [torch.stack([(v * torch.tanh(query @ w_q + key @ w_k)).sum() for key in keys]) for query in queries]
    )


additive_scores.simpler("v is all ones", v=torch.ones_like)


def layer(draw, N, S, E, D):
    sizes = {"queries": (N, E), "keys": (S, E), "w_q": (E, D), "w_k": (E, D)}
    inputs = {
        name: draw.normal(*size, scale=0.8 if name in ("queries", "keys") else E**-0.5) for name, size in sizes.items()
    }
    return inputs | {"v": draw.normal(D)}


def fewer_queries(draw):
    N, S, E, D = draw.sizes("N S E D")
    return *sorted((N, S)), E, D


@additive_scores.case("values")
def more_keys_than_queries(draw):
    return layer(draw, *fewer_queries(draw))


@additive_scores.case("values")
def more_queries_than_keys(draw):
    N, S, E, D = fewer_queries(draw)
    return layer(draw, S, N, E, D)


@additive_scores.case("values")
def one_query(draw):
    return layer(draw, 1, *draw.sizes("S E D"))


@additive_scores.case("values")
def one_key(draw):
    N, E, D = draw.sizes("N E D")
    return layer(draw, N, 1, E, D)


@additive_scores.case("values")
def widths_of_one(draw):
    N, S = draw.sizes("N S")
    return layer(draw, N, S, 1, 1)


@additive_scores.case("values", unchanged=True)
def square(draw):  # N = S and E = D: a transpose, and a query that meets one key only, do not show by their shape
    N, E = draw.sizes("N E")
    return layer(draw, N, N, E, E)


@additive_scores.case("gradient", gradient=("queries", "keys", "w_q", "w_k", "v"))
def of_every_input(draw):
    return layer(draw, *fewer_queries(draw))


JOINED = {
    "tanh(a + b)": lambda a, b: torch.tanh(a + b),
    "a + b": lambda a, b: a + b,
    "tanh a + tanh b": lambda a, b: torch.tanh(a) + torch.tanh(b),
    "a ∘ b": lambda a, b: a * b,
}


def align(
    queries, keys, w_q, w_k, v, *, of_q="q", of_k="k", transpose=False, join="tanh(a + b)", weigh="after", pairs="all",
    divide="1", outside=False, normalise=False, turn=False, cut=False,
):  # fmt: skip
    """One implementation with a knob for each slip."""
    w = {"q": w_q, "k": w_k}
    a, b = (x @ (w[name].mT if transpose else w[name]) for x, name in ((queries, of_q), (keys, of_k)))
    a = a[:, None] if pairs == "all" else a
    if weigh == "before":
        a, b = a * v, b * v
    hidden = JOINED[join](a, b)
    scores = (hidden @ v if weigh == "after" else hidden.sum(-1)) / {"1": 1, "√D": len(v) ** 0.5}[divide]
    scores = scores.tanh() if outside else scores
    scores = scores.softmax(-1) if normalise else scores
    scores = scores.mT if turn else scores
    return scores.detach() if cut else scores


slip = additive_scores.slips(align)
slip(
    "no_tanh",
    "There is no tanh, so that a query adds the same to the scores of all keys. Take tanh of the sum, before v.",
    join="a + b",
)
slip("tanh_outside", "tanh is taken of the finished score. Take it of the sum, before v.", join="a + b", outside=True)
slip(
    "tanh_of_each",
    "tanh is taken of query and key apart, so that a query adds the same to the scores of all keys. Add them first.",
    join="tanh a + tanh b",
)
slip("keys_by_w_q", "The keys are projected by w_q. They have a matrix of their own, w_k.", of_k="q")
slip("queries_by_w_k", "The queries are projected by w_k. They have a matrix of their own, w_q.", of_q="k")
slip(
    "matrices_exchanged",
    "The queries are projected by w_k, and the keys by w_q. It is the other way round.",
    of_q="k",
    of_k="q",
)
slip("transposed", "The matrices are transposed. Here w_q is (E, D): a query's row times w_q.", transpose=True)
slip(
    "v_missing",
    "v is not used. Take the dot product with it in place of a plain sum.",
    weigh="never",
)
slip("v_inside", "v comes in before tanh. Take tanh first, then its dot product with v.", weigh="before")
slip(
    "dot_product",
    "These are dot products of the projections. Add the projections, take tanh, then the dot product with v.",
    join="a ∘ b",
    weigh="never",
)
slip("row_by_row", "Query i meets key i only. Each query meets every key: N times S scores.", pairs="one")
slip(
    "divided_by_root_d",
    "The scores are divided by √D. They are the sums themselves here: v sets their size.",
    divide="√D",
)
slip("weights_returned", "softmax was applied: these are weights. The scores themselves are asked.", normalise=True)
slip("turned", "Rows are keys and columns queries. Rows are the queries: (N, S).", turn=True)
slip(
    "out_of_torch",
    "No gradient reaches the inputs: the scores were taken out of torch, as item, tolist, numpy and detach do.",
    cut=True,
)


@additive_scores.right
def one_query_at_a_time(queries, keys, w_q, w_k, v):
    projected = keys @ w_k
    return torch.stack([torch.mv(torch.tanh(projected + query @ w_q), v) for query in queries])


@additive_scores.right
def one_matrix_for_the_pair(queries, keys, w_q, w_k, v):
    """Query and key side by side times the matrices one above the other, as the formula is often written."""
    N, S = len(queries), len(keys)
    pairs = torch.cat([queries.repeat_interleave(S, 0), keys.repeat(N, 1)], 1)
    return (torch.tanh(pairs @ torch.cat([w_q, w_k])) @ v).view(N, S)


@additive_scores.right
def linear_layers_and_einsum(queries, keys, w_q, w_k, v):
    hidden = F.linear(queries, w_q.mT).unsqueeze(1) + F.linear(keys, w_k.mT).unsqueeze(0)
    return torch.einsum("nsd,d->ns", hidden.tanh(), v)
