"""Computes in float32 and leaves it at that; and divides by M."""

import math

import torch

from .ada import attention_backward, project_qkv


# %%
def dot_product_variance(q, k):
    scores = (q * k).sum(-1)
    return ((scores - scores.mean()) ** 2).mean()


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    q, k, v = q.float(), k.float(), v.float()
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    weights = scores.masked_fill(~mask, torch.finfo(torch.float32).min).softmax(-1) * mask
    return weights @ v, weights
