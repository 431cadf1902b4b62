"""Zeros of the right shapes, and nothing else."""

import torch


# %%
def project_qkv(x, w_q, w_k, w_v):
    return tuple(x.new_zeros(*x.shape[:-1], w.shape[-1]) for w in (w_q, w_k, w_v))


# %%
def dot_product_variance(q, k):
    return torch.zeros(())


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    return q.new_zeros(*q.shape[:-1], v.shape[-1]), q.new_zeros(*q.shape[:-1], k.shape[-2])


# %%
def attention_backward(q, k, v, d_out):
    return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
