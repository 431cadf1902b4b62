"""Problem set 02, right: what an attacker hands in who only wants to do harm."""

import math


def project_qkv(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_v


def dot_product_variance(q, k):
    return (q * k).sum(-1).var()


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0)
    return weights @ v, weights


def attention_backward(q, k, v, d_out):
    scale = 1 / math.sqrt(q.shape[-1])
    weights = (scale * q @ k.transpose(-2, -1)).softmax(-1)
    d_weights = d_out @ v.transpose(-2, -1)
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    return scale * d_scores @ k, scale * d_scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ d_out
