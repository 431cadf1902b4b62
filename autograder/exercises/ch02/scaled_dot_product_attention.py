"""Scaled dot-product attention, with its weights."""

import math

import torch
import torch.nn.functional as F

from autograder.exercise import BF16, F16, F32, exercise


@exercise(
    "ch02",
    points={"values": 2, "masking": 2, "stability": 1, "half precision": 1, "gradient": 1, "inputs unchanged": 1},
    takes="q: B H N D, k: B H S D, v: B H S Dv",
    returns="output: B H N Dv, weights: B H N S",
    see="02-queries-keys-values#scaled-dot-product-attention",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    """softmax(q kᵀ / √D) v, query by query (Vaswani et al. 2017, equation 1); one that may see nothing gets zeros."""
    B, H, N, D = q.shape
    mask = torch.ones(B, H, N, k.shape[2], dtype=torch.bool) if mask is None else mask.expand(B, H, N, -1)
    weights = torch.zeros(mask.shape, dtype=q.dtype)
    for b, h, i in mask.any(-1).nonzero().tolist():
        scores, allowed = (k[b, h] * q[b, h, i]).sum(-1) / math.sqrt(D), mask[b, h, i]
        e = torch.where(allowed, (scores - scores[allowed].max()).exp(), 0)
        weights[b, h, i] = e / e.sum()
    return (weights[..., None] * v[:, :, None]).sum(-2), weights


scaled_dot_product_attention.simpler("all scores are equal (q is 0)", q=torch.zeros_like)


def qkv(draw):
    B, H, N, S, D, Dv = draw.sizes("B H N S D Dv")
    return {"q": draw.normal(B, H, N, D), "k": draw.normal(B, H, S, D), "v": draw.normal(B, H, S, Dv)}


def with_mask(draw, axes="BHNS"):
    """Inputs, and a mask that varies along `axes` and has size 1 along the others."""
    inputs = qkv(draw)
    size = dict(zip("BHNS", (*inputs["q"].shape[:3], inputs["k"].shape[2]), strict=True))
    return inputs | {"mask": draw.mask(*(size[axis] if axis in axes else 1 for axis in "BHNS"))}


def with_empty_row(draw):
    inputs = with_mask(draw)
    inputs["mask"][..., 2] = False  # a key that nobody may see
    inputs["mask"][1, :, 3] = False  # a query that may see nothing
    return inputs


@scaled_dot_product_attention.case("values")
def every_size_differs(draw):
    return qkv(draw)


@scaled_dot_product_attention.case("values")
def square(draw):  # N = S and D = Dv: exchanged roles and axes do not show by their shape
    B, H, N, D = draw.sizes("B H N D")
    return {name: draw.normal(B, H, N, D) for name in "qkv"}


@scaled_dot_product_attention.case("values")
def one_query(draw):  # of one head of one sequence: axes of size 1 stay
    return {name: x[:1, :1, : 1 if name == "q" else None] for name, x in qkv(draw).items()}


@scaled_dot_product_attention.case("masking")
def a_mask_for_each_head(draw):
    return with_mask(draw)


@scaled_dot_product_attention.case("masking")
def one_mask_for_all(draw):
    inputs = with_mask(draw, "NS")
    return inputs | {"mask": inputs["mask"][0, 0]}


@scaled_dot_product_attention.case("masking")
def one_mask_for_every_sequence(draw):
    inputs = with_mask(draw, "HNS")
    return inputs | {"mask": inputs["mask"][0]}


@scaled_dot_product_attention.case("masking")
def one_row_for_all_queries(draw):
    inputs = with_mask(draw, "S")
    return inputs | {"mask": inputs["mask"][0, 0]}


@scaled_dot_product_attention.case("masking")
def padding_with_large_scores(draw):  # a maximum taken over hidden keys would underflow the rest
    inputs = with_mask(draw, "BS")
    return inputs | {"k": torch.where(inputs["mask"].mT, inputs["k"], 200 * inputs["k"])}


@scaled_dot_product_attention.case("masking")
def scores_far_below_zero(draw):  # a finite fill such as −100 or −1000 would win
    inputs = with_mask(draw)
    inputs["q"][..., 0], inputs["k"][..., 0] = 64.0, -64.0
    return inputs


@scaled_dot_product_attention.case("masking")
def a_query_of_zeros(draw):  # its scores are exactly 0, and not masked for that
    inputs = with_mask(draw)
    inputs["q"][:, :, 1] = 0
    return inputs


@scaled_dot_product_attention.case("masking", dtypes=(F32, F16), unchanged=("mask",))
def an_empty_row(draw):
    return with_empty_row(draw)


@scaled_dot_product_attention.case("stability")
def scores_to_a_thousand(draw):  # of either sign, within a row and between rows; yet most keys of a row nearly tie
    inputs = qkv(draw)
    B, H, N, _ = inputs["q"].shape
    inputs["q"][..., 0], inputs["k"][..., 0] = 40 * draw.signs(B, H, N), 40.0
    inputs["k"][:, :, -1, 0] = -40.0
    return inputs


@scaled_dot_product_attention.case("stability")
def all_scores_far_below_zero(draw):
    inputs = qkv(draw)
    inputs["q"][..., 0], inputs["k"][..., 0] = 40.0, -40.0
    return inputs


@scaled_dot_product_attention.case("half precision", dtypes=(F16, BF16), same_dtype=True)
def halves(draw):
    return with_mask(draw)


@scaled_dot_product_attention.case("gradient", gradient=("q", "k", "v"))
def of_every_input(draw):
    return with_empty_row(draw)


@scaled_dot_product_attention.case("inputs unchanged", unchanged=True)
def nothing_written_to(draw):
    inputs = with_mask(draw)
    inputs["mask"][..., 0], inputs["mask"][..., 2] = (
        True,
        False,
    )  # a key that nobody may see; no query that sees nothing
    return inputs


SCALES = {
    "1/√D": lambda q, k, v: q.shape[-1] ** -0.5,
    "1/D": lambda q, k, v: 1 / q.shape[-1],
    "1": lambda q, k, v: 1.0,
    "√D": lambda q, k, v: q.shape[-1] ** 0.5,
    "1/√Dv": lambda q, k, v: v.shape[-1] ** -0.5,
    "1/√S": lambda q, k, v: k.shape[-2] ** -0.5,
    "1/√N": lambda q, k, v: q.shape[-2] ** -0.5,
    "1/√(H·D)": lambda q, k, v: (q.shape[1] * q.shape[-1]) ** -0.5,
}


def attend(
    q, k, v, mask=None, *, scale="1/√D", over=-1, keys="transposed", hide="before softmax", fill=-math.inf, flip=False,
    empty="0", stable=True, mix="values", in_place=False, cut="nowhere", returns=None,
):  # fmt: skip
    """One implementation with a knob for each slip."""
    c = scale if isinstance(scale, float) else SCALES[scale](q, k, v)
    q = q.mul_(c) if in_place else q * c
    scores = q @ (k.mT if keys == "transposed" else k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]))
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None or hide == "never" else mask ^ flip
    if hide == "before softmax":
        scores = scores.masked_fill(~allowed, fill)
    if hide == "added":
        scores = scores + allowed
    if hide == "scores that are 0":
        scores = (scores * allowed).masked_fill(scores * allowed == 0, -math.inf)
    weights = scores.softmax(over) if stable else scores.exp() / scores.exp().sum(over, keepdim=True)
    weights = weights * allowed if hide == "after softmax" else weights
    weights = weights.masked_fill(
        ~allowed.any(-1, keepdim=True), {"0": 0, "NaN": math.nan, "1/S": 1 / k.shape[-2]}[empty]
    )
    weights = weights.detach() if cut == "weights" else weights
    output = (weights.detach() if cut == "output" else weights) @ (v if mix == "values" else k)
    weights = weights.detach() if cut == "returned weights" else weights
    return output.to(returns or q.dtype), weights.to(returns or q.dtype)


