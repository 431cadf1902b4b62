"""Everything right, in a style of her own: einsum where gradients are wanted, and NumPy where they are not."""

import torch

# %%
import numpy as np


# %%
def softmax(scores, dim):
    return torch.exp(scores - torch.logsumexp(scores, dim, keepdim=True))


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(torch.einsum("d,sd->s", query, keys) / temperature, -1)
    return torch.einsum("s,sv->v", weights, values), weights


# %%
def softmax_jacobian(weights):
    w = weights.numpy()
    return torch.from_numpy(np.diag(w) - np.outer(w, w))


# %%
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    x, x_s, y_s = (t.numpy().astype(np.float64) for t in (x_query, x_keys, y_keys))
    exponents = -((np.subtract.outer(x, x_s) / bandwidth) ** 2) / 2
    kernel = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return torch.from_numpy(kernel @ y_s / kernel.sum(axis=1)).to(x_query.dtype)


# %%
def additive_scores(queries, keys, w_q, w_k, v):
    q, k = torch.einsum("ne,ed->nd", queries, w_q), torch.einsum("se,ed->sd", keys, w_k)
    return torch.einsum("nsd,d->ns", torch.tanh(q.unsqueeze(1) + k.unsqueeze(0)), v)
