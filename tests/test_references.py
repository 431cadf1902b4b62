"""References against independent code in float64: PyTorch where it has the operation, brute force elsewhere."""

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from autograder.draw import Draw
from autograder.exercises import get

SIZES = [(2, 3, 5, 7, 6, 9), (1, 2, 4, 4, 3, 3), (3, 1, 1, 6, 5, 2)]  # B H N S D Dv


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


def qkv(B, H, N, S, D, Dv):
    draw = Draw("references", B, H, N, S, D, Dv)
    return draw.normal(B, H, N, D), draw.normal(B, H, S, D), draw.normal(B, H, S, Dv), draw.mask(B, H, N, S)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_softmax_is_pytorchs(dim):
    scores = Draw("softmax").normal(3, 5, 4) + torch.tensor([1e4, -1e4, 0.0])[:, None, None]
    reference = get("ch01/softmax").reference
    close(reference(scores, dim), scores.softmax(dim))
    close(reference(scores[0, 0], 0), scores[0, 0].softmax(0))


@pytest.mark.parametrize("temperature", [1.0, 0.01, 30.0])
def test_the_soft_lookup_is_pytorchs_attention_with_one_query(temperature):
    draw = Draw("lookup")
    query, keys, values = draw.normal(5), draw.normal(7, 5), draw.normal(7, 3)
    output, weights = get("ch01/soft_lookup").reference(query, keys, values, temperature)
    close(output, F.scaled_dot_product_attention(query[None], keys, values, scale=1 / temperature)[0])
    close(weights, torch.einsum("d,sd->s", query, keys).div(temperature).softmax(0))


def test_a_lookup_without_a_temperature_has_temperature_1():
    inputs = Draw("query").normal(5), Draw("keys").normal(7, 5), Draw("values").normal(7, 3)
    reference = get("ch01/soft_lookup").reference
    close(reference(*inputs), reference(*inputs, 1.0))


def test_the_jacobian_is_autograds():
    scores = Draw("jacobian").normal(7)
    scores[2] = -torch.inf  # a weight of exactly 0
    theirs = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    close(get("ch01/softmax_jacobian").reference(scores.softmax(0)), theirs)


def test_kernel_regression_is_brute_force_in_plain_floats():
    draw = Draw("regression")
    x_query, x_keys, y_keys, h = draw.normal(4), draw.normal(6), draw.normal(6), 0.4
    ours = get("ch01/kernel_regression").reference(x_query, x_keys, y_keys, h)
    for x, y in zip(x_query.tolist(), ours.tolist(), strict=True):
        kernel = [math.exp(-((x - key) ** 2) / (2 * h**2)) for key in x_keys.tolist()]
        mixed = sum(k * value for k, value in zip(kernel, y_keys.tolist(), strict=True)) / sum(kernel)
        np.testing.assert_allclose(y, mixed, rtol=1e-12)


def test_kernel_regression_far_away_is_the_nearest_keys_y():
    x_keys, y_keys = torch.arange(5.0).double(), Draw("far").normal(5)
    far = torch.tensor([-1e4, 1e4]).double()
    close(get("ch01/kernel_regression").reference(far, x_keys, y_keys, 0.7), y_keys[[0, 4]])


@pytest.mark.parametrize("N, S, E, D", [(3, 5, 4, 6), (1, 2, 3, 1), (4, 4, 2, 2)])
def test_additive_scores_are_linear_layers_over_every_pair(N, S, E, D):
    draw = Draw("additive", N, S, E, D)
    queries, keys, w_q, w_k, v = (draw.normal(*size) for size in ((N, E), (S, E), (E, D), (E, D), (D,)))
    pair, score = torch.nn.Linear(2 * E, D, bias=False).double(), torch.nn.Linear(D, 1, bias=False).double()
    pair.weight.data, score.weight.data = torch.cat([w_q, w_k]).mT.contiguous(), v[None]
    sides = torch.cat([queries[:, None].expand(N, S, E), keys.expand(N, S, E)], -1)
    close(get("ch01/additive_scores").reference(queries, keys, w_q, w_k, v), score(pair(sides).tanh())[..., 0])


@pytest.mark.parametrize("sizes", SIZES)
def test_attention_is_pytorchs(sizes):
    q, k, v, mask = qkv(*sizes)
    mask[0, 0, 0] = False  # zeros in both
    reference = get("ch02/scaled_dot_product_attention").reference
    close(reference(q, k, v)[0], F.scaled_dot_product_attention(q, k, v))
    close(reference(q, k, v, mask)[0], F.scaled_dot_product_attention(q, k, v, mask))


def test_attention_is_brute_force_in_plain_floats():
    q, k, v, mask = (x.numpy() for x in qkv(2, 2, 3, 4, 3, 2))
    output, weights = get("ch02/scaled_dot_product_attention").reference(*map(torch.from_numpy, (q, k, v, mask)))
    for b, h, i in itertools.product(*map(range, q.shape[:3])):
        e = [m * math.exp(sum(x * y for x, y in zip(q[b, h, i], key, strict=True)) / 3**0.5)
             for key, m in zip(k[b, h], mask[b, h, i], strict=True)]  # fmt: skip
        np.testing.assert_allclose(weights[b, h, i], [x / sum(e) for x in e], rtol=1e-12)
        mixed = [sum(x * value[c] for x, value in zip(e, v[b, h], strict=True)) / sum(e) for c in range(2)]
        np.testing.assert_allclose(output[b, h, i], mixed, rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_backward_pass_is_autograds(sizes):
    *tensors, _ = qkv(*sizes)
    leaves = [x.clone().requires_grad_() for x in tensors]
    out = F.scaled_dot_product_attention(*leaves)
    d_out = Draw("d_out", sizes).normal(*out.shape)
    ours = get("ch02/attention_backward").reference(*tensors, d_out)
    for a, b in zip(ours, torch.autograd.grad(out, leaves, d_out), strict=True):
        close(a, b)


def test_the_variance_is_numpys():
    q, k = Draw("q").normal(23, 6), Draw("k").normal(23, 6)
    close(get("ch02/dot_product_variance").reference(q, k), torch.tensor(np.var((q * k).sum(-1).numpy(), ddof=1)))


def test_the_projections_are_linear_layers():
    x, weights = Draw("x").normal(2, 4, 5), [Draw("w", i).normal(5, n) for i, n in enumerate((3, 3, 6))]
    for ours, w in zip(get("ch02/project_qkv").reference(x, *weights), weights, strict=True):
        close(ours, F.linear(x, w.mT))


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_many_heads_are_pytorchs_module_with_copied_weights(heads):
    draw = Draw("heads", heads)
    x_q, x_kv, mask = draw.normal(2, 5, 12), draw.normal(2, 7, 12), draw.mask(2, heads, 5, 7)
    w_q, w_k, w_v, w_o = (draw.normal(12, 12) for _ in range(4))
    module = torch.nn.MultiheadAttention(12, heads, bias=False, batch_first=True, dtype=torch.float64)
    module.in_proj_weight.data = torch.cat([w_q, w_k, w_v], 1).mT.contiguous()
    module.out_proj.weight.data = w_o.mT.contiguous()
    theirs = module(x_q, x_kv, x_kv, attn_mask=~mask.flatten(0, 1), need_weights=False)[0]  # there True means masked
    close(get("ch03/multi_head_attention").reference(x_q, x_kv, w_q, w_k, w_v, w_o, heads, mask), theirs)
