"""Her fourth cell has a softmax of its own, which takes the place of her first answer; that was judged before."""

import torch


# %%
def softmax(scores, dim):
    e = torch.exp(scores - torch.amax(scores, dim=dim, keepdim=True))
    return e / torch.sum(e, dim=dim, keepdim=True)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(keys.matmul(query) / temperature, 0)
    return weights.matmul(values), weights


# %%
def softmax_jacobian(weights):
    w = softmax(weights, 0)
    return torch.diag(w) - torch.outer(w, w)


# %% place="kernel_regression"
def softmax(x):  # noqa: F811
    e = torch.exp(x)
    return e / e.sum(-1, keepdim=True)


def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    return softmax(-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)) @ y_keys


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    hidden = torch.tanh(torch.matmul(queries, w_q)[:, None] + torch.matmul(keys, w_k))
    return torch.matmul(hidden, v)
