"""Takes the softmax first and hides keys afterwards."""

import math

from .ada import attention_backward, dot_product_variance, project_qkv


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).softmax(dim=3)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights
