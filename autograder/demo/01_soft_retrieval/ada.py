"""Everything right, as the book writes it."""

import torch


# %%
def softmax(scores, dim):
    e = torch.exp(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(keys @ query / temperature, 0)
    return weights @ values, weights


# %%
def softmax_jacobian(weights):
    return torch.diag(weights) - weights[:, None] * weights


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    distances = x_query[:, None] - x_keys  # (N, S)
    return softmax(-(distances**2) / (2 * bandwidth**2), 1) @ y_keys


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    return torch.tanh((queries @ w_q)[:, None, :] + (keys @ w_k)[None, :, :]) @ v
