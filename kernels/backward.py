"""Flash attention, backward: the gradients of q, k and v, from what the forward pass kept, the output and its lse.

The weights are computed once more, tile by tile: p = e^(score − lse). With dp = dO vᵀ and delta_i = Σ_d dO_id O_id,
which is also the row sum of p ∘ dp, the gradient at the scores is p ∘ (dp − delta) (Dao et al. 2022, appendix B.2).
One kernel owns queries and gathers dq over the keys, another owns keys and gathers dk and dv over the queries: every
number is summed by one program in one order, so that the same inputs give the same bits.
"""

import torch
import triton
import triton.language as tl

from .forward import LOG2_E, key_range, last_key, place
from .forward import reference as forward_reference
from .tiles import elements, load, row, store, strides


def reference(q, k, v, d_out, causal=False, scale=None):
    """(dq, dk, dv) by PyTorch's autograd."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    out, _ = forward_reference(q, k, v, causal, scale)
    return torch.autograd.grad(out, (q, k, v), d_out)


def backward(q, k, v, out, lse, d_out, causal, scale, queries_config, keys_config):
    """(dq, dk, dv) by the kernels, each with its configuration."""
    B, H, N, D = q.shape
    Hkv, S = k.shape[1:3]
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    delta = torch.empty_like(lse)
    unit, (q_step, k_step, v_step, d_out_step, out_step, dq_step, dk_step, dv_step) = strides(
        q, k, v, d_out, out, dq, dk, dv
    )
    given = (q, k, v, d_out, lse, delta), (q_step, k_step, v_step, d_out_step), (scale, H, N, S)
    options = {"UNIT": unit, "GROUP": H // Hkv, "CAUSAL": causal, "D": D}
    if lse.numel():
        config = queries_config.options(D)
        blocks = B * H * triton.cdiv(N, queries_config.BLOCK_N)
        delta_kernel[(blocks,)](out, d_out, delta, out_step, d_out_step, H, N, UNIT=unit, D=D, **config)
        queries_kernel[(blocks,)](*given[0], dq, *given[1], dq_step, *given[2], **options, **config)
    if dk.numel():
        blocks = B * Hkv * triton.cdiv(S, keys_config.BLOCK_S)
        config = keys_config.options(D)
        keys_kernel[(blocks,)](*given[0], dk, dv, *given[1], dk_step, dv_step, *given[2], **options, **config)
    return dq, dk, dv


@triton.jit
def delta_kernel(
    out, d_out, delta, out_stride, d_out_stride, H, N, UNIT: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """delta_i = Σ_d dO_id O_id."""
    out_stride, d_out_stride = elements(out_stride, UNIT), elements(d_out_stride, UNIT)
    bh, first = place(N, BLOCK_N)
    b, h, rows = bh // H, bh % H, tl.arange(0, BLOCK_N)
    o = load(row(out, out_stride, b, h, first), out_stride, rows, N - first, D, BLOCK_D, True)
    do = load(row(d_out, d_out_stride, b, h, first), d_out_stride, rows, N - first, D, BLOCK_D, True)
    at = bh.to(tl.int64) * N + first + rows
    tl.store(delta + at, tl.sum(o.to(tl.float32) * do.to(tl.float32), 1), mask=rows < N - first)


@triton.jit
def load_rows(lse, delta, rows, count):
    """lse in powers of two, and delta. +∞ stands for a row that is not there or sees nothing: its weights are 0."""
    there = rows < count
    powers = tl.load(lse + rows, mask=there, other=float("inf")) * LOG2_E
    return tl.where(powers == -float("inf"), float("inf"), powers), tl.load(delta + rows, mask=there, other=0.0)


@triton.jit
def queries_kernel(
    q, k, v, d_out, lse, delta, dq, q_stride, k_stride, v_stride, d_out_stride, dq_stride, scale, H, N, S,
    UNIT: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dq of BLOCK_N queries."""
    q_stride, k_stride, v_stride = elements(q_stride, UNIT), elements(k_stride, UNIT), elements(v_stride, UNIT)
    d_out_stride, dq_stride = elements(d_out_stride, UNIT), elements(dq_stride, UNIT)
    bh, first = place(N, BLOCK_N)
    b, h, rows = bh // H, bh % H, tl.arange(0, BLOCK_N)
    queries = load(row(q, q_stride, b, h, first), q_stride, rows, N - first, D, BLOCK_D, True)
    do = load(row(d_out, d_out_stride, b, h, first), d_out_stride, rows, N - first, D, BLOCK_D, True)
    at = bh.to(tl.int64) * N + first
    powers, deltas = load_rows(lse + at, delta + at, rows, N - first)
    k, v = row(k, k_stride, b, h // GROUP, 0), row(v, v_stride, b, h // GROUP, 0)

    last = last_key(first + rows, N, S, CAUSAL)
    clear, end = key_range(first, N, S, CAUSAL, BLOCK_N, BLOCK_S)
    acc = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    acc, k, v = over_keys(
        queries, do, powers, deltas, k, v, k_stride, v_stride, acc, last, 0, clear, S, scale, D, BLOCK_S, BLOCK_D, False
    )
    acc, k, v = over_keys(
        queries,
        do,
        powers,
        deltas,
        k,
        v,
        k_stride,
        v_stride,
        acc,
        last,
        clear,
        end,
        S,
        scale,
        D,
        BLOCK_S,
        BLOCK_D,
        True,
    )
    store(row(dq, dq_stride, b, h, first), dq_stride, rows, N - first, acc * scale, D, BLOCK_D)


@triton.jit
def over_keys(
    queries, do, powers, deltas, k, v, k_stride, v_stride, acc, last, begin, end, S, scale,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, BLOCK_S)
    for start in tl.range(begin, end, BLOCK_S):
        keys = load(k, k_stride, columns, S - start, D, BLOCK_D, MASKED)
        values = load(v, v_stride, columns, S - start, D, BLOCK_D, MASKED)
        scores = tl.dot(queries, keys.T, input_precision="ieee") * (scale * LOG2_E)  # (BLOCK_N, BLOCK_S)
        weights = tl.exp2(scores - powers[:, None])
        if MASKED:
            weights = tl.where(start + columns[None, :] <= last[:, None], weights, 0.0)
        d_weights = tl.dot(do, values.T, input_precision="ieee")
        d_scores = weights * (d_weights - deltas[:, None])
        acc = tl.dot(d_scores.to(keys.dtype), keys, acc, input_precision="ieee")
        k += BLOCK_S * tl.cast(k_stride[2], tl.int64)
        v += BLOCK_S * tl.cast(v_stride[2], tl.int64)
    return acc, k, v


@triton.jit
def keys_kernel(
    q, k, v, d_out, lse, delta, dk, dv, q_stride, k_stride, v_stride, d_out_stride, dk_stride, dv_stride,
    scale, H, N, S, UNIT: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """dk and dv of BLOCK_S keys, from all queries of all heads that share them."""
    q_stride, k_stride, v_stride = elements(q_stride, UNIT), elements(k_stride, UNIT), elements(v_stride, UNIT)
    d_out_stride, dk_stride = elements(d_out_stride, UNIT), elements(dk_stride, UNIT)
    dv_stride = elements(dv_stride, UNIT)
    blocks = tl.cdiv(S, BLOCK_S)
    bh, first = tl.program_id(0) // blocks, tl.program_id(0) % blocks * BLOCK_S
    heads = H // GROUP
    b, h, rows = bh // heads, bh % heads, tl.arange(0, BLOCK_S)
    keys = load(row(k, k_stride, b, h, first), k_stride, rows, S - first, D, BLOCK_D, True)
    values = load(row(v, v_stride, b, h, first), v_stride, rows, S - first, D, BLOCK_D, True)
    # Before the tile of `begin` no query sees any of these keys.
    begin = tl.minimum(tl.maximum(first + N - S, 0), N) // BLOCK_N * BLOCK_N if CAUSAL else 0
    acc_k = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    acc_v = tl.zeros([BLOCK_S, BLOCK_D], tl.float32)
    for g in tl.range(GROUP):
        head = h * GROUP + g
        at = (b * H + head).to(tl.int64) * N
        acc_k, acc_v = over_queries(
            keys, values, row(q, q_stride, b, head, begin), row(d_out, d_out_stride, b, head, begin),
            lse + at, delta + at, q_stride, d_out_stride, acc_k, acc_v,
            first, begin, N, S, scale, D, BLOCK_N, BLOCK_D, CAUSAL,
        )  # fmt: skip
    store(row(dk, dk_stride, b, h, first), dk_stride, rows, S - first, acc_k * scale, D, BLOCK_D)
    store(row(dv, dv_stride, b, h, first), dv_stride, rows, S - first, acc_v, D, BLOCK_D)


@triton.jit
def over_queries(
    keys, values, q, d_out, lse, delta, q_stride, d_out_stride, acc_k, acc_v, first, begin, N, S, scale,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Everything is transposed here, keys by queries, as the sums over queries want it."""
    columns, rows = tl.arange(0, BLOCK_N), first + tl.arange(0, keys.shape[0])
    for start in tl.range(begin, N, BLOCK_N):
        queries = load(q, q_stride, columns, N - start, D, BLOCK_D, True)
        do = load(d_out, d_out_stride, columns, N - start, D, BLOCK_D, True)
        powers, deltas = load_rows(lse + start, delta + start, columns, N - start)
        scores = tl.dot(keys, queries.T, input_precision="ieee") * (scale * LOG2_E)  # (BLOCK_S, BLOCK_N)
        weights = tl.exp2(scores - powers[None, :])
        if CAUSAL:
            last = last_key(start + columns, N, S, CAUSAL)
            weights = tl.where(rows[:, None] <= last[None, :], weights, 0.0)
        acc_v = tl.dot(weights.to(do.dtype), do, acc_v, input_precision="ieee")
        d_weights = tl.dot(values, do.T, input_precision="ieee")
        d_scores = weights * (d_weights - deltas[None, :])
        acc_k = tl.dot(d_scores.to(queries.dtype), queries, acc_k, input_precision="ieee")
        q += BLOCK_N * tl.cast(q_stride[2], tl.int64)
        d_out += BLOCK_N * tl.cast(d_out_stride[2], tl.int64)
    return acc_k, acc_v
