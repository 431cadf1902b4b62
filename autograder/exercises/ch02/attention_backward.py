"""The gradients of attention, by hand."""

import math

import torch

from autograder.exercise import exercise


@exercise(
    "ch02",
    points={"values": 4},
    takes="q: B H N D, k: B H S D, v: B H S Dv, d_out: B H N Dv",
    returns="d_q: B H N D, d_k: B H S D, d_v: B H S Dv",
    see="02-queries-keys-values#backward-by-hand",
)
def attention_backward(q, k, v, d_out):
    """dA_ij = P_ij (dP_ij − Σ_j P_ij dP_ij) with dP = dO vᵀ, one query at a time (Dao et al. 2022, appendix B.2)."""
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    root = math.sqrt(q.shape[-1])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        scores = (k[b, h] * q[b, h, i]).sum(-1) / root
        e = (scores - scores.max()).exp()
        p, d_p = e / e.sum(), (v[b, h] * d_out[b, h, i]).sum(-1)
        d_s = p * (d_p - (p * d_p).sum())
        d_q[b, h, i] = (d_s[:, None] * k[b, h]).sum(0) / root
        d_k[b, h] += d_s[:, None] * q[b, h, i] / root
        d_v[b, h] += p[:, None] * d_out[b, h, i]
    return d_q, d_k, d_v


@attention_backward.case("values")
def every_size_differs(draw):
    B, H, N, S, D, Dv = draw.sizes("B H N S D Dv")
    sizes = {"q": (N, D), "k": (S, D), "v": (S, Dv), "d_out": (N, Dv)}
    return {name: draw.normal(B, H, *size) for name, size in sizes.items()}


@attention_backward.case("values")
def one_query(draw):  # of one head of one sequence: axes of size 1 stay
    S, D, Dv = draw.sizes("S D Dv")
    sizes = {"q": (1, D), "k": (S, D), "v": (S, Dv), "d_out": (1, Dv)}
    return {name: draw.normal(1, 1, *size) for name, size in sizes.items()}


@attention_backward.case("values", unchanged=True)
def square(draw):  # exchanged roles and axes do not show by their shape
    B, H, N, D = draw.sizes("B H N D")
    return {name: draw.normal(B, H, N, D) for name in ("q", "k", "v", "d_out")}


SCALES = {"1/√D": lambda D: D**-0.5, "1/D": lambda D: 1 / D, "1": lambda D: 1.0}
SOFTMAX = {  # dA, the gradient at the scaled scores, from P and dP
    "P (dP − Σ P dP)": lambda p, d_p: p * (d_p - (p * d_p).sum(-1, keepdim=True)),
    "P (dP − Σ P dP over queries)": lambda p, d_p: p * (d_p - (p * d_p).sum(-2, keepdim=True)),
    "P (dP − Σ P dP over all)": lambda p, d_p: p * (d_p - (p * d_p).sum()),
    "P (dP − Σ dP)": lambda p, d_p: p * (d_p - d_p.sum(-1, keepdim=True)),
    "P (dP − mean dP)": lambda p, d_p: p * (d_p - d_p.mean(-1, keepdim=True)),
    "P (1 − P) dP": lambda p, d_p: p * (1 - p) * d_p,
    "P dP": lambda p, d_p: p * d_p,
    "dP": lambda p, d_p: d_p,
    "dP − Σ P dP": lambda p, d_p: d_p - (p * d_p).sum(-1, keepdim=True),
}


def backward(
    q, k, v, d_out, *, scale="1/√D", to_q="1/√D", to_k="1/√D", d_a="P (dP − Σ P dP)", d_v="Pᵀ dO", d_k="dAᵀ q",
    swap=False,
):  # fmt: skip
    """One implementation with a knob for each slip: `scale` in the weights, `to_q` and `to_k` in d_q and d_k."""
    p = (q @ k.mT * SCALES[scale](q.shape[-1])).softmax(-1)
    d_p = d_out @ v.mT
    d_a = SOFTMAX[d_a](p, d_p)
    d_v = {"Pᵀ dO": p, "dPᵀ dO": d_p, "dAᵀ dO": d_a}[d_v].mT @ d_out
    d_q = d_a @ k * SCALES[to_q](q.shape[-1])
    d_k = (d_a.mT if d_k == "dAᵀ q" else d_a) @ q * SCALES[to_k](q.shape[-1])
    return (d_k, d_q, d_v) if swap else (d_q, d_k, d_v)


