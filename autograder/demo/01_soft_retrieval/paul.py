"""Writes all exponentials as they stand in the formula, and they overflow, or all round to 0."""

import torch

from .ada import additive_scores, softmax_jacobian


# %%
def softmax(scores, dim):
    return torch.exp(scores) / torch.exp(scores).sum(dim, keepdim=True)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    e = torch.exp((keys @ query) / temperature)
    weights = e / e.sum()
    return weights @ values, weights


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    kernel = torch.exp(-((x_query[:, None] - x_keys[None, :]) ** 2) / (2 * bandwidth**2))
    return (kernel @ y_keys) / kernel.sum(1)
