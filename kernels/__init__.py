"""Flash attention in Triton, one idea a file, each kernel beside its PyTorch reference.

    flash_attention           softmax(q kᵀ / √D) v, differentiable
    flash_attention_forward   the same, and the log-sum-exp of each row
    flash_attention_decode    one new query a sequence, over a cache

To read: vector_add, row_softmax and matmul are the steps; then forward, backward, decode; hopper is for the curious.
Importing this package needs neither Triton nor a GPU; using it does, or TRITON_INTERPRET=1 (see hardware).
"""

from importlib import import_module
from importlib.util import find_spec

__all__ = ["flash_attention", "flash_attention_decode", "flash_attention_forward"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'kernels' has no attribute {name!r}")
    if find_spec("triton") is None:
        raise ImportError(f"kernels.{name} needs Triton, which runs on Linux: pip install triton.")
    return getattr(import_module(".attention", __name__), name)
