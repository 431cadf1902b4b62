"""Attention of one new query a sequence to a cache of keys and values: flash decoding.

One query is little work for a card, and the cache is long: it is split, each program takes in one part, and a second
kernel merges the parts by their log-sum-exp (Dao et al. 2023, Flash-Decoding). All query heads that share a key head
sit in one tile, so that the cache is read once for all of them. How much of the cache is filled, `lengths` says.
"""

import torch
import triton
import triton.language as tl

from .forward import LOG2_E, walk
from .forward import reference as forward_reference
from .tiles import elements, row, strides

FEWEST = 128  # keys that are worth a program of their own


def reference(q, k_cache, v_cache, lengths, scale=None):
    """One sequence after the other, by the formula."""
    parts = zip(q, k_cache, v_cache, lengths.tolist(), strict=True)
    outs = [forward_reference(q[None, :, None], k[None, :, :n], v[None, :, :n], scale=scale)[0] for q, k, v, n in parts]
    return torch.cat(outs)[:, :, 0] if outs else torch.empty_like(q)


def decode(q, k_cache, v_cache, lengths, scale, config, programs):
    """(B, Hq, D) by the kernels, on arguments that were checked; `programs`: how many keep the card busy."""
    B, H, D = q.shape
    Hkv, S = k_cache.shape[1:3]
    splits = max(1, min(triton.cdiv(programs, max(1, B * Hkv)), triton.cdiv(S, FEWEST)))
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    parts = torch.empty(B, H, splits, D, dtype=torch.float32, device=q.device) if splits > 1 else out[:, :, None]
    lse = torch.empty(B, H, splits, dtype=torch.float32, device=q.device)
    if lse.numel():
        group = max(16, triton.next_power_of_2(H // Hkv))
        unit, steps = strides(q, k_cache, v_cache)
        decode_kernel[(B * Hkv * splits,)](
            q, k_cache, v_cache, lengths, parts, lse, *steps, lengths.stride(0), scale * LOG2_E.value, Hkv, S, splits,
            UNIT=unit, GROUP=H // Hkv, D=D, **config.options(D) | {"BLOCK_N": group},
        )  # fmt: skip
    if splits > 1 and lse.numel():
        merge_kernel[(B * H,)](
            parts, lse, out, splits, D=D, BLOCK_D=triton.next_power_of_2(D), SPLITS=triton.next_power_of_2(splits)
        )
    return out


@triton.jit
def decode_kernel(
    q, k, v, lengths, parts, lse, q_stride, k_stride, v_stride, lengths_stride, scale, Hkv, S, splits,
    UNIT: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One part of one sequence's cache, for all query heads that share a key head: these are the rows of the tile."""
    q_stride, k_stride, v_stride = elements(q_stride, UNIT), elements(k_stride, UNIT), elements(v_stride, UNIT)
    bh, split = tl.program_id(0) // splits, tl.program_id(0) % splits
    b, h, heads = bh // Hkv, bh % Hkv, tl.arange(0, BLOCK_N)
    length = tl.minimum(tl.maximum(tl.load(lengths + b * lengths_stride).to(tl.int32), 0), S)
    part = tl.cdiv(tl.cdiv(length, splits), BLOCK_S) * BLOCK_S  # whole tiles
    begin = tl.minimum(split * part, length)
    end = tl.minimum(begin + part, length)

    d = tl.arange(0, BLOCK_D)
    first = q + b * q_stride[0] + h * GROUP * q_stride[1]
    inside = (heads < GROUP)[:, None] & (d < D)[None, :]
    queries = tl.load(first + heads[:, None] * q_stride[1] + d[None, :], mask=inside, other=0.0)
    k, v = row(k, k_stride, b, h, begin), row(v, v_stride, b, h, begin)
    m = tl.full([BLOCK_N], -float("inf"), tl.float32)
    l = tl.zeros([BLOCK_N], tl.float32)
    acc = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    last = tl.zeros_like(heads) + (end - 1)
    clear = begin + (end - begin) // BLOCK_S * BLOCK_S
    acc, m, l, k, v = walk(
        queries, k, v, k_stride, v_stride, acc, m, l, last, begin, clear, end, scale, D, BLOCK_S, BLOCK_D, False
    )
    acc, m, l, k, v = walk(
        queries, k, v, k_stride, v_stride, acc, m, l, last, clear, end, end, scale, D, BLOCK_S, BLOCK_D, True
    )

    l = tl.where(l == 0, 1, l)  # a part with no key: its lse is −∞, and it weighs nothing
    head = (bh.to(tl.int64) * GROUP + heads) * splits + split
    there = parts + head[:, None] * D + d[None, :]
    tl.store(there, (acc / l[:, None]).to(parts.dtype.element_ty), mask=inside)
    tl.store(lse + head, m + tl.log2(l), mask=heads < GROUP)


@triton.jit
def merge_kernel(parts, lse, out, splits, D: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr):
    """The parts of one head, each weighted by its share of the sum of exponentials; lse is in powers of two."""
    head = tl.program_id(0).to(tl.int64)
    split, d = tl.arange(0, SPLITS), tl.arange(0, BLOCK_D)
    powers = tl.load(lse + head * splits + split, mask=split < splits, other=-float("inf"))
    largest = tl.max(powers, 0)
    shares = tl.exp2(powers - tl.where(largest == -float("inf"), 0.0, largest))
    inside = (split < splits)[:, None] & (d < D)[None, :]
    rows = tl.load(parts + (head * splits + split[:, None]) * D + d[None, :], mask=inside, other=0.0)
    total = tl.sum(shares, 0)
    merged = tl.sum(rows * shares[:, None], 0) / tl.where(total == 0, 1, total)
    tl.store(out + head * D + d, merged.to(out.dtype.element_ty), mask=d < D)
