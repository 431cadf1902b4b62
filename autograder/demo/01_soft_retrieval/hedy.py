"""Something is missing everywhere: the sum, the order, a sign, tanh."""

import torch

from .ada import softmax_jacobian


# %%
def softmax(scores, dim):
    return torch.exp(scores - scores.amax(dim, keepdim=True))


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = torch.softmax(keys @ query / temperature, 0)
    return weights, weights @ values


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    return torch.softmax((x_query[:, None] - x_keys) ** 2 / (2 * bandwidth**2), 1) @ y_keys


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k) @ v
