"""The attention that users call: arguments checked, configuration chosen by the card, gradients connected."""

import torch
from torch.autograd.function import once_differentiable

from . import hopper
from .arguments import FURTHEST, require_attention, require_decode
from .backward import backward
from .configurations import configuration
from .decode import decode
from .forward import forward
from .hardware import INTERPRETED, architecture, on, programs

if INTERPRETED:
    from .check.interpreter import gpu_like

    gpu_like()


def flash_attention(q, k, v, causal=False, scale=None):
    """softmax(q kᵀ · scale) v, exactly, with memory linear in the lengths; differentiable in q, k and v.

    q: (B, Hq, N, D), k and v: (B, Hkv, S, D), float16, bfloat16 or float32, D at most 256, any strides but the last,
    which is 1. Hq is a multiple of Hkv (grouped queries). causal: query i sees the keys up to i + S − N (aligned
    bottom-right); a query that sees no key gets zeros. scale: 1/√D by default.
    Returns (B, Hq, N, D). ValueError or RuntimeError, in one sentence, where the kernels cannot serve.
    Source: Dao et al. 2022 and 2023 (FlashAttention, FlashAttention-2).
    """
    require_attention(q, k, v, scale)
    return FlashAttention.apply(q, k, v, bool(causal), default(scale, q))


def flash_attention_forward(q, k, v, causal=False, scale=None):
    """The same, not differentiable, with the logarithm of each row's sum of exponentials: (out, lse).

    lse: (B, Hq, N), float32, natural logarithm; −∞ for a query that sees no key.
    """
    require_attention(q, k, v, scale)
    with torch.no_grad():
        return attend(q, k, v, bool(causal), default(scale, q))


def flash_attention_decode(q, k_cache, v_cache, lengths, scale=None):
    """One query a sequence, (B, Hq, D), attends to the first `lengths` keys, (B,), of a cache (B, Hkv, S, D).

    Returns (B, Hq, D); zeros where the length is 0. A length beyond the cache counts as S. Not differentiable.
    """
    require_decode(q, k_cache, v_cache, lengths, scale)
    config = configuration("decode", architecture(q), q)
    with torch.no_grad(), on(q):
        return decode(q, k_cache, v_cache, lengths, default(scale, q), config, programs(q))


class FlashAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal, scale):
        out, lse = attend(q, k, v, causal, scale)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal, ctx.scale = causal, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out):
        q, k, v, out, lse = ctx.saved_tensors
        d_out = d_out if d_out.stride(-1) == 1 and d_out.stride(-2) <= FURTHEST else d_out.contiguous()
        configs = [configuration(kernel, architecture(q), q) for kernel in ("queries", "keys")]
        with on(q):
            return *backward(q, k, v, out, lse, d_out, ctx.causal, ctx.scale, *configs), None, None


def attend(q, k, v, causal, scale):
    card = architecture(q)
    with on(q):
        if card == 90 and hopper.fits(q, k, v):
            return hopper.forward(q, k, v, causal, scale, configuration("hopper", card, q))
        return forward(q, k, v, causal, scale, configuration("forward", card, q))


def default(scale, q):
    return q.shape[-1] ** -0.5 if scale is None else float(scale)
