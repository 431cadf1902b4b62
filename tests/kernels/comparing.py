"""Inputs of every shape and layout, and whether the kernels agree with the formula in float64.

`package` is the package of kernels that is asked: ours, or a copy with a fault planted in it.
"""

import math

import torch

import kernels
from kernels.backward import reference as gradients
from kernels.decode import reference as decoded
from kernels.forward import reference

TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.5e-2}


def inputs(B=1, Hq=2, Hkv=None, N=33, S=None, D=32, dtype=torch.float32, seed=0):
    """q, k, v, and a gradient for the output."""
    draw = torch.Generator().manual_seed(seed)
    Hkv, S = Hkv or Hq, N if S is None else S
    sizes = (B, Hq, N, D), (B, Hkv, S, D), (B, Hkv, S, D), (B, Hq, N, D)
    return [torch.randn(size, generator=draw).to(dtype) for size in sizes]


def cache(B=3, Hq=4, Hkv=2, S=300, D=40, dtype=torch.float32, seed=0):
    """q, and a cache of keys and values."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(size, generator=draw).to(dtype) for size in ((B, Hq, D), (B, Hkv, S, D), (B, Hkv, S, D))]


def layouts(x):
    """The same tensor laid out in memory in other ways, each with last stride 1, amid NaN."""
    wide = torch.full((*x.shape[:-1], x.shape[-1] + 5), math.nan)
    wide[..., 3:-2] = x
    middle = torch.full((x.shape[0], x.shape[1], x.shape[2] + 4, x.shape[3]), math.nan)
    middle[:, :, 1:-3] = x
    return wide[..., 3:-2], middle[:, :, 1:-3], x.transpose(1, 2).contiguous().transpose(1, 2)


def agrees(q, k, v, d_out, causal=False, scale=None, times=1.0, package=kernels):
    """Output, lse and gradients are what the formula gives in float64, to the rounding of the dtype."""
    tolerance = times * TOLERANCE[q.dtype]
    exact = [x.double() for x in (q, k, v)]
    out, lse = package.flash_attention_forward(q, k, v, causal, scale)
    wanted, wanted_lse = reference(*exact, causal, scale)
    if not (near(out, wanted, tolerance) and near(lse, wanted_lse, max(tolerance / 8, 4e-6))):
        return False
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    found = torch.autograd.grad(package.flash_attention(*leaves, causal, scale), leaves, d_out)
    pairs = zip(found, gradients(*exact, d_out.double(), causal, scale), strict=True)
    return all(near(a, b, 4 * tolerance) for a, b in pairs)


def decodes(q, k_cache, v_cache, lengths, package=kernels):
    """So does decoding, from a cache that holds NaN where it is not filled."""
    wanted = decoded(q.double(), k_cache.double(), v_cache.double(), lengths)
    for b, n in enumerate(lengths):
        k_cache[b, :, n:], v_cache[b, :, n:] = math.nan, math.nan
    return near(package.flash_attention_decode(q, k_cache, v_cache, lengths), wanted, TOLERANCE[q.dtype])


def near(a, b, tolerance):
    same = a.shape == b.shape and torch.equal(a.isinf(), b.isinf()) and not a.isnan().any()
    finite = b.isfinite()
    return same and bool(((a - b)[finite].abs() <= tolerance * (1 + b[finite].abs())).all())
