"""Transposes the matrices of the projections, and none of those in the gradient."""

import math

from .ada import dot_product_variance, scaled_dot_product_attention


# %%
def project_qkv(x, w_q, w_k, w_v):
    return x @ w_q.T, x @ w_k.T, x @ w_v.T


# %%
def attention_backward(q, k, v, d_out):
    p = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
    dp = d_out @ v.transpose(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds @ q, p @ d_out
