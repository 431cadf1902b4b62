"""Has a function of the library for everything. Three of them do not do what she takes them to do."""

import torch

# %%
import torch.nn.functional as F


# %%
def softmax(scores, dim):
    return F.softmax(scores, dim=dim)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = F.softmax(F.cosine_similarity(keys, query.unsqueeze(0)) / temperature, dim=0)
    return weights @ values, weights


# %%
def softmax_jacobian(weights):
    return torch.diag_embed(weights) - torch.outer(weights, weights)


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    squares = torch.cdist(x_query[:, None] / bandwidth, x_keys[:, None] / bandwidth) ** 2
    return F.softmax(-squares / 2, dim=1) @ y_keys


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    hidden = torch.tanh(F.linear(queries, w_q).unsqueeze(1) + F.linear(keys, w_k))  # linear transposes its matrix
    return hidden @ v
