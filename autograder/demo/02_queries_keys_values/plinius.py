"""Writes about everything: a hundred megabytes of output, a trillion elements, lists in lists, long last words."""

import torch

# %%
import contextlib
from pathlib import Path

print("nature " * 15_000_000)
for line in range(300_000):
    print(line)


# %%
def project_qkv(x, w_q, w_k, w_v):
    return tuple(torch.zeros(()).expand(1 << 20, 1 << 20) for _ in range(3))


# %%
def dot_product_variance(q, k):
    books = []
    for _ in range(100_000):
        books = [books]
    return books


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    return [torch.zeros(1000)] * 1_000_000


# %%
def attention_backward(q, k, v, d_out):
    for volume in range(37):  # two gigabytes, if there is room
        with contextlib.suppress(OSError):
            Path(f"volume-{volume}").write_bytes(b"n" * (60 << 20))
    raise ValueError("ashes " * 10_000_000)
