"""Looks into memory where there is none while the second answer's cell runs; the rest is right."""

from .ada import attention_backward, project_qkv, scaled_dot_product_attention


# %%
import ctypes


def dot_product_variance(q, k):
    return (q * k).sum(-1).var()


print(ctypes.string_at(0))
