"""Flash attention, forward, once more, with what Hopper cards (H100, H200) added. A reader may skip this file.

Their tensor memory accelerator copies a whole tile by one instruction of one thread, given a descriptor of the tensor:
shape, strides and size of a tile. No thread reckons addresses, and what lies beyond the end comes as 0.

`specialised`: warps of their own copy, and run ahead of those that multiply. Triton does so only with four warps, 128
queries and a single loop without a branch, so that masks are then taken on every trip. Assemblers have made wrong
binaries of such kernels (triton#11781), so it is not chosen before a card has measured it: see bench.
"""

import torch
import triton
import triton.language as tl

from .forward import LN_2, LOG2_E, key_range, last_key, place
from .tiles import elements, row, store, strides


def fits(*tensors):
    """Whether the accelerator can copy them: two bytes an element, every row and head on a multiple of 16 bytes."""
    return all(
        x.element_size() == 2 and x.data_ptr() % 16 == 0 and not any(step % 8 for step in x.stride()[:-1])
        for x in tensors
    )


def forward(q, k, v, causal, scale, config, specialised=False):
    """(out, lse) by the kernel, on arguments that were checked and fit."""
    B, H, N, D = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=q.device))
    if lse.numel():
        unit, steps = strides(q, k, v, out)
        hopper_kernel[(B * H * triton.cdiv(N, config.BLOCK_N),)](
            q, k, v, out, lse, *steps, scale * LOG2_E.value, H, N, k.shape[2], UNIT=unit,
            GROUP=H // k.shape[1], CAUSAL=causal, D=D, SPECIALISED=specialised, **config.options(D),
        )  # fmt: skip
    return out, lse


@triton.jit
def hopper_kernel(
    q, k, v, out, lse, q_stride, k_stride, v_stride, out_stride, scale, H, N, S,
    UNIT: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, D: tl.constexpr, SPECIALISED: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    q_stride, k_stride = elements(q_stride, UNIT), elements(k_stride, UNIT)
    v_stride, out_stride = elements(v_stride, UNIT), elements(out_stride, UNIT)
    bh, first = place(N, BLOCK_N)
    b, h = bh // H, bh % H
    rows = tl.arange(0, BLOCK_N)
    q, k, v = row(q, q_stride, b, h, 0), row(k, k_stride, b, h // GROUP, 0), row(v, v_stride, b, h // GROUP, 0)
    queries = tl.make_tensor_descriptor(q, [N, D], [q_stride[2], 1], [BLOCK_N, BLOCK_D]).load([first, 0])
    keys = tl.make_tensor_descriptor(k, [S, D], [k_stride[2], 1], [BLOCK_S, BLOCK_D])
    values = tl.make_tensor_descriptor(v, [S, D], [v_stride[2], 1], [BLOCK_S, BLOCK_D])

    m = tl.full([BLOCK_N], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_N], tl.float32)
    acc = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    last = last_key(first + rows, N, S, CAUSAL)
    clear, end = key_range(first, N, S, CAUSAL, BLOCK_N, BLOCK_S)
    columns = tl.arange(0, BLOCK_S)
    if SPECIALISED:
        for start in tl.range(0, end, BLOCK_S, warp_specialize=True):
            acc, m, l = step(queries, keys, values, start, columns, last, acc, m, l, scale, True)
    else:
        for start in tl.range(0, clear, BLOCK_S):
            acc, m, l = step(queries, keys, values, start, columns, last, acc, m, l, scale, False)
        for start in tl.range(clear, end, BLOCK_S):
            acc, m, l = step(queries, keys, values, start, columns, last, acc, m, l, scale, True)

    l = tl.where(l == 0, 1, l)
    store(row(out, out_stride, b, h, first), out_stride, rows, N - first, acc / l[:, None], D, BLOCK_D)
    tl.store(lse + bh.to(tl.int64) * N + first + rows, (m + tl.log2(l)) * LN_2, mask=rows < N - first)


@triton.jit
def step(queries, keys, values, start, columns, last, acc, m, l, scale, MASKED: tl.constexpr):
    """One tile of keys, as `forward.walk` takes it in."""
    scores = tl.dot(queries, keys.load([start, 0]).T)
    if MASKED:
        scores = tl.where(start + columns[None, :] <= last[:, None], scores, -float("inf"))
    higher = tl.maximum(m, tl.max(scores, 1) * scale)
    shift = tl.where(higher == -float("inf"), 0.0, higher) if MASKED else higher
    weights = tl.exp2(scores * scale - shift[:, None])
    fade = tl.exp2(m - shift)
    m, l, acc = higher, l * fade + tl.sum(weights, 1), acc * fade[:, None]
    acc = tl.dot(weights.to(queries.dtype), values.load([start, 0]), acc)
    return acc, m, l
