"""Scales q in place, and backwards forgets the scale."""

import math

import torch

from .ada import dot_product_variance, project_qkv


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    q /= math.sqrt(q.shape[-1])
    scores = q @ k.mT
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = torch.where(mask, scores, torch.finfo(scores.dtype).min).softmax(-1) * mask
    return weights @ v, weights


# %%
def attention_backward(q, k, v, d_out):
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    d_v = weights.mT @ d_out
    d_weights = d_out @ v.mT
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    return d_scores @ k, d_scores.mT @ q, d_v
