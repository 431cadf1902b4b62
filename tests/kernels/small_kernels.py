"""Small kernels and their launchers, to see what the compiler makes of them."""

import hashlib

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.check.compiled import compile_only, facts
from kernels.check.sass import cost, hot_loops


def compiled(sm, launcher, *args, **options):
    """The only kernel that the launcher starts."""
    with compile_only(sm) as kernels:
        launcher(*args, **options)
    [(_, kernel)] = kernels
    return kernel


def facts_of(sm, launcher, *args, **options):
    return facts(compiled(sm, launcher, *args, **options), sm)


def costs_of(sm, launcher, warps, *args, **options):
    """Of each hot loop."""
    return [cost(loop, warps) for loop in hot_loops(compiled(sm, launcher, *args, num_warps=warps, **options))]


def identity(sm, launcher, **options):
    """The facts, the binary's hash, and which file said so."""
    kernel = compiled(sm, launcher, **options)
    return facts(kernel, sm), hashlib.sha256(kernel.asm["cubin"]).hexdigest(), __file__


def meta(*shape, dtype=torch.float16):
    return torch.empty(shape, dtype=dtype, device="meta")


def copy(x=None, n=1024):
    x = meta(1024) if x is None else x
    return copy_kernel[(triton.cdiv(n, 256),)](x, torch.empty_like(x), n, BLOCK=256)


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def matmul(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, dtype=torch.float16, **options):
    a = meta(1024, 1024, dtype=dtype)
    matmul_kernel[(4,)](a, a, meta(1024, 1024), 1024, 1024, 1024, BLOCK_M, BLOCK_N, BLOCK_K, **options)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A program computes tile after tile: a loop around the loop over K."""
    m, n, k = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :], tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), M // BLOCK_M * (N // BLOCK_N), tl.num_programs(0)):
        rows, columns = tile // (N // BLOCK_N) * BLOCK_M + m, tile % (N // BLOCK_N) * BLOCK_N + n
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, K, BLOCK_K):
            left, right = tl.load(a + rows * K + start + k[None, :]), tl.load(b + (start + k[:, None]) * N + columns)
            total = tl.dot(left, right, total)
        tl.store(c + rows * N + columns, total.to(c.dtype.element_ty))


def product(**options):
    """Of one tile: no loop."""
    product_kernel[(1,)](meta(128, 128), 128, **options)


@triton.jit
def product_kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tile = tl.load(x + i)
    tl.store(x + i, tl.dot(tile, tile).to(x.dtype.element_ty))


def exponentials(**options):
    x = meta(1024, 64)
    exponentials_kernel[(8,)](x, x, meta(1024, dtype=torch.float32), 1024, 128, 64, **options)


@triton.jit
def exponentials_kernel(q, k, out, S, BLOCK: tl.constexpr, D: tl.constexpr):
    """The sum over the keys of 2^(q·k): as many exponentials as scores."""
    rows, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    queries, total = tl.load(q + rows[:, None] * D + d[None, :]), tl.zeros([BLOCK], tl.float32)
    for start in range(0, S, BLOCK):
        keys = tl.load(k + (start + tl.arange(0, BLOCK))[None, :] * D + d[:, None])
        total += tl.sum(tl.exp2(tl.dot(queries, keys)), 1)
    tl.store(out + rows, total)


def described():
    """Tiles moved by tensor descriptors that the host makes."""
    x, y = (TensorDescriptor.from_tensor(meta(1024, 1024), [64, 64]) for _ in range(2))
    described_kernel[(16,)](x, y)


@triton.jit
def described_kernel(x, y):
    row = tl.program_id(0) * 64
    y.store([row, 0], x.load([row, 0]))


def specialised(warp_specialize=True):
    """Some warps load, others multiply; Triton does this for descriptors that the kernel makes."""
    a = meta(1024, 1024)
    specialised_kernel[(1,)](a, a, a, 1024, 1024, 128, 64, warp_specialize, num_warps=4)


@triton.jit
def specialised_kernel(a, b, c, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, WARP_SPECIALIZE: tl.constexpr):
    a = tl.make_tensor_descriptor(a, [BLOCK, K], [K, 1], [BLOCK, BLOCK_K])
    b = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BLOCK_K, BLOCK])
    total = tl.zeros([BLOCK, BLOCK], tl.float32)
    for start in tl.range(0, K, BLOCK_K, warp_specialize=WARP_SPECIALIZE):
        total = tl.dot(a.load([0, start]), b.load([start, 0]), total)
    i = tl.arange(0, BLOCK)
    tl.store(c + i[:, None] * N + i[None, :], total.to(c.dtype.element_ty))


tuned_kernel = triton.autotune([triton.Config({"BLOCK": n}) for n in (128, 256)], key=["n"])(copy_kernel)
