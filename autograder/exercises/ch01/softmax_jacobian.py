"""How each weight answers to each score."""

import torch

from autograder.exercise import exercise


@exercise(
    "ch01",
    points={"values": 3},
    takes="weights: S",
    returns="jacobian: row column",
    see="01-soft-retrieval#softmax-gradient",
)
def softmax_jacobian(weights):
    """∂w_i/∂s_j = w_i (δ_ij − w_j), which is diag(w) − w wᵀ."""
    S = len(weights)
    rows = [[weights[i] * (int(i == j) - weights[j]) for j in range(S)] for i in range(S)]
    return torch.stack([torch.stack(row) for row in rows])


softmax_jacobian.simpler("all weights are equal", weights=lambda w: torch.full_like(w, 1 / len(w)))


@softmax_jacobian.case("values", unchanged=True)
def uneven(draw):
    return {"weights": draw.normal(*draw.sizes("S"), scale=1.5).softmax(0)}


@softmax_jacobian.case("values")
def one_weight(draw):
    return {"weights": torch.ones(1)}


@softmax_jacobian.case("values", unchanged=True)
def even(draw):
    (S,) = draw.sizes("S")
    return {"weights": torch.full((S,), 1 / S)}


@softmax_jacobian.case("values", unchanged=True)
def one_nearly_alone(draw):
    scores = draw.normal(*draw.sizes("S"))
    scores[draw.integers(0, len(scores))] += 5.0
    return {"weights": scores.softmax(0)}


@softmax_jacobian.case("values", unchanged=True)
def some_exactly_zero(draw):  # softmax has saturated: there is nothing to divide by
    scores = draw.normal(*draw.sizes("S"))
    scores[draw.permutation(len(scores))[:2]] = -torch.inf
    return {"weights": scores.softmax(0)}


DIAGONAL = {
    "w": torch.diag,
    "1": lambda w: torch.eye(len(w), dtype=w.dtype),
    "0": lambda w: torch.zeros(len(w), len(w), dtype=w.dtype),
    "w in every column": lambda w: w[:, None].expand(-1, len(w)),
    "w in every row": lambda w: w.expand(len(w), -1),
}
PRODUCT = {
    "w wᵀ": lambda w: torch.outer(w, w),
    "w · w": lambda w: w @ w,
    "w²": lambda w: w * w,
    "diag(w²)": lambda w: torch.diag(w * w),
    "0": lambda w: torch.zeros(()),
}


def jacobian(weights, *, diagonal="w", product="w wᵀ", sign=-1, of="weights", turn=1):
    """One implementation with a knob for each slip."""
    w = weights if of == "weights" else weights.softmax(0)
    return turn * (DIAGONAL[diagonal](w) + sign * PRODUCT[product](w))


slip = softmax_jacobian.slips(jacobian)
# In a pair both sentences must be true: "added" says that w wᵀ is there, so that it sets the product too.
slip("outer_product_missing", "w wᵀ is missing: raising one score also lowers all other weights.", product="0")
slip(
    "only_the_diagonal",
    "Only the diagonal is filled. Each weight depends on every score: off the diagonal is −w_i w_j.",
    product="diag(w²)",
)
slip(
    "diagonal_missing",
    "diag(w) is missing: on the diagonal is w_i (1 − w_i), for raising a score raises its own weight.",
    diagonal="0",
)
slip(
    "added",
    "w wᵀ is added. Take it off: raising one score lowers all other weights.",
    sign=1,
    product="w wᵀ",
)
slip(
    "turned_round",
    "Every sign is turned round: raising a score raises its own weight, and lowers the others.",
    turn=-1,
    sign=-1,
    product="w wᵀ",
    diagonal="w",
)
slip(
    "all_negative",
    "Every entry is negative. diag(w) has a plus: raising a score raises its own weight.",
    turn=-1,
    sign=1,
    product="w wᵀ",
    diagonal="w",
)
slip("identity", "The identity stands where diag(w) is wanted: on the diagonal is w_i (1 − w_i).", diagonal="1")
slip(
    "rows_all_like_the_diagonal",
    "Every entry is w_i (1 − w_j). That is so for i = j only; beside the diagonal it is −w_i w_j.",
    diagonal="w in every column",
    product="w wᵀ",
    sign=-1,
)
slip(
    "columns_all_like_the_diagonal",
    "Every entry is w_j (1 − w_i). That is so for i = j only; beside the diagonal it is −w_i w_j.",
    diagonal="w in every row",
    product="w wᵀ",
    sign=-1,
)
slip(
    "inner_product",
    "One number, the inner product w · w, is taken off everywhere. Take off w_i w_j, the outer product.",
    product="w · w",
)
slip("squares", "w_j² is taken off in every row. Take off w_i w_j, the outer product.", product="w²")
slip("softmax_once_more", "softmax is applied to the weights. They are its result already.", of="softmax of weights")


@softmax_jacobian.mistake
def a_vector(weights):
    """You return the vector w_i (1 − w_i). That is the diagonal of a matrix: each weight depends on every score."""
    return weights * (1 - weights)


@softmax_jacobian.right
def by_broadcasting(weights):
    return weights[:, None] * (torch.eye(len(weights), dtype=weights.dtype) - weights)


@softmax_jacobian.right
def in_place_on_a_copy(weights):
    made = -(weights[:, None] * weights[None, :])
    made.diagonal().add_(weights)
    return made


@softmax_jacobian.right
def by_autograd(weights):
    """The logarithm is one of the scores that have these weights; that of 0 is −∞."""
    scores = weights.log()
    return torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)


@softmax_jacobian.right
def with_einsum(weights):
    return torch.diag_embed(weights) - torch.einsum("i,j->ij", weights, weights)
