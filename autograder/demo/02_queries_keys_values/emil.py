"""Takes True to mean hidden, as nn.MultiheadAttention does."""

import math

from .ada import attention_backward, dot_product_variance, project_qkv


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(mask, -math.inf).softmax(-1)
        weights = weights.masked_fill(mask.all(-1, keepdim=True), 0)
    return weights @ v, weights
