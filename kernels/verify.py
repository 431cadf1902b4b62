"""On a GPU: every shipped configuration against the formula in float64, and twice for equal bits.

No look at a binary can show that an assembler has made the right one of a kernel (triton#11781): it has to run.
"""

import math

import torch

from . import hopper
from .attention import flash_attention, flash_attention_decode, flash_attention_forward
from .backward import reference as gradients
from .configurations import configuration, listed
from .decode import reference as decoded
from .facts import DTYPES
from .forward import forward, reference
from .hardware import architecture

TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}  # of the largest entry
B, Hq, Hkv, N, S = 2, 4, 2, 333, 517  # more than one tile each way, and no whole number of any
HEAD_DIMS = (16, 32, 40, 64, 128, 256)  # one of each configuration, and one that a tile is wider than


def verify(device):
    """A sentence for each configuration that is wrong; an empty list when all are right."""
    return [said for D in HEAD_DIMS for dtype in DTYPES for said in wrong(device, D, dtype)]


def wrong(device, D, dtype):
    draw = torch.Generator(device).manual_seed(D)
    q, k, v, d_out = (
        torch.randn(size, generator=draw, device=device).to(dtype).requires_grad_()
        for size in ((B, Hq, N, D), (B, Hkv, S, D), (B, Hkv, S, D), (B, Hq, N, D))
    )
    exact = [x.detach().double() for x in (q, k, v, d_out)]
    for causal in (False, True):
        found, again = (attended(q, k, v, d_out, causal) for _ in range(2))
        wanted = *reference(*exact[:3], causal), *gradients(*exact, causal)
        case = f"D {D}, {dtype}, causal {causal}"
        yield from compared(case, found, again, wanted)
        for name, run in unchosen(q.detach(), k.detach(), v.detach(), causal):
            yield from compared(f"{case}, {name}", run(), run(), wanted)
    lengths = torch.tensor([S, S // 4], device=device)
    found, again = ([flash_attention_decode(q[:, :, 0], k, v, lengths)] for _ in range(2))
    wanted = [decoded(exact[0][:, :, 0], exact[1], exact[2], lengths)]
    yield from compared(f"D {D}, {dtype}, decoding", found, again, wanted)


def unchosen(q, k, v, causal):
    """The forward kernels that this card has, but that `flash_attention` does not choose: bench times them too."""
    card, scale = architecture(q), q.shape[-1] ** -0.5
    if card == 90 and q.dtype != torch.float32:
        yield "pointers", lambda: forward(q, k, v, causal, scale, configuration("forward", card, q))
    if card == 90 and listed("specialised", card, q.shape[-1], q.dtype):
        yield "specialised", lambda: hopper.forward(q, k, v, causal, scale, configuration("specialised", card, q), True)


def attended(q, k, v, d_out, causal):
    """Output, lse, and the three gradients."""
    out = flash_attention(q, k, v, causal)
    return *flash_attention_forward(q, k, v, causal), *torch.autograd.grad(out, (q, k, v), d_out)


def compared(case, found, again, wanted):
    for name, a, b, c in zip(("output", "lse", "dq", "dk", "dv"), found, again, wanted, strict=False):
        off = ((a - c).abs().max() / c.abs().max()).item()
        if not off <= TOLERANCE[a.dtype if a.dtype in TOLERANCE else torch.float32] * math.sqrt(2):
            yield f"{case}: {name} is off by {off:.1e} of its largest entry"
        if not torch.equal(a, b):
            yield f"{case}: {name} has other bits the second time"
