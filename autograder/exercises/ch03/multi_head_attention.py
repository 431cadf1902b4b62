"""Many heads: split, attend, merge, project; a head count that does not divide the width is refused."""

import math

import torch
import torch.nn.functional as F

from autograder.exercise import BF16, F16, F32, exercise


@exercise(
    "ch03",
    points={"values": 3, "masking": 1, "refusal": 1},
    takes="x_q: B N E, x_kv: B S E, w_q: E E, w_k: E E, w_v: E E, w_o: E E",
    returns="output: B N E",
    see="03-many-heads#split-attend-merge",
    uses=("ch02/scaled_dot_product_attention",),
)
def multi_head_attention(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    """Head h has columns h·D … (h+1)·D of the projections; side by side, times W_O (Vaswani et al. 2017, 3.2.2)."""
    D, left = divmod(w_q.shape[1], num_heads)
    if left:
        raise ValueError(f"num_heads is {num_heads}, which does not divide the width {w_q.shape[1]}")
    heads = []
    for h in range(num_heads):
        columns = slice(h * D, (h + 1) * D)
        scores = (x_q @ w_q[:, columns]) @ (x_kv @ w_k[:, columns]).mT / math.sqrt(D)
        if mask is not None:
            scores = scores.masked_fill(~mask.expand(x_q.shape[0], num_heads, *scores.shape[1:])[:, h], -math.inf)
        heads.append(scores.softmax(-1) @ (x_kv @ w_v[:, columns]))
    return torch.cat(heads, -1) @ w_o


multi_head_attention.simpler("w_o is the identity", w_o=lambda w: torch.eye(len(w), dtype=w.dtype))
multi_head_attention.simpler("num_heads is 1", num_heads=lambda n: 1)


def inputs(draw, square=False, **change):
    """H heads of an odd width; N = S on request, where a mask or a role on the wrong axis does not raise."""
    (B, N, S), H = draw.sizes("B N S"), draw.choice((2, 3))
    E = H * draw.choice((5, 7))
    weights = {name: draw.normal(E, E, scale=0.4) for name in ("w_q", "w_k", "w_v", "w_o")}
    return {
        "x_q": draw.normal(B, N, E),
        "x_kv": draw.normal(B, N if square else S, E),
        **weights,
        "num_heads": H,
    } | change


@multi_head_attention.case("values", dtypes=(F32, F16, BF16))
def cross(draw):
    return inputs(draw)


@multi_head_attention.case("values")
def to_itself(draw):
    drawn = inputs(draw, square=True)
    return drawn | {"x_kv": drawn["x_q"].clone()}


@multi_head_attention.case("masking")
def padding(draw):
    drawn = inputs(draw)
    return drawn | {"mask": draw.mask(len(drawn["x_kv"]), 1, 1, drawn["x_kv"].shape[1])}


@multi_head_attention.case("masking")
def a_mask_for_each_head(draw):
    drawn = inputs(draw, square=True)
    B, N, _ = drawn["x_q"].shape
    return drawn | {"mask": draw.mask(B, drawn["num_heads"], N, N)}


@multi_head_attention.case("refusal", raises=ValueError)
def heads_that_do_not_divide(draw):
    return inputs(draw, num_heads=4)


def attend(
    x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None, *, split="columns", merge="columns", width="D", over=-1,
    project=True, of_k="k", of_v="v", transpose="", hide="keys", flip=False, refuse=True,
):  # fmt: skip
    """One implementation with a knob for each slip."""
    B, E, D = len(x_q), w_q.shape[1], w_q.shape[1] // num_heads
    if refuse and E % num_heads:
        raise ValueError("num_heads does not divide the width")
    w = {
        name: matrix.mT if name in transpose else matrix
        for name, matrix in zip("qkvo", (w_q, w_k, w_v, w_o), strict=True)
    }
    made = ((x @ w[of])[..., : num_heads * D] for x, of in ((x_q, "q"), (x_kv, of_k), (x_kv, of_v)))
    q, k, v = (SPLITS[split](x, num_heads) for x in made)
    scores = q @ k.mT / {"D": D, "E": E, "1": 1}[width] ** 0.5
    if mask is not None and hide != "never":
        mask = mask.mT if hide == "queries" and q.shape[2] == k.shape[2] else mask
        scores = scores.masked_fill(~(mask ^ flip), -math.inf)
    out = MERGES[merge](scores.softmax(over) @ v).reshape(B, -1, num_heads * D)
    return out @ w["o"][: num_heads * D] if project else out


SPLITS = {  # (B, N, E) -> (B, H, N, D)
    "columns": lambda x, H: x.unflatten(2, (H, -1)).transpose(1, 2),
    "every H-th column": lambda x, H: x.unflatten(2, (-1, H)).permute(0, 3, 1, 2),
    "tokens": lambda x, H: x.reshape(x.shape[0], H, x.shape[1], -1),
}
MERGES = {  # (B, H, N, D) -> (B, N, …)
    "columns": lambda x: x.transpose(1, 2),
    "every H-th column": lambda x: x.permute(0, 2, 3, 1),
    "tokens": lambda x: x,
}

slip = multi_head_attention.slips(attend)
slip(
    "split_by_tokens",
    "The split cuts the sequence: a head gets some tokens whole, not D columns of each.",
    split="tokens",
)
slip("merged_by_tokens", "The heads are merged before their axis is moved next to D: tokens are mixed.", merge="tokens")
slip(
    "split_and_merged_by_tokens",
    "The heads cut the sequence, and are put together the same way: shapes agree, but each head sees other tokens.",
    split="tokens",
    merge="tokens",
)
slip(
    "heads_interleaved",
    "Head h takes every H-th column. It takes D columns side by side, h·D … (h+1)·D.",
    split="every H-th column",
    merge="every H-th column",
)
slip("root_of_the_whole_width", "You divide by √E. A score is a sum over one head's D = E / H.", width="E")
slip("no_scale", "The scores are not divided by √D.", width="1")
slip("over_heads", "You normalise over the heads. One query's weights over its keys sum to 1.", over=1)
slip("over_queries", "You normalise over the queries. One query's weights over its keys sum to 1.", over=-2)
slip("no_output_projection", "W_O is missing: the heads lie side by side, and nothing mixes them.", project=False)
slip("keys_and_values_exchanged", "k is made with w_v, and v with w_k.", of_k="v", of_v="k")
slip("one_matrix", "q, k and v are all made with w_q.", of_k="q", of_v="q")
slip("transposed", "All matrices are transposed. Here w_q is such that q is x times w_q.", transpose="qkvo")
slip("w_o_transposed", "w_o is transposed. The output is the merged heads times w_o.", transpose="o")
slip("mask_ignored", "The mask is not used.", hide="never")
slip("mask_on_queries", "The mask lies on the axis of queries. It hides keys, the last axis.", hide="queries")
slip("mask_inverted", "The mask is read the other way round. Here True means: may attend.", flip=True)
slip("width_cut_off", "A head count that does not divide E is not refused, and columns are lost.", refuse=False)


@multi_head_attention.mistake
def roles_exchanged(x_q, x_kv, *rest):
    """The queries come from x_kv, and keys and values from x_q. It is the other way round."""
    return attend(x_kv, x_q, *rest)


@multi_head_attention.right
def with_einsum_and_the_library(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    if w_q.shape[1] % num_heads:
        raise ValueError("num_heads must divide the width")
    pairs = ((x_q, w_q), (x_kv, w_k), (x_kv, w_v))
    q, k, v = (torch.einsum("bne,ehd->bhnd", x, w.unflatten(1, (num_heads, -1))) for x, w in pairs)
    out = F.scaled_dot_product_attention(q, k, v, mask)
    return torch.einsum("bhnd,hde->bne", out, w_o.unflatten(0, (num_heads, -1)))


@multi_head_attention.right
def sum_over_heads(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    if w_q.shape[1] % num_heads:
        raise ValueError(f"{num_heads} heads do not divide {w_q.shape[1]}")
    total, D = 0, w_q.shape[1] // num_heads
    for h in range(num_heads):
        a, b, c = (w[:, h * D : (h + 1) * D] for w in (w_q, w_k, w_v))
        scores = (x_q @ a) @ (x_kv @ b).mT / math.sqrt(D)
        if mask is not None:
            scores = torch.where(mask[:, h % mask.shape[1]], scores, -math.inf)
        total = total + scores.softmax(-1) @ (x_kv @ c) @ w_o[h * D : (h + 1) * D]
    return total


@multi_head_attention.right
def the_librarys_module(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    if w_q.shape[1] % num_heads:
        raise ValueError("num_heads must divide the width")
    module = torch.nn.MultiheadAttention(x_q.shape[-1], num_heads, bias=False, batch_first=True, dtype=x_q.dtype)
    module.in_proj_weight.data = torch.cat([w_q, w_k, w_v], 1).mT.contiguous()
    module.out_proj.weight.data = w_o.mT.contiguous()
    hidden = None if mask is None else ~mask.expand(-1, num_heads, x_q.shape[1], -1).flatten(0, 1)
    return module(x_q, x_kv, x_kv, attn_mask=hidden, need_weights=False)[0]
