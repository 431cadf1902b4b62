"""Never divides by the root of D, neither forwards nor backwards."""

import torch

from .ada import dot_product_variance, project_qkv


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0)
    return weights @ v, weights


# %%
def attention_backward(q, k, v, d_out):
    p = (q @ k.mT).softmax(-1)
    dp = d_out @ v.mT
    da = p * (dp - (p * dp).sum(-1, keepdim=True))
    return da @ k, da.mT @ q, p.mT @ d_out
