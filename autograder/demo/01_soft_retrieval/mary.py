"""Half done: the first two exercises."""

import torch


# %%
def softmax(scores, dim):
    m, _ = scores.max(dim, keepdim=True)
    e = torch.exp(scores - m)
    return e / e.sum(dim, keepdim=True)


# %%
def soft_lookup(query, keys, values, temperature=1.0):
    w = softmax(torch.mv(keys, query) / temperature, dim=0)
    return w @ values, w