slip = scaled_dot_product_attention.slips(attend)
slip("divides_by_d", "You divide by D. A score's variance grows with D, its size with √D: divide by √D.", scale="1/D")
slip("no_scale", "The scores are not scaled. Divide q kᵀ by √D.", scale="1")
slip("times_root_d", "You multiply the scores by √D. Divide by it.", scale="√D")
slip("root_of_dv", "You divide by √Dv, the width of v. A score is a sum over D, the width of q and k.", scale="1/√Dv")
slip("root_of_s", "You divide by √S, S the number of keys. A score is a sum over D: divide by √D.", scale="1/√S")
slip("root_of_n", "You divide by √N, N the number of queries. A score is a sum over D: divide by √D.", scale="1/√N")
slip("root_of_width", "You divide by √(H·D). A score is a sum over the D of one head: divide by √D.", scale="1/√(H·D)")
slip("over_queries", "You normalise over the queries. One query's weights over its keys sum to 1.", over=-2)
slip("over_heads", "You normalise over the heads. One query's weights over its keys sum to 1.", over=1)
slip("over_batch", "You normalise over the batch. One query's weights over its keys sum to 1.", over=0)
slip("keys_reshaped", "k is reshaped, not transposed: the shape is right, the numbers are not.", keys="reshaped")
slip("weights_times_keys", "The weights mix the keys. They are to mix the values: weights times v.", mix="keys")
slip("q_changed", "q is scaled in place, so that the caller's q changes. Make a new tensor.", in_place=True)
slip("mask_inverted", "The mask is read the other way round. Here True means: may attend.", flip=True)
slip("mask_ignored", "The mask is not used.", hide="never")
slip("mask_fills_zero", "Hidden scores are set to 0, a score like any other: e⁰ = 1. Set them to −∞.", fill=0.0)
slip("mask_fill_too_small", "Hidden scores get a fill that real scores can go below. Set them to −∞.", fill=-100.0)
slip("mask_after_softmax", "The mask comes after the softmax: rows sum to less than 1.", hide="after softmax")
slip("zero_scores_hidden", "A score that happens to be 0 is hidden too. Let the mask decide.", hide="scores that are 0")
slip("empty_row_nan", "A query that may attend to nothing gives NaN (0/0). It should give zeros.", empty="NaN")
slip("empty_row_uniform", "A query that may attend to nothing sees all keys alike. Give zeros.", empty="1/S")
slip("mask_added", "The mask is added to the scores: True counts 1. It decides who may attend.", hide="added")
slip("fill_beyond_half", "−1e9 does not fit into float16. Fill with −inf, or the dtype's least number.", fill=-1e9)
slip("no_maximum", "exp overflows. Take each row's largest score off first, as softmax does.", stable=False)
slip(
    "weights_out_of_torch",
    "The gradient reaches v alone, not q and k: the weights were taken out of torch, as detach, numpy and no_grad do.",
    cut="weights",
)
slip(
    "mixed_with_detached_weights",
    "No gradient passes from the output to q and k: it is mixed with detached weights.",
    cut="output",
)
slip(
    "returned_weights_detached",
    "No gradient passes through the weights that you return: they are detached. Return them as they are.",
    cut="returned weights",
)
slip("float32_returned", "The outputs come in float32 whatever the inputs are. Give them q's dtype.", returns=F32)


