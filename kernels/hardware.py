"""Which card a tensor lies on, and what that means for the kernels."""

from contextlib import nullcontext

import torch
from triton.runtime.jit import JITFunction

from .forward import forward_kernel

INTERPRETED = not isinstance(forward_kernel, JITFunction)  # TRITON_INTERPRET=1 when it was made


def architecture(x):
    """The key of the configurations: "interpreter", or the family of the card on which x lies: 80, 86 or 90.

    RuntimeError, in one sentence, where no kernel can run.
    """
    if INTERPRETED:
        return "interpreter"
    if x.device.type != "cuda":
        raise RuntimeError(
            f"The tensors lie on {x.device}, and Triton compiles for a GPU: move them to one, or set TRITON_INTERPRET=1"
            " before Python starts, and the kernels are interpreted."
        )
    return family(*torch.cuda.get_device_capability(x.device))


def family(major, minor):
    """By shared memory: A100 163 KB (80), H100 227 KB (90), all others are sure to have 99 KB (86)."""
    if major < 8:
        raise RuntimeError(
            f"This card has compute capability {major}.{minor}; the kernels need 8.0 (A100, RTX 30, L4, H100) or later,"
            " whose tensor cores take bfloat16."
        )
    return {(8, 0): 80, (8, 7): 80, (9, 0): 90}.get((major, minor), 86)


def on(x):
    """Launches go to the card on which x lies, whichever is the current one."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def programs(x):
    """How many programs keep the card busy: two a multiprocessor."""
    return 2 * torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 8
