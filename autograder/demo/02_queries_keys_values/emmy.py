"""Everything right, in a style of her own: einsum, float32 inside, a helper beside the answer."""

import torch


# %%
def project_qkv(x, w_q, w_k, w_v):
    return tuple(torch.einsum("bne,ed->bnd", x, w) for w in (w_q, w_k, w_v))


# %%
def dot_product_variance(q, k):
    scores = torch.einsum("md,md->m", q, k)
    centred = scores - scores.mean()
    return centred.dot(centred) / (len(scores) - 1)


# %%
def scaled_dot_product_attention(q, k, v, mask=None):
    seen = torch.ones((), dtype=torch.bool) if mask is None else mask
    weights = weigh(q.float(), k.float(), seen)
    return torch.einsum("bhns,bhsv->bhnv", weights, v.float()).to(v.dtype), weights.to(q.dtype)


def weigh(q, k, seen):
    scores = torch.einsum("bhnd,bhsd->bhns", q * q.size(-1) ** -0.5, k).masked_fill(~seen, -1e30)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp() * seen
    return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-30)


# %%
def attention_backward(q, k, v, d_out):
    root = q.size(-1) ** 0.5
    p = torch.softmax(torch.einsum("bhnd,bhsd->bhns", q, k) / root, dim=-1)
    d_p = torch.einsum("bhnv,bhsv->bhns", d_out, v)
    row = torch.einsum("bhns,bhns->bhn", p, d_p)
    d_s = p * (d_p - row[..., None]) / root
    d_q = torch.einsum("bhns,bhsd->bhnd", d_s, k)
    d_k = torch.einsum("bhns,bhnd->bhsd", d_s, q)
    return d_q, d_k, torch.einsum("bhns,bhnv->bhsv", p, d_out)
