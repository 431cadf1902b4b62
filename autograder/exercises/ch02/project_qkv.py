"""Three projections of one input."""

import torch
import torch.nn.functional as F

from autograder.exercise import BF16, F16, F32, exercise


@exercise(
    "ch02",
    points={"values": 2},
    takes="x: B N E, w_q: E D, w_k: E D, w_v: E Dv",
    returns="q: B N D, k: B N D, v: B N Dv",
    see="02-queries-keys-values#three-projections",
)
def project_qkv(x, w_q, w_k, w_v):
    """Each token's row times each matrix (Vaswani et al. 2017, section 3.2.2)."""
    return x @ w_q, x @ w_k, x @ w_v


@project_qkv.case("values", dtypes=(F32, F16, BF16))
def one_input(draw):
    B, N, E, D, Dv = draw.sizes("B N E D Dv")
    return {"x": draw.normal(B, N, E), "w_q": draw.normal(E, D), "w_k": draw.normal(E, D), "w_v": draw.normal(E, Dv)}


@project_qkv.case("values", unchanged=True)
def square_matrices(draw):  # a transposed or exchanged matrix does not show by its shape
    B, N, E = draw.sizes("B N E")
    return {"x": draw.normal(B, N, E), **{name: draw.normal(E, E) for name in ("w_q", "w_k", "w_v")}}


@project_qkv.case("values")
def one_token(draw):  # axes of size 1 stay
    E, D, Dv = draw.sizes("E D Dv")
    return {"x": draw.normal(1, 1, E), "w_q": draw.normal(E, D), "w_k": draw.normal(E, D), "w_v": draw.normal(E, Dv)}


def project(x, w_q, w_k, w_v, *, of_q="q", of_k="k", of_v="v", transpose=False, scale=False):
    w = {"q": w_q, "k": w_k, "v": w_v}
    q, k, v = (x @ (w[name].mT if transpose else w[name]) for name in (of_q, of_k, of_v))
    return (q / q.shape[-1] ** 0.5 if scale else q), k, v


slip = project_qkv.slips(project)
slip("keys_by_w_q", "k is made with w_q. Each of the three has a matrix of its own.", of_k="q")
slip("queries_by_w_k", "q is made with w_k. Each of the three has a matrix of its own.", of_q="k")
slip("values_by_w_q", "v is made with w_q. Each of the three has a matrix of its own.", of_v="q")
slip("values_by_w_k", "v is made with w_k. Each of the three has a matrix of its own.", of_v="k")
slip("one_matrix", "q, k and v are all made with w_q. Each of the three has a matrix of its own.", of_k="q", of_v="q")
slip("queries_and_keys_exchanged", "q is made with w_k, and k with w_q.", of_q="k", of_k="q")
slip("keys_and_values_exchanged", "k is made with w_v, and v with w_k.", of_k="v", of_v="k")
slip("transposed", "The matrices are transposed. Here w_q is (E, D), so that q is x times w_q.", transpose=True)
slip(
    "scaled_already", "q is divided by √D already. The scores are divided, later; q itself is x times w_q.", scale=True
)


@project_qkv.mistake
def values_not_projected(x, w_q, w_k, w_v):
    """v is x itself. Values have a projection of their own, by w_v."""
    return x @ w_q, x @ w_k, x


@project_qkv.right
def with_einsum(x, w_q, w_k, w_v):
    return [torch.einsum("bne,ed->bnd", x, w) for w in (w_q, w_k, w_v)]


@project_qkv.right
def one_wide_matrix(x, w_q, w_k, w_v):
    return (x @ torch.cat([w_q, w_k, w_v], 1)).split([w_q.shape[1], w_k.shape[1], w_v.shape[1]], -1)


@project_qkv.right
def linear_layers(x, w_q, w_k, w_v):
    return tuple(F.linear(x, w.mT) for w in (w_q, w_k, w_v))
