"""Hides with −1e9, which is beyond float16."""

import math

from .ada import attention_backward, dot_product_variance, project_qkv


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights
