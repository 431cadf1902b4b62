"""Gives the fourth function another name; the third is a vector, and in the fifth each query meets one key."""

import torch

from .ada import soft_lookup, softmax


# %%
def softmax_jacobian(weights):
    return weights * (1 - weights)


# %% place="kernel_regression"
def kernel_smoother(x_query, x_keys, y_keys, bandwidth):
    distances = x_query[:, None] - x_keys
    return softmax(-(distances**2) / (2 * bandwidth**2), 1) @ y_keys


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    return torch.tanh(queries @ w_q + keys @ w_k) @ v
