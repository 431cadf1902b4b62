"""Takes one maximum off everywhere; and cannot wait for the softmax."""

import torch

from .ada import softmax_jacobian


# %%
def softmax(scores, dim):
    e = (scores - scores.max()).exp()
    return e / e.sum(dim, keepdim=True)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax((keys * query).sum(1) / temperature, 0)
    return (weights[:, None] * values).sum(0), weights


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    z = (x_query.view(-1, 1) - x_keys.view(1, -1)) / bandwidth
    kernel = (-0.5 * z * z + (0.5 * z * z).min()).exp()
    return kernel @ y_keys / kernel.sum(1)


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    q, k = queries @ w_q, keys @ w_k
    scores = (q[:, None] + k[None]).tanh() @ v
    return softmax(scores, -1)