slip = attention_backward.slips(backward)
slip("scale_missing", "d_q and d_k lack 1/√D: the scores were divided by √D, so these are too.", to_q="1", to_k="1")
slip("scale_missing_in_d_q", "d_q lacks 1/√D: the scores were divided by √D, so it is too, as d_k is.", to_q="1")
slip("scale_missing_in_d_k", "d_k lacks 1/√D: the scores were divided by √D, so it is too, as d_q is.", to_k="1")
slip("divided_by_d", "d_q and d_k are divided by D. The scores were divided by √D, once.", to_q="1/D", to_k="1/D")
slip("scale_missing_in_the_weights", "The weights lack 1/√D. They are those of the forward pass.", scale="1")
slip("no_scale_at_all", "1/√D is missing in the weights, and in d_q and d_k.", scale="1", to_q="1", to_k="1")
slip("no_row_sum", "Σ P dP is missing in dA: raising one weight lowers the others of its row.", d_a="P dP")
slip(
    "elementwise", "P (1 − P) is only the diagonal: each weight depends on every score of its row.", d_a="P (1 − P) dP"
)
slip("softmax_skipped", "dA is dP itself: the softmax is not differentiated.", d_a="dP")
slip("plain_row_sum", "The row sum in dA is of dP. It is of P dP, weighted by the weights.", d_a="P (dP − Σ dP)")
slip(
    "mean_of_dp",
    "The plain mean of dP is taken off. Take off its mean under the weights, Σ P dP.",
    d_a="P (dP − mean dP)",
)
slip("outer_weights_missing", "The factor P in front of the bracket is missing in dA.", d_a="dP − Σ P dP")
slip(
    "summed_over_queries", "Σ P dP runs over queries. It runs over a query's keys.", d_a="P (dP − Σ P dP over queries)"
)
slip("summed_over_all", "Σ P dP runs over everything. It runs over a query's keys.", d_a="P (dP − Σ P dP over all)")
slip("values_by_dp", "d_v is made with dP. It is Pᵀ times dO.", d_v="dPᵀ dO")
slip("values_by_da", "d_v is made with dA. It is Pᵀ times dO.", d_v="dAᵀ dO")
slip("keys_not_transposed", "d_k is dA times q. It is dAᵀ times q: a key collects from all queries.", d_k="dA q")
slip("queries_and_keys_exchanged", "d_q and d_k are returned in the other order.", swap=True)


@attention_backward.mistake
def weights_not_transposed(q, k, v, d_out):
    """d_v is P dO, and d_k is dA q. Both need the transpose: a key collects from all queries that read it."""
    p = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
    d_p = d_out @ v.mT
    d_s = p * (d_p - (p * d_p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    return d_s @ k, d_s @ q, p @ d_out


@attention_backward.right
def by_autograd(q, k, v, d_out):
    q, k, v = (x.detach().clone().requires_grad_() for x in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return torch.autograd.grad(out, (q, k, v), d_out)


@attention_backward.right
def row_sums_of_the_output(q, k, v, d_out):
    """Σ_j P_ij dP_ij is also the row sum of dO ∘ O, as FlashAttention's backward pass has it."""
    root = math.sqrt(q.shape[-1])
    p = torch.einsum("bhnd,bhsd->bhns", q, k).div(root).softmax(-1)
    delta = (d_out * (p @ v)).sum(-1, keepdim=True)
    d_s = p * (torch.einsum("bhnv,bhsv->bhns", d_out, v) - delta) / root
    d_q, d_k = torch.einsum("bhns,bhsd->bhnd", d_s, k), torch.einsum("bhns,bhnd->bhsd", d_s, q)
    return d_q, d_k, torch.einsum("bhns,bhnv->bhsv", p, d_out)


@attention_backward.right
def by_the_jacobian(q, k, v, d_out):
    root = math.sqrt(q.shape[-1])
    p = (q @ k.mT / root).softmax(-1)
    jacobian = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]  # B H N S S
    d_s = (jacobian @ (d_out @ v.mT)[..., None])[..., 0] / root
    return d_s @ k, d_s.mT @ q, p.mT @ d_out
