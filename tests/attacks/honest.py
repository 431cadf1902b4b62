"""Problem set 02 by honest students: every attacker is followed by one of them, who must get full marks."""

import torch


def project_qkv(x, w_q, w_k, w_v):
    return tuple(torch.einsum("bne,ed->bnd", x, w) for w in (w_q, w_k, w_v))


def dot_product_variance(q, k):
    scores = torch.einsum("md,md->m", q, k)
    centred = scores - scores.mean()
    return centred.dot(centred) / (len(scores) - 1)


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q.float() @ k.float().mT * q.shape[-1] ** -0.5
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1) if mask is None else scores.softmax(-1) * mask
    return (weights @ v.float()).to(q.dtype), weights.to(q.dtype)


def attention_backward(q, k, v, d_out):
    root = q.size(-1) ** 0.5
    p = torch.softmax(torch.einsum("bhnd,bhsd->bhns", q, k) / root, dim=-1)
    delta = (d_out * (p @ v)).sum(-1, keepdim=True)
    d_s = p * (d_out @ v.mT - delta) / root
    return d_s @ k, d_s.mT @ q, p.mT @ d_out
