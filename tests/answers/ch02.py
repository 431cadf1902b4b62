"""Answers to chapter 02 as other hands would write them."""

import math
from collections import namedtuple
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from . import Sheet

sheet = Sheet("ch02")
mistake, wrong, right, pair = sheet.mistake, sheet.wrong, sheet.right, sheet.pair

# project_qkv: x (B, N, E), w_q, w_k (E, D), w_v (E, Dv)

PROJECT = "project_qkv"


@mistake(PROJECT, "keys_by_w_q")
def pasted_line(x, w_q, w_k, w_v):
    q = torch.einsum("bne,ed->bnd", x, w_q)
    k = torch.einsum("bne,ed->bnd", x, w_q)
    v = torch.einsum("bne,ed->bnd", x, w_v)
    return q, k, v


@mistake(PROJECT, "queries_by_w_k")
def queries_from_the_keys_line(x, w_q, w_k, w_v):
    keys, values = (torch.einsum("bne,ed->bnd", x, w) for w in (w_k, w_v))
    return keys.clone(), keys, values


@mistake(PROJECT, "values_by_w_k")
def linear_with_two_weights(x, w_q, w_k, w_v):
    return [F.linear(x, w.t()) for w in (w_q, w_k, w_k)]


@mistake(PROJECT, "one_matrix")
def self_similarity(x, w_q, w_k, w_v):
    h = torch.stack([item @ w_q for item in x])
    return h, h.clone(), h.clone()


@mistake(PROJECT, "queries_and_keys_exchanged")
def returned_as_k_q_v(x, w_q, w_k, w_v):
    q, k, v = (torch.tensordot(x, w, dims=1) for w in (w_q, w_k, w_v))
    return k, q, v


@mistake(PROJECT, "keys_and_values_exchanged")
def returned_as_q_v_k(x, w_q, w_k, w_v):
    B, N, E = x.shape
    rows = x.reshape(B * N, E)
    return tuple((rows @ w).reshape(B, N, -1) for w in (w_q, w_v, w_k))


@mistake(PROJECT, "transposed")
def linear_without_t(x, w_q, w_k, w_v):
    return F.linear(x, w_q), F.linear(x, w_k), F.linear(x, w_v)


@mistake(PROJECT, "scaled_already")
def scaled_queries(x, w_q, w_k, w_v):
    w_q = w_q / np.sqrt(w_q.shape[1])
    q, k, v = (torch.einsum("ed,bne->bnd", w, x) for w in (w_q, w_k, w_v))
    return q, k, v


@mistake(PROJECT, "values_not_projected")
def values_are_x(x, w_q, w_k, w_v):
    return torch.einsum("bne,ed->bnd", x, w_q), torch.einsum("bne,ed->bnd", x, w_k), x.clone()


@wrong(PROJECT)
def one_token_squeezed(x, w_q, w_k, w_v):
    return [(x @ w).squeeze() for w in (w_q, w_k, w_v)]


@wrong(PROJECT)
def through_a_relu(x, w_q, w_k, w_v):
    return (x @ w_q).relu(), (x @ w_k).relu(), (x @ w_v).relu()


@wrong(PROJECT)
def centred_first(x, w_q, w_k, w_v):
    x = x - x.mean(-1, keepdim=True)
    return x @ w_q, x @ w_k, x @ w_v


@wrong(PROJECT)
def scaled_by_the_width(x, w_q, w_k, w_v):
    return tuple(x @ w / math.sqrt(x.shape[-1]) for w in (w_q, w_k, w_v))


@mistake(PROJECT, "values_by_w_q")
def values_by_w_q(x, w_q, w_k, w_v):
    return x @ w_q, x @ w_k, x @ w_q


@wrong(PROJECT)
def turned_round(x, w_q, w_k, w_v):
    return x @ w_v, x @ w_q, x @ w_k


@wrong(PROJECT)
def axes_turned(x, w_q, w_k, w_v):
    return tuple((x @ w).transpose(1, 2) for w in (w_q, w_k, w_v))


@wrong(PROJECT)
def first_item_for_all(x, w_q, w_k, w_v):
    return tuple((x[:1] @ w).expand(x.shape[0], -1, -1) for w in (w_q, w_k, w_v))


@wrong(PROJECT)
def only_the_queries(x, w_q, w_k, w_v):
    return x @ w_q


@wrong(PROJECT)
def stacked_along_the_last_axis(x, w_q, w_k, w_v):
    return x @ torch.cat((w_q, w_k, w_v), 1)


@wrong(PROJECT)
def slightly_noisy(x, w_q, w_k, w_v):
    return tuple(x @ w * 1.00003 for w in (w_q, w_k, w_v))


@wrong(PROJECT)
def through_half(x, w_q, w_k, w_v):
    return tuple((x.bfloat16() @ w.bfloat16()).to(x.dtype) for w in (w_q, w_k, w_v))


@wrong(PROJECT)
def a_column_forgotten(x, w_q, w_k, w_v):
    v = torch.zeros(*x.shape[:2], w_v.shape[1], dtype=x.dtype)
    for d in range(w_v.shape[1] - 1):
        v[..., d] = x @ w_v[:, d]
    return x @ w_q, x @ w_k, v


@right(PROJECT)
def three_loops(x, w_q, w_k, w_v):
    def times(w):
        y = torch.zeros(x.shape[0], x.shape[1], w.shape[1])
        for e in range(w.shape[0]):
            y += x[..., e, None] * w[e]
        return y

    return [times(w) for w in (w_q, w_k, w_v)]


@right(PROJECT)
def in_numpy(x, w_q, w_k, w_v):
    x, *ws = (t.double().numpy() for t in (x, w_q, w_k, w_v))
    return tuple(np.matmul(x, w) for w in ws)


@right(PROJECT)
def other_names(inputs, a, b, c):
    QKV = namedtuple("QKV", "q k v")
    return QKV(inputs @ a, inputs @ b, inputs @ c)


@right(PROJECT)
def from_the_other_side(x, w_q, w_k, w_v):
    return tuple((w.mT @ x.mT).mT for w in (w_q, w_k, w_v))


class Projector(nn.Module):
    def forward(self, x, w_q, w_k, w_v):
        return torch.split(x @ torch.cat((w_q, w_k, w_v), -1), [w_q.shape[1], w_k.shape[1], w_v.shape[1]], -1)


right(PROJECT, "a_module")(Projector())


