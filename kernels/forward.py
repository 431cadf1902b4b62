"""Flash attention, forward: the output, and the log-sum-exp of every row's scores, with no N × S matrix in memory.

A program holds BLOCK_N queries and walks over their keys, BLOCK_S at a time. For each row it keeps the largest score so
far, m, the sum l of the exponentials, and the output not yet divided by l. When a larger score comes, l and the output
are scaled down to it: the online softmax (Milakov and Gimelshein 2018; Dao 2023, FlashAttention-2, algorithm 1).
Exponentials are powers of two, for which a GPU has an instruction: e^x = 2^(x log2 e).
"""

import math

import torch
import triton
import triton.language as tl

from .tiles import elements, load, row, store, strides

LOG2_E, LN_2 = tl.constexpr(math.log2(math.e)), tl.constexpr(math.log(2))


def reference(q, k, v, causal=False, scale=None):
    """(out, lse) by the formula, with all scores in memory, at the inputs' dtype: float64 inputs give what is exact."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)  # (B, Hq, N, S)
    if causal:
        later = torch.ones_like(scores, dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2])
        scores = scores.masked_fill(later, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0)[..., None]).exp()  # a row that sees nothing gets zeros
    return weights @ v, lse


def forward(q, k, v, causal, scale, config):
    """(out, lse) by the kernel, on arguments that were checked."""
    B, H, N, D = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if lse.numel():
        unit, steps = strides(q, k, v, out)
        forward_kernel[(B * H * triton.cdiv(N, config.BLOCK_N),)](
            q, k, v, out, lse, *steps, scale * LOG2_E.value, H, N, k.shape[2],
            UNIT=unit, GROUP=H // k.shape[1], CAUSAL=causal, D=D, **config.options(D),
        )  # fmt: skip
    return out, lse


@triton.jit
def forward_kernel(
    q, k, v, out, lse, q_stride, k_stride, v_stride, out_stride, scale, H, N, S,
    UNIT: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    q_stride, k_stride = elements(q_stride, UNIT), elements(k_stride, UNIT)
    v_stride, out_stride = elements(v_stride, UNIT), elements(out_stride, UNIT)
    bh, first = place(N, BLOCK_N)
    b, h = bh // H, bh % H
    rows = tl.arange(0, BLOCK_N)
    queries = load(row(q, q_stride, b, h, first), q_stride, rows, N - first, D, BLOCK_D, True)
    k, v = row(k, k_stride, b, h // GROUP, 0), row(v, v_stride, b, h // GROUP, 0)

    m = tl.full([BLOCK_N], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_N], tl.float32)
    acc = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    last = last_key(first + rows, N, S, CAUSAL)
    clear, end = key_range(first, N, S, CAUSAL, BLOCK_N, BLOCK_S)
    acc, m, l, k, v = walk(
        queries, k, v, k_stride, v_stride, acc, m, l, last, 0, clear, S, scale, D, BLOCK_S, BLOCK_D, False
    )
    acc, m, l, k, v = walk(
        queries, k, v, k_stride, v_stride, acc, m, l, last, clear, end, S, scale, D, BLOCK_S, BLOCK_D, True
    )

    l = tl.where(l == 0, 1, l)  # a row that sees nothing: its output is 0, and its m is −∞
    store(row(out, out_stride, b, h, first), out_stride, rows, N - first, acc / l[:, None], D, BLOCK_D)
    tl.store(lse + bh.to(tl.int64) * N + first + rows, (m + tl.log2(l)) * LN_2, mask=rows < N - first)


@triton.jit
def place(N, BLOCK_N: tl.constexpr):
    """Which head, and where this program's queries begin: the last ones first, which have the most keys to see."""
    blocks = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    return pid // blocks, (blocks - 1 - pid % blocks) * BLOCK_N


@triton.jit
def last_key(rows, N, S, CAUSAL: tl.constexpr):
    """The last key that each query may see; with N ≠ S the last query sees the last key (aligned bottom-right)."""
    return rows + (S - N) if CAUSAL else tl.zeros_like(rows) + (S - 1)


@triton.jit
def key_range(first, N, S, CAUSAL: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr):
    """(clear, end): before `clear` lie whole tiles that every query of the block sees; from `end` on no query sees."""
    all_see = tl.minimum(tl.maximum(first + 1 + S - N, 0), S) if CAUSAL else S
    end = tl.minimum(tl.maximum(first + BLOCK_N + S - N, 0), S) if CAUSAL else S
    return all_see // BLOCK_S * BLOCK_S, end


@triton.jit
def walk(
    queries, k, v, k_stride, v_stride, acc, m, l, last, begin, end, S, scale,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Take in the keys from `begin` to `end`; k and v point to the first. MASKED: not every query sees all of them."""
    columns = tl.arange(0, BLOCK_S)
    for start in tl.range(begin, end, BLOCK_S):
        keys = load(k, k_stride, columns, S - start, D, BLOCK_D, MASKED)
        scores = tl.dot(queries, keys.T, input_precision="ieee")  # (BLOCK_N, BLOCK_S)
        if MASKED:
            scores = tl.where(start + columns[None, :] <= last[:, None], scores, -float("inf"))
        higher = tl.maximum(m, tl.max(scores, 1) * scale)
        shift = tl.where(higher == -float("inf"), 0.0, higher) if MASKED else higher  # −∞ − −∞ would be NaN
        weights = tl.exp2(scores * scale - shift[:, None])
        fade = tl.exp2(m - shift)
        m, l, acc = higher, l * fade + tl.sum(weights, 1), acc * fade[:, None]
        values = load(v, v_stride, columns, S - start, D, BLOCK_D, MASKED)
        acc = tl.dot(weights.to(values.dtype), values, acc, input_precision="ieee")
        k += BLOCK_S * tl.cast(k_stride[2], tl.int64)
        v += BLOCK_S * tl.cast(v_stride[2], tl.int64)
    return acc, m, l, k, v