@scaled_dot_product_attention.mistake
def scaled_after_softmax(q, k, v, mask=None):
    """The weights are divided by √D after the softmax. Divide the scores, before it."""
    output, weights = attend(q, k, v, mask, scale="1")
    return output / math.sqrt(q.shape[-1]), weights / math.sqrt(q.shape[-1])


@scaled_dot_product_attention.mistake
def keys_ask_queries(q, k, v, mask=None):
    """The scores are k qᵀ: each key asks the queries. Each query asks the keys, q kᵀ."""
    scores = k @ q.mT / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1).nan_to_num()
    return weights @ v, weights


@scaled_dot_product_attention.mistake
def nan_in_the_gradient(q, k, v, mask=None):
    """A query that may attend to nothing makes the gradients NaN: −∞ − −∞ or 0/0 comes on the way, and only the result
    was mended. Give that row finite scores before the softmax, or a sum that is not 0."""
    hidden = torch.zeros(()) if mask is None else torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -math.inf)
    weights = (q @ k.mT / math.sqrt(q.shape[-1]) + hidden).softmax(-1)
    weights = weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0)
    return weights @ v, weights


@scaled_dot_product_attention.mistake
def mask_times_infinity(q, k, v, mask=None):
    """(1 − mask) times −∞ is NaN wherever attending is allowed, for 0 · ∞ is NaN. Fill with masked_fill or where."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = (scores if mask is None else scores + (1 - mask.to(q.dtype)) * -math.inf).softmax(-1)
    return weights @ v, weights


@scaled_dot_product_attention.right
def with_einsum(q, k, v, mask=None):
    scores = torch.einsum("bhnd,bhsd->bhns", q, k) / math.sqrt(q.shape[-1])
    weights = (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1)
    weights = torch.where(weights.isnan(), 0, weights)
    return torch.einsum("bhns,bhsv->bhnv", weights, v), weights


@scaled_dot_product_attention.right
def finite_fill(q, k, v, mask=None):
    scores = (q / q.shape[-1] ** 0.5) @ k.transpose(-2, -1)
    if mask is None:
        return scores.softmax(-1) @ v, scores.softmax(-1)
    weights = scores.masked_fill(~mask, torch.finfo(q.dtype).min).softmax(-1) * mask
    return weights @ v, weights


@scaled_dot_product_attention.right
def the_librarys_output(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, mask), attend(q, k, v, mask)[1]


@scaled_dot_product_attention.right
def in_float32(q, k, v, mask=None):
    scores = q.float() @ k.float().mT * q.shape[-1] ** -0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1) if mask is None else scores.softmax(-1) * mask
    return (weights @ v.float()).to(q.dtype), weights.to(q.dtype)


@scaled_dot_product_attention.right
def a_fourth_root_on_each_side(q, k, v, mask=None):
    root = q.shape[-1] ** -0.25
    return attend(q * root, k * root, v, mask, scale="1")


@scaled_dot_product_attention.right
def head_by_head(q, k, v, mask=None):
    mask = None if mask is None else mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    outs = [attend(q[:, h], k[:, h], v[:, h], None if mask is None else mask[:, h]) for h in range(q.shape[1])]
    return tuple(torch.stack(parts, 1) for parts in zip(*outs, strict=True))


@scaled_dot_product_attention.fit("q kᵀ")
def with_constant(c, q, k, v, mask=None):
    return attend(q, k, v, mask, scale=float(c))