@pair(PROJECT, "keys_by_w_q", "values_not_projected")
def keys_by_w_q_and_plain_values(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_q, x
    return q, k, v


@pair(PROJECT, "transposed", "queries_and_keys_exchanged")
def transposed_and_exchanged(x, w_q, w_k, w_v):
    return F.linear(x, w_k), F.linear(x, w_q), F.linear(x, w_v)


@pair(PROJECT, "scaled_already", "values_by_w_k")
def scaled_and_values_by_w_k(x, w_q, w_k, w_v):
    return x @ w_q * w_q.shape[1] ** -0.5, x @ w_k, x @ w_k


@pair(PROJECT, "scaled_already", "keys_by_w_q")
def scaled_and_keys_by_w_q(x, w_q, w_k, w_v):
    return x @ w_q * w_q.shape[1] ** -0.5, x @ w_q, x @ w_v


# dot_product_variance: q, k (M, D)

VARIANCE = "dot_product_variance"


@mistake(VARIANCE, "divided_by_m")
def numpys_default(q, k):
    s = np.einsum("md,md->m", q.numpy(), k.numpy())
    return torch.tensor(np.var(s))


@mistake(VARIANCE, "divided_by_d_less_one")
def len_of_the_wrong_axis(q, k):
    s = torch.stack([torch.dot(a, b) for a, b in zip(q, k, strict=True)])
    mean = sum(s) / len(s)
    return sum((x - mean) ** 2 for x in s) / (len(q[0]) - 1)


@mistake(VARIANCE, "not_divided")
def squares_added_up(q, k):
    s = torch.einsum("md,md->m", q, k)
    return torch.linalg.vector_norm(s - s.mean()) ** 2


@mistake(VARIANCE, "standard_deviation")
def by_std(q, k):
    return torch.std(torch.linalg.vecdot(q, k))


@mistake(VARIANCE, "mean_not_subtracted")
def mean_taken_for_zero(q, k):
    s = [float(a @ b) for a, b in zip(q, k, strict=True)]
    return torch.tensor(sum(x * x for x in s) / (len(s) - 1))


@mistake(VARIANCE, "every_pair")
def q_times_k_transposed(q, k):
    return torch.var(torch.matmul(q, k.T).flatten())


@mistake(VARIANCE, "components")
def var_without_the_sum(q, k):
    return torch.var(torch.mul(q, k))


@mistake(VARIANCE, "scaled_scores")
def of_attention_scores(q, k):
    s = (q / q.shape[1] ** 0.25 * k / q.shape[1] ** 0.25).sum(1)
    return s.var()


@mistake(VARIANCE, "of_the_theory")
def the_theory(q, k):
    return torch.tensor(float(q.shape[1]))


@wrong(VARIANCE)
def the_mean_score(q, k):
    return (q * k).sum(-1).mean()


@wrong(VARIANCE)
def of_the_norms(q, k):
    return (q * q).sum(-1).var()


@mistake(VARIANCE, "summed_over_pairs")
def over_the_components(q, k):
    return (q * k).sum(0).var()


@wrong(VARIANCE)
def a_variance_a_component(q, k):
    return (q * k).var(0)


@wrong(VARIANCE)
def divided_by_m_minus_two(q, k):
    s = (q * k).sum(-1)
    return ((s - s.mean()) ** 2).sum() / (len(s) - 2)


@wrong(VARIANCE)
def mean_absolute_deviation(q, k):
    s = (q * k).sum(-1)
    return (s - s.mean()).abs().mean()


@wrong(VARIANCE)
def of_cosines(q, k):
    return torch.cosine_similarity(q, k).var()


@wrong(VARIANCE)
def sum_of_variances(q, k):
    return (q * k).var(0).sum()


@wrong(VARIANCE)
def in_float16(q, k):
    return (q.half() * k.half()).sum(-1).float().var()


@wrong(VARIANCE)
def last_pair_forgotten(q, k):
    return torch.stack([q[m] @ k[m] for m in range(len(q) - 1)]).var()


@wrong(VARIANCE)
def in_a_list_of_one(q, k):
    return (q * k).sum(-1).var().reshape(1)


@wrong(VARIANCE)
def rounded_to_two_places(q, k):
    return (q * k).sum(-1).var().round(decimals=2)


@right(VARIANCE)
def two_moments_in_single_precision(q, k):
    s = (q * k).sum(-1)
    return ((s**2).mean() - s.mean() ** 2) * len(s) / (len(s) - 1)


@pair(VARIANCE, "not_divided", "standard_deviation")
def length_of_the_deviations(q, k):
    s = (q * k).sum(-1)
    return (s - s.mean()).norm()


@pair(VARIANCE, "mean_not_subtracted", "standard_deviation")
def root_mean_square(q, k):
    s = (q * k).sum(-1)
    return ((s**2).sum() / (len(s) - 1)).sqrt()


@pair(VARIANCE, "mean_not_subtracted", "not_divided")
def plain_sum_of_squares(q, k):
    return (q * k).sum(-1).square().sum()


@right(VARIANCE)
def running_mean(q, k):
    mean = total = torch.zeros(())
    for m, (a, b) in enumerate(zip(q, k, strict=True), 1):
        s = a @ b
        total = total + (s - mean) ** 2 * (m - 1) / m
        mean = mean + (s - mean) / m
    return total / (len(q) - 1)


@right(VARIANCE)
def numpy_with_ddof(q, k):
    return np.var((q.double() * k.double()).numpy().sum(1), ddof=1)


@right(VARIANCE)
def from_all_differences(q, k):
    s = torch.bmm(q[:, None], k[..., None]).flatten()
    return (s[:, None] - s).square().sum() / (2 * len(s) * (len(s) - 1))


right(VARIANCE, "a_lambda")(lambda first, second: torch.cov((first * second).sum(-1)))
right(VARIANCE, "var_mean")(lambda q, k: torch.var_mean(torch.einsum("ij,ij->i", q, k), correction=1)[0])


@pair(VARIANCE, "divided_by_m", "mean_not_subtracted")
def mean_of_squares(q, k):
    return (q * k).sum(-1).square().mean()


@pair(VARIANCE, "every_pair", "divided_by_m")
def population_of_every_pair(q, k):
    return (q @ k.T).var(correction=0)


@pair(VARIANCE, "scaled_scores", "standard_deviation")
def deviation_of_scaled_scores(q, k):
    return ((q * k).sum(-1) / q.shape[1] ** 0.5).std()


@pair(VARIANCE, "scaled_scores", "divided_by_m")
def scaled_and_biased(q, k):
    return (q * k).sum(-1).var(correction=0) / q.shape[1]


# scaled_dot_product_attention: q (B, H, N, D), k (B, H, S, D), v (B, H, S, Dv); mask: True = may attend

SDPA = "scaled_dot_product_attention"


def by_hand(a, mask=None, dim=-1):
    """Softmax from exp and a sum; hidden entries, and what has nothing to be normalised over, get 0."""
    mask = torch.ones_like(a, dtype=torch.bool) if mask is None else mask.expand(a.shape)
    top = a.detach().masked_fill(~mask, torch.finfo(a.dtype).min).amax(dim, keepdim=True)
    e = torch.where(mask, a - top, -torch.inf).exp()
    total = e.sum(dim, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def lowest(a):
    return torch.finfo(a.dtype).min


def products(q, k):
    return torch.einsum("bhnd,bhsd->bhns", q, k)


def scores(q, k):
    return products(q, k / math.sqrt(k.shape[-1]))


@mistake(SDPA, "divides_by_d")
def divided_by_size(q, k, v, mask=None):
    p = by_hand(products(q / q.size(3), k), mask)
    return torch.einsum("bhns,bhsd->bhnd", p, v), p


@mistake(SDPA, "no_scale")
def batched_products(q, k, v, mask=None):
    B, H, N, D = q.shape
    a = torch.bmm(q.reshape(B * H, N, D), k.reshape(B * H, -1, D).transpose(1, 2)).view(B, H, N, -1)
    p = by_hand(a, mask)
    return torch.bmm(p.flatten(0, 1), v.flatten(0, 1)).unflatten(0, (B, H)), p


@mistake(SDPA, "no_scale")
def librarys_with_scale_one(q, k, v, mask=None):
    basis = torch.eye(k.shape[2], dtype=q.dtype).expand(*k.shape[:2], -1, -1)
    return tuple(F.scaled_dot_product_attention(q, k, x, attn_mask=mask, scale=1.0) for x in (v, basis))


@mistake(SDPA, "times_root_d")
def head_after_head(q, k, v, mask=None):
    B, H, N, D = q.shape
    mask = torch.ones(1, dtype=torch.bool) if mask is None else mask
    mask = mask.broadcast_to(B, H, N, k.shape[2])
    p = torch.stack(
        [
            torch.stack([by_hand(D**0.25 * q[b, h] @ (D**0.25 * k[b, h]).T, mask[b, h]) for h in range(H)])
            for b in range(B)
        ]
    )
    return p @ v, p


@mistake(SDPA, "root_of_dv")
def width_of_v(q, k, v, mask=None):
    a = q.matmul(k.mT) * v.size(-1) ** -0.5
    if mask is not None:
        a = torch.where(mask, a, torch.finfo(a.dtype).min)
    p = torch.softmax(a, dim=3)
    p = p if mask is None else p * mask
    return p.matmul(v), p


@mistake(SDPA, "root_of_s")
def shape_of_the_transpose(q, k, v, mask=None):
    k = k.transpose(2, 3)
    p = by_hand(q @ (k / math.sqrt(k.shape[-1])), mask)
    return p @ v, p


@mistake(SDPA, "root_of_n")
def librarys_with_n(q, k, v, mask=None):
    basis = torch.eye(k.shape[2], dtype=q.dtype).expand(*k.shape[:2], -1, -1)
    scale = 1 / math.sqrt(q.shape[-2])
    return tuple(F.scaled_dot_product_attention(q, k, x, attn_mask=mask, scale=scale) for x in (v, basis))


@mistake(SDPA, "root_of_width")
def model_width(q, k, v, mask=None):
    width = q.transpose(1, 2).flatten(2).shape[-1]
    p = by_hand(products(q, k).div(width**0.5), mask)
    return p @ v, p


@mistake(SDPA, "over_queries")
def columns_sum_to_one(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask, dim=2)
    return torch.matmul(p, v), p


@mistake(SDPA, "over_heads")
def dim_1(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask, dim=1)
    return torch.matmul(p, v), p


@mistake(SDPA, "over_batch")
def dim_0(q, k, v, mask=None):
    a = scores(q, k)
    a = a if mask is None else a.masked_fill(mask == 0, lowest(a))
    p = F.softmax(a, dim=0)
    p = p if mask is None else p.masked_fill(mask == 0, 0)
    return torch.matmul(p, v), p


@mistake(SDPA, "keys_reshaped")
def view_for_transpose(q, k, v, mask=None):
    B, H, S, D = k.shape
    p = by_hand(q @ k.contiguous().view(B, H, D, S) / math.sqrt(D), mask)
    return p @ v, p


@mistake(SDPA, "weights_times_keys")
def keys_for_values(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return torch.einsum("bhns,bhsd->bhnd", p, k), p


@mistake(SDPA, "q_changed")
def times_equals(q, k, v, mask=None):
    q *= q.shape[-1] ** -0.5
    p = by_hand(products(q, k), mask)
    return p @ v, p


@mistake(SDPA, "mask_inverted")
def true_means_hidden(q, k, v, mask=None):
    p = by_hand(scores(q, k), None if mask is None else mask.logical_not())
    return p @ v, p


@mistake(SDPA, "mask_inverted")
def masked_fill_without_the_tilde(q, k, v, mask=None):
    a = scores(q, k)
    p = a.softmax(-1) if mask is None else a.masked_fill(mask, lowest(a)).softmax(-1) * ~mask
    return p @ v, p


@mistake(SDPA, "mask_inverted")
def inverted_but_empty_rows_zeroed(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    p = a.masked_fill(mask, lowest(a)).softmax(-1) * mask.any(-1, keepdim=True)
    return p @ v, p


@mistake(SDPA, "mask_ignored")
def no_use_of_it(query, key, value, attn_mask=None):
    p = scores(query, key).log_softmax(-1).exp()
    return p @ value, p


@mistake(SDPA, "mask_fills_zero")
def zeros_but_empty_rows_are(q, k, v, mask=None):
    a = scores(q, k)
    p = by_hand(a) if mask is None else by_hand(torch.where(mask, a, 0)) * mask.any(-1, keepdim=True)
    return p @ v, p


@mistake(SDPA, "mask_fill_too_small")
def minus_fifty(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    p = torch.where(mask, a, -50.0).softmax(-1) * mask.any(-1, keepdim=True)
    return p @ v, p


@mistake(SDPA, "mask_after_softmax")
def weights_times_mask(q, k, v, mask=None):
    p = by_hand(scores(q, k))
    p = p if mask is None else p * mask.to(p.dtype)
    return p @ v, p


@mistake(SDPA, "zero_scores_hidden")
def zero_becomes_minus_infinity(q, k, v, mask=None):
    a = scores(q, k)
    a = a if mask is None else a * mask
    p = by_hand(a, a != 0)
    return p @ v, p


@mistake(SDPA, "zero_scores_hidden")
def only_with_a_mask(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    a = a * mask
    hidden = a == 0
    p = a.masked_fill(hidden, lowest(a)).softmax(-1).masked_fill(hidden, 0)
    return p @ v, p


@mistake(SDPA, "empty_row_nan")
def minus_infinity_and_no_more(q, k, v, mask=None):
    a = scores(q, k)
    if mask is not None:
        a[~mask.expand_as(a)] = -math.inf
    e = (a - a.max(-1, keepdim=True).values).exp()
    p = e / e.sum(-1, keepdim=True)
    return p @ v, p


@mistake(SDPA, "empty_row_uniform")
def least_number_and_no_more(q, k, v, mask=None):
    a = scores(q, k)
    p = F.softmax(a if mask is None else torch.where(mask, a, torch.finfo(a.dtype).min), -1)
    return p @ v, p


@mistake(SDPA, "fill_beyond_half")
def filled_in_place(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    hidden = mask.logical_not()
    p = F.softmax(a.masked_fill_(hidden, -(10.0**9)), dim=3).masked_fill(hidden, 0.0)
    return torch.einsum("bhns,bhsd->bhnd", p, v), p


@mistake(SDPA, "no_maximum")
def plain_exp(q, k, v, mask=None):
    e = torch.exp(scores(q, k))
    e = e if mask is None else torch.where(mask, e, 0)
    total = e.sum(3, keepdim=True)
    p = e / torch.where(total > 0, total, 1)
    return p @ v, p


@mistake(SDPA, "no_maximum")
def plain_exp_in_the_dtype(q, k, v, mask=None):
    a = q @ k.mT / math.sqrt(q.shape[-1])
    e = a.exp() if mask is None else a.masked_fill(~mask, -torch.inf).exp()
    p = e / e.sum(-1, keepdim=True)
    p = torch.where(e.sum(-1, keepdim=True) == 0, 0, p) if mask is not None else p
    return p @ v, p


@mistake(SDPA, "float32_returned")
def all_in_float(q, k, v, mask=None):
    q, k, v = q.float(), k.float(), v.float()
    p = by_hand(scores(q, k), mask)
    return p @ v, p


@mistake(SDPA, "scaled_after_softmax")
def softmax_over_root_d(q, k, v, mask=None):
    p = by_hand(products(q, k), mask) / math.sqrt(q.shape[-1])
    return torch.einsum("bhns,bhsd->bhnd", p, v), p


@mistake(SDPA, "keys_ask_queries")
def sides_confused(q, k, v, mask=None):
    a = torch.matmul(k, q.transpose(-1, -2)) / k.shape[-1] ** 0.5
    p = a.softmax(-1) if mask is None else a.masked_fill(~mask, lowest(a)).softmax(-1).masked_fill(~mask, 0)
    return torch.matmul(p, v), p


@mistake(SDPA, "nan_in_the_gradient")
def a_bias_of_minus_infinity(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    bias = torch.zeros(mask.shape, dtype=q.dtype).masked_fill(mask.logical_not(), float("-inf"))
    p = (a + bias).softmax(-1)
    p = torch.where(torch.isnan(p), torch.zeros_like(p), p)
    return p @ v, p


@mistake(SDPA, "nan_in_the_gradient")
def logarithm_of_the_mask(q, k, v, mask=None):
    a = scores(q, k)
    p = (a if mask is None else a + mask.to(a.dtype).log()).softmax(-1).nan_to_num(0.0)
    return p @ v, p


@mistake(SDPA, "mask_times_infinity")
def one_minus_mask(q, k, v, mask=None):
    a = scores(q, k)
    if mask is not None:
        a = a - (1 - mask.to(a.dtype)) * math.inf
    p = a.softmax(-1)
    return p @ v, p


@mistake(SDPA, "mask_times_infinity")
def not_mask_times_infinity(q, k, v, mask=None):
    a = scores(q, k)
    a = a if mask is None else a + ~mask * torch.tensor(-math.inf, dtype=a.dtype)
    p = by_hand(a)
    return p @ v, p


@mistake(SDPA, "mask_added")
def mask_as_a_bonus(q, k, v, mask=None):
    a = scores(q, k)
    p = by_hand(a if mask is None else a + mask.to(a.dtype))
    p = p if mask is None else torch.where(mask.any(-1, keepdim=True), p, 0)
    return p @ v, p


@wrong(SDPA, "mask_fills_zero", "empty_row_nan", "empty_row_uniform")
def scores_times_mask(q, k, v, mask=None):
    p = by_hand(scores(q, k) if mask is None else scores(q, k) * mask)
    return p @ v, p


@wrong(SDPA, "mask_fill_too_small", "empty_row_nan", "empty_row_uniform")
def minus_a_hundred_left_in_empty_rows(q, k, v, mask=None):
    p = (scores(q, k) if mask is None else torch.where(mask, scores(q, k), -100.0)).softmax(-1)
    return p @ v, p


@wrong(SDPA, "fill_beyond_half", "empty_row_nan")
def written_by_index(q, k, v, mask=None):
    a = scores(q, k).clone()
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    a[~mask.expand_as(a)] = -1e9  # −∞ in float16
    p = a.softmax(-1) * mask.any(-1, keepdim=True)
    return p @ v, p


@mistake(SDPA, "weights_out_of_torch")
def weights_without_gradient(q, k, v, mask=None):
    with torch.no_grad():
        weights = by_hand(scores(q, k), mask)
    return weights @ v, weights


@mistake(SDPA, "mixed_with_detached_weights")
def output_from_a_copy(q, k, v, mask=None):
    weights = by_hand(scores(q, k), mask)
    return torch.einsum("bhns,bhsd->bhnd", weights.clone().detach(), v), weights


@mistake(SDPA, "returned_weights_detached")
def weights_for_a_plot(q, k, v, mask=None):
    weights = by_hand(scores(q, k), mask)
    return weights @ v, weights.detach()


@wrong(SDPA)
def mask_opened_for_empty_rows(q, k, v, mask=None):
    if mask is None:
        weights = by_hand(scores(q, k))
        return weights @ v, weights
    empty = ~mask.any(-1, keepdim=True)
    mask |= empty
    weights = by_hand(scores(q, k), mask).masked_fill(empty, 0)
    return weights @ v, weights


@wrong(SDPA)
def three_axes_of_a_mask_taken_for_batch_and_lengths(q, k, v, mask=None):
    mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
    weights = by_hand(scores(q, k), mask)
    return weights @ v, weights


@wrong(SDPA)
def largest_without_its_sign_where_nothing_is_masked(q, k, v, mask=None):
    if mask is None:
        e = (scores(q, k) - scores(q, k).abs().amax(-1, keepdim=True)).exp()
        weights = e / e.sum(-1, keepdim=True)
    else:
        weights = by_hand(scores(q, k), mask)
    return weights @ v, weights


@wrong(SDPA, "nan_in_the_gradient")
def normalised_once_more(q, k, v, mask=None):
    weights = scores(q, k).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = (weights / weights.sum(-1, keepdim=True)).nan_to_num(0)
    return weights @ v, weights


@wrong(SDPA)
def an_epsilon_beside_the_sum(q, k, v, mask=None):
    weights = by_hand(scores(q, k), mask)
    return (weights / (1 + 1e-5)) @ v, weights / (1 + 1e-5)


@wrong(SDPA)
def one_query_squeezed(q, k, v, mask=None):
    weights = by_hand(scores(q, k), mask)
    return (weights @ v).squeeze(2), weights.squeeze(2)


@wrong(SDPA)
def values_hidden_from_all_wiped(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    if mask is not None:
        v.masked_fill_(~mask.expand(p.shape).any(-2)[..., None], 0)
    return p @ v, p


@wrong(SDPA)
def whole_root(q, k, v, mask=None):
    p = by_hand(products(q, k) / math.isqrt(q.shape[-1]), mask)
    return p @ v, p


@wrong(SDPA)
def nothing_but_nan(q, k, v, mask=None):
    p = by_hand(products(q, k) / math.sqrt(q.shape[-1]), mask) * math.nan
    return p @ v, p


@wrong(SDPA)
def relu_for_exp(q, k, v, mask=None):
    e = scores(q, k).relu() * (1 if mask is None else mask)
    p = e / (e.sum(-1, keepdim=True) + 1e-6)
    return p @ v, p


@wrong(SDPA)
def sigmoid_for_softmax(q, k, v, mask=None):
    p = scores(q, k).sigmoid() * (1 if mask is None else mask)
    return p @ v, p


@wrong(SDPA)
def cosine_similarity(q, k, v, mask=None):
    p = by_hand(products(F.normalize(q, dim=-1), F.normalize(k, dim=-1)), mask)
    return p @ v, p


@wrong(SDPA)
def softmax_twice(q, k, v, mask=None):
    p = by_hand(by_hand(scores(q, k), mask), mask)
    return p @ v, p


@wrong(SDPA)
def causal_by_default(q, k, v, mask=None):
    a = scores(q, k)
    p = by_hand(a, torch.ones(a.shape[-2:], dtype=torch.bool).tril() if mask is None else mask)
    return p @ v, p


@wrong(SDPA)
def last_key_forgotten(q, k, v, mask=None):
    a = scores(q, k)
    seen = torch.arange(a.shape[-1]) < a.shape[-1] - 1
    p = by_hand(a, seen if mask is None else seen & mask)
    return p @ v, p


def noisy(amount, q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return (p @ v) * (1 + amount * torch.randn(v.shape[-1])).to(q.dtype), p


for amount in (1e-3, 1e-5):
    wrong(SDPA, name=f"noise of {amount}")(partial(noisy, amount))


@wrong(SDPA)
def one_entry_off(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    out = p @ v
    off = torch.zeros_like(out)
    off[-1, -1, -1, -1] = 1e-3
    return out + off, p


@wrong(SDPA)
def capped_by_tanh(q, k, v, mask=None):
    p = by_hand(30 * torch.tanh(scores(q, k) / 30), mask)
    return p @ v, p


@wrong(SDPA)
def clamped(q, k, v, mask=None):
    p = by_hand(scores(q, k).clamp(-80, 80), mask)
    return p @ v, p


@wrong(SDPA)
def mask_of_the_first_head(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask[:, :1] if mask is not None and mask.ndim == 4 else mask)
    return p @ v, p


@wrong(SDPA)
def mask_of_the_first_item(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask[:1] if mask is not None and mask.ndim == 4 else mask)
    return p @ v, p


@wrong(SDPA)
def mask_turned(q, k, v, mask=None):
    p = by_hand(scores(q, k), None if mask is None else mask.transpose(-2, -1))
    return p @ v, p


@wrong(SDPA)
def mask_added(q, k, v, mask=None):
    p = by_hand(scores(q, k) + (0 if mask is None else mask.to(q.dtype)))
    return p @ v, p


@wrong(SDPA)
def if_mask(q, k, v, mask=None):
    a = scores(q, k)
    p = by_hand(a, mask if mask else None)
    return p @ v, p


@wrong(SDPA)
def mask_needed(q, k, v, mask=None):
    a = scores(q, k)
    p = a.masked_fill(~mask, lowest(a)).softmax(-1).masked_fill(~mask, 0)
    return p @ v, p


@wrong(SDPA)
def dropout_left_on(q, k, v, mask=None):
    p = F.dropout(by_hand(scores(q, k), mask), 0.1)
    return p @ v, p


@wrong(SDPA)
def root_of_eight(q, k, v, mask=None):
    p = by_hand(products(q, k) / math.sqrt(8), mask)
    return p @ v, p


@wrong(SDPA)
def weights_first(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return p, p @ v


@wrong(SDPA)
def output_alone(q, k, v, mask=None):
    return by_hand(scores(q, k), mask) @ v


@wrong(SDPA)
def scores_for_weights(q, k, v, mask=None):
    a = scores(q, k)
    return by_hand(a, mask) @ v, a


@wrong(SDPA)
def weights_before_the_mask(q, k, v, mask=None):
    a = scores(q, k)
    return by_hand(a, mask) @ v, by_hand(a)


@wrong(SDPA)
def values_averaged(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return v.mean(-2, keepdim=True).expand(*q.shape[:3], -1), p


def within(dtype, q, k, v, mask=None):
    p = by_hand(scores(q.to(dtype), k.to(dtype)), mask)
    return (p @ v.to(dtype)).to(q.dtype), p.to(q.dtype)


for coarse in (torch.float16, torch.bfloat16):
    wrong(SDPA, name=f"{coarse} throughout")(partial(within, coarse))


@wrong(SDPA)
def mean_for_maximum(q, k, v, mask=None):
    a = scores(q, k)
    a = a if mask is None else a.masked_fill(~mask, -torch.inf)
    e = (a - scores(q, k).mean(-1, keepdim=True)).exp()
    total = e.sum(-1, keepdim=True)
    p = e / torch.where(total == 0, 1, total)
    return p @ v, p


@wrong(SDPA)
def maximum_of_everything(q, k, v, mask=None):
    a = scores(q, k)
    e = (a - a.max()).exp()
    e = e if mask is None else torch.where(mask, e, 0)
    total = e.sum(-1, keepdim=True)
    p = e / torch.where(total == 0, 1, total)
    return p @ v, p


@wrong(SDPA)
def maximum_over_hidden_keys(q, k, v, mask=None):
    a = scores(q, k)
    e = (a - a.amax(-1, keepdim=True)).exp()
    e = e if mask is None else torch.where(mask, e, 0)
    total = e.sum(-1, keepdim=True)
    p = e / torch.where(total == 0, 1, total)
    return p @ v, p


@wrong(SDPA)
def keys_detached(q, k, v, mask=None):
    p = by_hand(scores(q, k.detach()), mask)
    return p @ v, p


@wrong(SDPA)
@torch.no_grad()
def without_gradients(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return p @ v, p


@wrong(SDPA)
def through_numpy(q, k, v, mask=None):
    a = (q.detach().double() @ k.detach().double().mT / math.sqrt(q.shape[-1])).numpy()
    a = a if mask is None else np.where(mask.numpy(), a, -np.inf)
    with np.errstate(all="ignore"):
        p = np.nan_to_num(np.exp(a - np.nan_to_num(a.max(-1, keepdims=True))))
        p = np.nan_to_num(p / p.sum(-1, keepdims=True))
    p = torch.from_numpy(p).to(q.dtype)
    return p @ v.detach(), p


@wrong(SDPA)
def mask_changed(q, k, v, mask=None):
    if mask is not None:
        mask.logical_not_()
    p = by_hand(scores(q, k), None if mask is None else ~mask)
    return p @ v, p


@wrong(SDPA)
def keys_changed(q, k, v, mask=None):
    k /= math.sqrt(k.shape[-1])
    p = by_hand(products(q, k), mask)
    return p @ v, p


@wrong(SDPA, "empty_row_uniform")  # of the output that is true
def empty_rows_get_the_mean(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    out = p @ v
    if mask is not None:
        out = torch.where(mask.any(-1, keepdim=True), out, v.mean(-2, keepdim=True))
    return out, p


@wrong(SDPA)
def best_three_keys(q, k, v, mask=None):
    a = scores(q, k)
    best = a >= a.topk(3).values[..., -1:]
    p = by_hand(a, best if mask is None else best & mask)
    return p @ v, p


@wrong(SDPA)
def over_queries_and_keys(q, k, v, mask=None):
    a = scores(q, k)
    mask = None if mask is None else mask.expand(a.shape).flatten(-2)
    p = by_hand(a.flatten(-2), mask).unflatten(-1, a.shape[-2:])
    return p @ v, p


@wrong(SDPA)
def heads_to_the_back(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return (p @ v).transpose(1, 2), p


@wrong(SDPA)
def values_of_the_first_head(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return p @ v[:, :1], p


@wrong(SDPA)
def a_sink(q, k, v, mask=None):
    a = F.pad(scores(q, k), (1, 0))
    p = by_hand(a, None if mask is None else F.pad(mask, (1, 0), value=True))[..., 1:]
    return p @ v, p


@wrong(SDPA)
def nothing(q, k, v, mask=None):
    pass


@wrong(SDPA)
def three_arguments(q, k, v):
    p = by_hand(scores(q, k))
    return p @ v, p


@wrong(SDPA)
def in_a_dictionary(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return {"output": p @ v, "weights": p}


@wrong(SDPA)
def typo(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return p @ v, weigths  # noqa: F821


class Attention(nn.Module):
    def forward(self, q, k, v, mask=None):
        p = by_hand(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        return p @ v, p


class Callable:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, q, k, v, mask=None):
        return self.attend(q, k, v, mask)

    def attend(self, q, k, v, mask=None):
        p = by_hand(self.scale(q.shape[-1]) * products(q, k), mask)
        return p @ v, p


right(SDPA, "a_module")(Attention())
right(SDPA, "a_callable_object")(Callable(lambda d: d**-0.5))
right(SDPA, "a_bound_method")(Callable(lambda d: d**-0.5).attend)


def any_power(power, q, k, v, mask=None):
    p = by_hand(products(q * q.shape[-1] ** power, k), mask)
    return p @ v, p


right(SDPA, "a_partial")(partial(any_power, -0.5))


@right(SDPA)
def other_letters(queries, keys, values, allowed=None):
    return list(Attention()(queries, keys, values, allowed))


@right(SDPA)
def in_a_named_tuple(q, k, v, mask=None):
    return namedtuple("Attended", "output weights")(*Attention()(q, k, v, mask))


@right(SDPA)
def not_contiguous(q, k, v, mask=None):
    p = by_hand(scores(q, k), mask)
    return (v.mT @ p.mT).mT, p.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)


@right(SDPA)
def in_float64(q, k, v, mask=None):
    out, p = Attention()(q.double(), k.double(), v.double(), mask)
    return out.to(q.dtype), p.to(q.dtype)


@right(SDPA)
def in_chunks_of_queries(q, k, v, mask=None):
    mask = torch.ones(1, 1, q.shape[2], k.shape[2], dtype=torch.bool) if mask is None else mask
    mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    parts = [Attention()(a, k, v, m) for a, m in zip(q.split(2, 2), mask.split(2, 2), strict=True)]
    return tuple(torch.cat(part, 2) for part in zip(*parts, strict=True))


@right(SDPA)
def online(q, k, v, mask=None):
    """One key after the other, with a running maximum and a running sum, in float32."""
    q32, k32, v32 = q.float() / math.sqrt(q.shape[-1]), k.float(), v.float()
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool) if mask is None else mask
    mask = mask.expand(*q.shape[:3], k.shape[2])
    top = torch.full(q.shape[:3], -1e30)
    total, out, es = torch.zeros(q.shape[:3]), torch.zeros(*q.shape[:3], v.shape[3]), []
    for s in range(k.shape[2]):
        a = (q32 * k32[:, :, None, s]).sum(-1)
        new = torch.where(mask[..., s], torch.maximum(top, a.detach()), top)
        e = torch.where(mask[..., s], a - new, -torch.inf).exp()
        shrink = (top - new).exp()
        total, out = total * shrink + e, out * shrink[..., None] + e[..., None] * v32[:, :, None, s]
        es = [old * shrink for old in es] + [e]
        top = new
    total = torch.where(total == 0, 1, total)[..., None]
    return (out / total).to(q.dtype), (torch.stack(es, -1) / total).to(q.dtype)


@right(SDPA)
def by_logsumexp(q, k, v, mask=None):
    a = scores(q.float(), k.float())
    if mask is not None:
        a = torch.where(mask, a, torch.finfo(torch.float32).min / 2)
    p = (a - a.logsumexp(-1, keepdim=True)).exp()
    p = p if mask is None else torch.where(mask, p, 0)
    return (p @ v.float()).to(q.dtype), p.to(q.dtype)


@right(SDPA)
def in_three_axes(q, k, v, mask=None):
    B, H, N, D = q.shape
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    a = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(D))
    hidden = None if mask is None else (~mask).expand(B, H, N, k.shape[1]).flatten(0, 1)
    p = a.softmax(2) if mask is None else a.masked_fill(hidden, lowest(a)).softmax(2).masked_fill(hidden, 0)
    return torch.bmm(p, v).view(B, H, N, -1), p.view(B, H, N, -1)


@right(SDPA)
def mapped_over_batch_and_heads(q, k, v, mask=None):
    def one(q, k, v, m):
        p = by_hand(q @ k.T / math.sqrt(q.shape[-1]), m)
        return p @ v, p

    mask = torch.ones(1, dtype=torch.bool) if mask is None else mask
    return torch.vmap(torch.vmap(one))(q, k, v, mask.expand(*q.shape[:3], k.shape[2]))


@right(SDPA)
def librarys_twice(q, k, v, mask=None):
    basis = torch.eye(k.shape[2], dtype=q.dtype).expand(*k.shape[:2], -1, -1)
    return tuple(F.scaled_dot_product_attention(q, k, x, attn_mask=mask) for x in (v, basis))


@right(SDPA)
def product_first_then_scaled(q, k, v, mask=None):
    p = by_hand(q @ k.mT / torch.tensor(q.shape[-1]).sqrt(), mask)
    return p @ v, p


@right(SDPA)
def minus_a_billion_in_float32(q, k, v, mask=None):
    a = (q @ k.mT).float() / q.shape[-1] ** 0.5
    p = a.softmax(-1) if mask is None else a.masked_fill(mask == 0, -1e9).softmax(-1) * mask.any(-1, keepdim=True)
    p = p.to(q.dtype)
    return p @ v, p


@right(SDPA)
def finite_bias(q, k, v, mask=None):
    a = scores(q, k)
    bias = 0 if mask is None else torch.where(mask, 0.0, torch.finfo(a.dtype).min / 2).to(a.dtype)
    p = torch.log_softmax(a + bias, -1).exp()
    p = p if mask is None else p * mask
    return p @ v, p


@right(SDPA)
def only_the_allowed_keys(q, k, v, mask=None):
    """Row by row over the keys that are allowed, with no fill at all."""
    mask = torch.ones(1, dtype=torch.bool) if mask is None else mask
    mask = mask.expand(*q.shape[:3], k.shape[2])
    out, weights = [], []
    for b, h, n in np.ndindex(*q.shape[:3]):
        keys = mask[b, h, n].nonzero().flatten()
        p = torch.softmax(k[b, h, keys] @ (q[b, h, n] / q.shape[-1] ** 0.5), 0)
        out.append(p @ v[b, h, keys])
        weights.append(torch.zeros(k.shape[2], dtype=q.dtype).index_add(0, keys, p))
    return torch.stack(out).view(*q.shape[:3], -1), torch.stack(weights).view(*q.shape[:3], -1)


@right(SDPA)
def filled_and_nan_to_num(q, k, v, mask=None):
    a = scores(q, k)
    p = torch.nan_to_num((a if mask is None else a.masked_fill(~mask, -math.inf)).softmax(-1))
    return p @ v, p


@right(SDPA)
def empty_rows_see_all_for_a_moment(q, k, v, mask=None):
    a = scores(q, k)
    if mask is None:
        return a.softmax(-1) @ v, a.softmax(-1)
    some = mask.any(-1, keepdim=True)
    p = a.masked_fill(~mask & some, -math.inf).softmax(-1) * some
    return p @ v, p


@right(SDPA)
def talkative_and_seeding(q, k, v, mask=None):
    print("shapes", q.shape, k.shape, v.shape)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    return Attention()(q, k, v, mask)


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask):
        p = by_hand(scores(q, k), mask)
        ctx.save_for_backward(q, k, v, p)
        return p @ v, p

    @staticmethod
    def backward(ctx, d_out, d_weights):
        q, k, v, p = ctx.saved_tensors
        d_p = d_out @ v.mT + d_weights
        d_a = p * (d_p - (p * d_p).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
        return d_a @ k, d_a.mT @ q, p.mT @ d_out, None


@right(SDPA)
def own_backward(q, k, v, mask=None):
    return Function.apply(q, k, v, mask)


def root_d(q, k, v):
    return q.shape[-1] ** -0.5


def staged(q, k, v, mask=None, *, scale=root_d, hide="fill", over=-1, mixed="v", empty="zeroed"):
    """A third implementation, to make two mistakes in."""
    a = (q * scale(q, k, v)) @ k.mT
    shown = torch.ones(a.shape[-2:], dtype=torch.bool) if mask is None else ~mask if hide == "inverted" else mask
    if hide in ("fill", "inverted"):
        a = torch.where(shown, a, torch.finfo(a.dtype).min)
    elif hide == "zero":
        a = torch.where(shown, a, 0)
    p = a.softmax(over)
    if hide == "after" or (hide in ("fill", "inverted") and empty == "zeroed"):
        p = torch.where(shown, p, 0)
    return p @ (k if mixed == "k" else v), p


SCALES = {
    "no_scale": lambda q, k, v: 1.0,
    "divides_by_d": lambda q, k, v: 1 / q.shape[-1],
    "root_of_dv": lambda q, k, v: v.shape[-1] ** -0.5,
    "times_root_d": lambda q, k, v: q.shape[-1] ** 0.5,
    "root_of_s": lambda q, k, v: k.shape[-2] ** -0.5,
}
HIDING = {
    "mask_inverted": {"hide": "inverted"},
    "mask_ignored": {"hide": "never"},
    "mask_fills_zero": {"hide": "zero"},
    "mask_after_softmax": {"hide": "after"},
    "empty_row_uniform": {"empty": "left"},
}
OVER = {"over_queries": {"over": -2}, "over_heads": {"over": 1}}
MIXING = {"weights_times_keys": {"mixed": "k"}}
STAGES = {name: {"scale": f} for name, f in SCALES.items()} | HIDING | OVER | MIXING
PAIRS = (
    *((a, b) for a in ("no_scale", "divides_by_d") for b in HIDING),
    *((a, b) for a in OVER for b in ("no_scale", "mask_inverted")),
    ("root_of_dv", "mask_ignored"), ("root_of_s", "over_queries"), ("times_root_d", "mask_ignored"),
    ("weights_times_keys", "no_scale"), ("weights_times_keys", "mask_inverted"), ("over_queries", "weights_times_keys"),
)  # fmt: skip
for names in PAIRS:
    pair(SDPA, *names)(partial(staged, **STAGES[names[0]] | STAGES[names[1]]))


@pair(SDPA, "divides_by_d", "nan_in_the_gradient")
def by_d_and_a_bias_of_minus_infinity(q, k, v, mask=None):
    a = products(q, k) / q.shape[-1]
    p = (a if mask is None else a + torch.where(mask, 0.0, -math.inf).to(a.dtype)).softmax(-1).nan_to_num(0)
    return p @ v, p


@pair(SDPA, "no_scale", "empty_row_nan")
def unscaled_and_nan(q, k, v, mask=None):
    a = products(q, k)
    p = (a if mask is None else torch.where(mask, a, -math.inf)).softmax(-1)
    return p @ v, p


@pair(SDPA, "float32_returned", "empty_row_uniform")
def float32_and_uniform(q, k, v, mask=None):
    a = scores(q.float(), k.float())
    p = (a if mask is None else torch.where(mask, a, -1e9)).softmax(-1)
    return p @ v.float(), p


@pair(SDPA, "q_changed", "mask_inverted")
def changed_and_inverted(q, k, v, mask=None):
    q.div_(math.sqrt(q.shape[-1]))
    p = by_hand(products(q, k), None if mask is None else ~mask)
    return p @ v, p


# attention_backward: q, k, v as above, d_out (B, H, N, Dv)

BACKWARD = "attention_backward"


def parts(q, k, v, d_out, scale=None):
    """The weights and the gradient that reaches them."""
    p = by_hand(products(q, k) * (q.shape[-1] ** -0.5 if scale is None else scale))
    return p, torch.einsum("bhnd,bhsd->bhns", d_out, v)


def finish(q, k, p, d_s, d_out, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    d_q = torch.einsum("bhns,bhsd->bhnd", d_s, k) * scale
    d_k = torch.einsum("bhns,bhnd->bhsd", d_s, q) * scale
    return d_q, d_k, torch.einsum("bhns,bhnd->bhsd", p, d_out)


def jacobian(p, d_p):
    """Row by row with the whole Jacobian diag(p) − p pᵀ."""
    J = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]
    return (J @ d_p[..., None])[..., 0]


@mistake(BACKWARD, "scale_missing")
def scale_lost(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, jacobian(p, d_p), d_out, scale=1)


@mistake(BACKWARD, "divided_by_d")
def scaled_twice(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, jacobian(p, d_p) / math.sqrt(q.shape[-1]), d_out)


@mistake(BACKWARD, "scale_missing_in_the_weights")
def raw_weights(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out, scale=1)
    return finish(q, k, p, jacobian(p, d_p), d_out)


@mistake(BACKWARD, "no_scale_at_all")
def no_root_anywhere(q, k, v, d_out):
    with torch.enable_grad():
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        return torch.autograd.grad((q @ k.mT).softmax(-1) @ v, (q, k, v), d_out)


@mistake(BACKWARD, "no_row_sum")
def diagonal_only(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, d_p * p, d_out)


@mistake(BACKWARD, "elementwise")
def like_a_sigmoid(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, d_p * (p - p**2), d_out)


@mistake(BACKWARD, "softmax_skipped")
def linear_attention(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, d_p, d_out)


@mistake(BACKWARD, "plain_row_sum")
def row_sum_unweighted(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * d_p - p * torch.einsum("bhns->bhn", d_p)[..., None], d_out)


@mistake(BACKWARD, "mean_of_dp")
def centred_dp(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * (d_p - d_p.sum(-1, keepdim=True) / d_p.shape[-1]), d_out)


@mistake(BACKWARD, "outer_weights_missing")
def bracket_alone(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, d_p - torch.einsum("bhns,bhns->bhn", p, d_p).unsqueeze(-1), d_out)


@mistake(BACKWARD, "summed_over_queries")
def sum_down_the_column(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * d_p - p * torch.einsum("bhns,bhns->bhs", p, d_p).unsqueeze(-2), d_out)


@mistake(BACKWARD, "values_by_dp")
def dp_for_p(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    d_q, d_k, _ = finish(q, k, p, jacobian(p, d_p), d_out)
    return d_q, d_k, d_p.mT @ d_out


@mistake(BACKWARD, "values_by_da")
def ds_for_p(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    d_s = jacobian(p, d_p)
    d_q, d_k, _ = finish(q, k, p, d_s, d_out)
    return d_q, d_k, torch.einsum("bhns,bhnd->bhsd", d_s, d_out)


@mistake(BACKWARD, "queries_and_keys_exchanged")
def returned_in_another_order(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    d_q, d_k, d_v = finish(q, k, p, jacobian(p, d_p), d_out)
    return [d_k, d_q, d_v]


@mistake(BACKWARD, "weights_not_transposed")
def no_transpose(q, k, v, d_out):
    scale = q.shape[-1] ** -0.5
    p, d_p = parts(q, k, v, d_out)
    d_s = p * (d_p - (p * d_p).sum(-1, keepdim=True)) * scale
    return d_s @ k, d_s @ q, p @ d_out


def exact(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, jacobian(p, d_p), d_out)


@wrong(BACKWARD)
def gradients_of_one_query_squeezed(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return [x.squeeze(2) for x in finish(q, k, p, jacobian(p, d_p), d_out)]


@wrong(BACKWARD)
def scaled_in_place(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    k *= q.shape[-1] ** -0.5
    d_s = jacobian(p, d_p)
    return d_s @ k, d_s.mT @ q * q.shape[-1] ** -0.5, p.mT @ d_out


@wrong(BACKWARD)
def d_out_ignored(q, k, v, d_out):
    return exact(q, k, v, torch.ones_like(d_out))


@wrong(BACKWARD)
def sign_lost(q, k, v, d_out):
    d_q, d_k, d_v = exact(q, k, v, d_out)
    return -d_q, -d_k, d_v


@wrong(BACKWARD)
def ascending(q, k, v, d_out):
    return tuple(-x for x in exact(q, k, v, d_out))


@wrong(BACKWARD)
def last_first(q, k, v, d_out):
    return exact(q, k, v, d_out)[::-1]


@wrong(BACKWARD)
def keys_from_keys(q, k, v, d_out):
    d_q, _, d_v = exact(q, k, v, d_out)
    p, d_p = parts(q, k, v, d_out)
    return d_q, (jacobian(p, d_p).mT @ jacobian(p, d_p)) @ k, d_v


@wrong(BACKWARD)
def averaged_over_the_batch(q, k, v, d_out):
    return tuple(x.mean(0, keepdim=True).expand(x.shape) for x in exact(q, k, v, d_out))


@wrong(BACKWARD)
def softmax_over_queries(q, k, v, d_out):
    p = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-2)
    d_p = d_out @ v.mT
    return finish(q, k, p, p * (d_p - (p * d_p).sum(-1, keepdim=True)), d_out)


@wrong(BACKWARD)
def keys_left_at_zero(q, k, v, d_out):
    d_q, d_k, d_v = exact(q, k, v, d_out)
    return d_q, torch.zeros_like(d_k), d_v


@mistake(BACKWARD, "scale_missing_in_d_q")
def keys_alone_scaled(q, k, v, d_out):
    d_q, d_k, d_v = exact(q, k, v, d_out)
    return d_q * q.shape[-1] ** 0.5, d_k, d_v


@mistake(BACKWARD, "scale_missing_in_d_k")
def queries_alone_scaled(q, k, v, d_out):
    d_q, d_k, d_v = exact(q, k, v, d_out)
    return d_q, d_k * math.sqrt(k.shape[-1]), d_v


@mistake(BACKWARD, "summed_over_all")
def one_sum_for_all(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * d_p - p * torch.einsum("bhns,bhns->", p, d_p), d_out)


@mistake(BACKWARD, "keys_not_transposed")
def keys_by_rows(q, k, v, d_out):
    d_q, _, d_v = exact(q, k, v, d_out)
    p, d_p = parts(q, k, v, d_out)
    return d_q, jacobian(p, d_p) @ (q / q.shape[-1] ** 0.5), d_v


@wrong(BACKWARD)
def row_sum_added(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * (d_p + (p * d_p).sum(-1, keepdim=True)), d_out)


@wrong(BACKWARD)
def scale_in_the_values_too(q, k, v, d_out):
    d_q, d_k, d_v = exact(q, k, v, d_out)
    return d_q, d_k, d_v * q.shape[-1] ** -0.5


@wrong(BACKWARD)
def only_two(q, k, v, d_out):
    return exact(q, k, v, d_out)[:2]


right(BACKWARD)(exact)


@right(BACKWARD)
def vector_jacobian_product(q, k, v, d_out):
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    return torch.func.vjp(attend, q, k, v)[1](d_out)


@right(BACKWARD)
def numpy_in_double(q, k, v, d_out):
    q, k, v, d_out = (x.double().numpy() for x in (q, k, v, d_out))
    a = np.einsum("bhnd,bhsd->bhns", q, k) / np.sqrt(q.shape[-1])
    p = np.exp(a - a.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    d_p = d_out @ v.swapaxes(-1, -2)
    d_s = p * (d_p - np.sum(p * d_p, -1, keepdims=True)) / np.sqrt(q.shape[-1])
    return d_s @ k, d_s.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ d_out


@right(BACKWARD)
def from_the_identity(q, k, v, d_out):
    """P ∘ (dP − rowsum(dO ∘ O)), one batch item after the other, in float64."""

    def one(q, k, v, d_out):
        a = q @ k.mT / math.sqrt(q.shape[-1])
        p = (a - a.logsumexp(-1, keepdim=True)).exp()
        d_a = p * (d_out @ v.mT - (d_out * (p @ v)).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
        return d_a @ k, d_a.mT @ q, p.mT @ d_out

    items = zip(*(x.double() for x in (q, k, v, d_out)), strict=True)
    return tuple(map(torch.stack, zip(*(one(*item) for item in items), strict=True)))


@right(BACKWARD)
def every_query_alone(q, k, v, d_out):
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    scale = 1 / math.sqrt(q.shape[-1])
    for b, h, n in np.ndindex(*q.shape[:3]):
        p = torch.softmax(k[b, h] @ q[b, h, n] * scale, 0)
        g = v[b, h] @ d_out[b, h, n]
        d_s = scale * p * (g - p @ g)
        d_q[b, h, n] = d_s @ k[b, h]
        d_k[b, h] += torch.outer(d_s, q[b, h, n])
        d_v[b, h] += torch.outer(p, d_out[b, h, n])
    return [d_q, d_k, d_v]


@pair(BACKWARD, "scale_missing", "no_row_sum")
def unscaled_diagonal(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * d_p, d_out, scale=1)


@pair(BACKWARD, "scale_missing", "scale_missing_in_the_weights", also=("no_scale_at_all",))
def unscaled_twice(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out, scale=1)
    return finish(q, k, p, jacobian(p, d_p), d_out, scale=1)


@pair(BACKWARD, "queries_and_keys_exchanged", "scale_missing")
def exchanged_and_unscaled(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    d_q, d_k, d_v = finish(q, k, p, jacobian(p, d_p), d_out, scale=1)
    return d_k, d_q, d_v


@pair(BACKWARD, "values_by_da", "no_row_sum")
def diagonal_and_ds(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    d_q, d_k, _ = finish(q, k, p, p * d_p, d_out)
    return d_q, d_k, (p * d_p).mT @ d_out


@pair(BACKWARD, "summed_over_queries", "divided_by_d")
def columns_by_d(q, k, v, d_out):
    p, d_p = parts(q, k, v, d_out)
    return finish(q, k, p, p * (d_p - (p * d_p).sum(-2, keepdim=True)), d_out, scale=1 / q.shape[-1])
