"""Answers to chapter 01 as other hands would write them."""

import math
from functools import reduce

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from . import Sheet

sheet = Sheet("ch01")
mistake, wrong, right, pair = sheet.mistake, sheet.wrong, sheet.right, sheet.pair

# softmax: scores of any shape, dim

SOFTMAX = "softmax"


@mistake(SOFTMAX, "not_normalised")
def numpys_exp_alone(scores, dim):
    s = scores.double().numpy()
    return torch.from_numpy(np.exp(s - s.max(axis=dim, keepdims=True))).to(scores.dtype)


@mistake(SOFTMAX, "scores_over_their_sum")
def shares_of_the_total(scores, dim):
    return scores.div(scores.sum(dim).unsqueeze(dim))


@mistake(SOFTMAX, "scores_returned")
def no_step_at_all(scores, dim):
    return torch.clone(scores)


@mistake(SOFTMAX, "dim_ignored")
def librarys_last_axis(scores, dim):
    return F.softmax(scores, dim=-1)


@mistake(SOFTMAX, "dim_ignored")
def default_never_replaced(scores, dim=-1):
    top = torch.max(scores, -1, keepdim=True).values
    return torch.exp(scores - top - torch.log(torch.exp(scores - top).sum(-1, keepdim=True)))


@mistake(SOFTMAX, "over_everything")
def flattened(scores, dim):
    return scores.flatten().softmax(0).view_as(scores)


@mistake(SOFTMAX, "over_everything")
def maximum_and_sum_of_all(scores, dim):
    e = torch.exp(scores - scores.max())
    return e / torch.sum(e)


@mistake(SOFTMAX, "no_maximum")
def the_formula_as_it_stands(scores, dim):
    return torch.exp(scores) / torch.exp(scores).sum(dim=dim, keepdim=True)


@mistake(SOFTMAX, "no_maximum")
def the_formula_in_double(scores, dim):
    e = scores.double().exp()
    return (e / e.sum(dim, True)).to(scores.dtype)


@mistake(SOFTMAX, "no_maximum")
def through_the_exponential_of_logsumexp(scores, dim):
    return scores.exp() / scores.logsumexp(dim, keepdim=True).exp()


@mistake(SOFTMAX, "one_maximum_for_all")
def largest_number_anywhere(scores, dim):
    largest = max(scores.flatten().tolist())
    e = (scores - largest).exp()
    return e.div(e.sum(dim, keepdim=True))


@mistake(SOFTMAX, "mean_taken_off")
def centred_scores(scores, dim):
    e = torch.exp(scores - torch.mean(scores, dim, keepdim=True))
    return torch.div(e, e.sum(dim).unsqueeze(dim))


@mistake(SOFTMAX, "sum_loses_its_axis")
def divided_without_keepdim(scores, dim):
    e = (scores - torch.max(scores, dim=dim, keepdim=True)[0]).exp()
    return e / torch.sum(e, dim=dim)


@mistake(SOFTMAX, "maximum_loses_its_axis")
def subtracted_without_keepdim(scores, dim):
    e = torch.exp(scores - torch.max(scores, dim=dim)[0])
    return e / torch.sum(e, dim=dim, keepdim=True)


@mistake(SOFTMAX, "scores_changed")
def minus_equals(scores, dim):
    scores -= scores.max(dim, keepdim=True).values
    e = scores.exp()
    return e / e.sum(dim, keepdim=True)


@mistake(SOFTMAX, "scores_changed")
def every_step_in_place(scores, dim):
    scores.sub_(scores.amax(dim, keepdim=True)).exp_()
    return scores.div_(scores.sum(dim, keepdim=True))


@mistake(SOFTMAX, "float32_returned")
def always_in_float(scores, dim):
    return torch.softmax(scores, dim, dtype=torch.float32)


@wrong(SOFTMAX)
def median_taken_off(scores, dim):
    e = (scores - scores.median(dim, keepdim=True).values).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX)
def last_taken_off(scores, dim):
    e = (scores - scores.narrow(dim, -1, 1)).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX)
def minimum_taken_off(scores, dim):
    e = (scores - scores.amin(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX)
def sigmoids(scores, dim):
    return scores.sigmoid()


@wrong(SOFTMAX)
def sigmoids_normalised(scores, dim):
    return scores.sigmoid() / scores.sigmoid().sum(dim, keepdim=True)


@wrong(SOFTMAX)
def logarithms(scores, dim):
    return F.log_softmax(scores, dim)


@wrong(SOFTMAX)
def softmin(scores, dim):
    return F.softmin(scores, dim)


@wrong(SOFTMAX)
def powers_of_two(scores, dim):
    e = torch.exp2(scores - scores.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX)
def first_axis_always(scores, dim):
    return scores.softmax(0)


@wrong(SOFTMAX)
def one_always(scores, dim):
    return scores.softmax(min(1, scores.ndim - 1))


@wrong(SOFTMAX)
def size_of_dim(scores, dim):
    return scores.softmax(abs(dim) % scores.ndim)


@wrong(SOFTMAX)
def clamped(scores, dim):
    e = scores.clamp(-80, 80).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX)
def a_large_epsilon(scores, dim):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-3)


@wrong(SOFTMAX)
def nan_wiped_away(scores, dim):
    e = scores.exp()
    return (e / e.sum(dim, keepdim=True)).nan_to_num()


@wrong(SOFTMAX)
def own_maximum_and_sum_of_all(scores, dim):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum()


@wrong(SOFTMAX)
def twice(scores, dim):
    return scores.softmax(dim).softmax(dim)


@wrong(SOFTMAX)
def squares(scores, dim):
    return scores.square() / scores.square().sum(dim, keepdim=True)


@wrong(SOFTMAX)
def one_for_the_largest(scores, dim):
    return (scores == scores.amax(dim, keepdim=True)).to(scores.dtype)


@wrong(SOFTMAX)
def largest_weight_one(scores, dim):
    w = scores.softmax(dim)
    return w / w.norm(dim=dim, keepdim=True)


@wrong(SOFTMAX)
def slightly_off(scores, dim):
    return scores.softmax(dim) * 1.00003


@wrong(SOFTMAX)
def through_bfloat16(scores, dim):
    return scores.bfloat16().softmax(dim).to(scores.dtype)


@wrong(SOFTMAX)
def last_axis_moved_there(scores, dim):
    return scores.movedim(dim, -1).softmax(-1)


@wrong(SOFTMAX)
def largest_without_its_sign(scores, dim):
    e = (scores - scores.abs().amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


@wrong(SOFTMAX, "scores_changed")
def dim_moved_to_the_front_and_written_to(scores, dim):
    rows = scores.movedim(dim, 0).contiguous()  # a copy, unless dim was in front already
    rows -= rows.amax(0)
    return (rows.exp() / rows.exp().sum(0)).movedim(0, dim)


@mistake(SOFTMAX, "scores_changed")
def the_result_put_in_their_place(scores, dim):
    scores[:] = torch.softmax(scores, dim)
    return scores


@wrong(SOFTMAX)
def minus_dropped(scores, dim):
    return scores.softmax(abs(dim) if abs(dim) < scores.ndim else -1)


@wrong(SOFTMAX)
def never_before_the_last_but_one(scores, dim):
    return scores.softmax(max(dim, -2))


@wrong(SOFTMAX)
def axes_of_size_one_dropped(scores, dim):
    return scores.softmax(dim).squeeze()


@wrong(SOFTMAX)
def float32_given_back_in_double(scores, dim):
    weights = scores.double().softmax(dim)
    return weights if scores.dtype == torch.float32 else weights.to(scores.dtype)


@wrong(SOFTMAX, "scores_changed")
def written_to_only_where_they_are_large(scores, dim):
    if scores.abs().max() > 80:
        scores -= scores.amax(dim, keepdim=True)
    return scores.softmax(dim)


@right(SOFTMAX)
def a_small_epsilon(scores, dim):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-6)


@right(SOFTMAX)
def exp_of_log_softmax(scores, dim):
    return F.log_softmax(scores, dim).exp()


@right(SOFTMAX)
def in_numpy(scores, dim):
    s = np.moveaxis(scores.detach().to(torch.float64).numpy(), dim, 0)
    e = np.exp(s - s.max(0))
    return torch.tensor(np.moveaxis(e / e.sum(0), 0, dim)).type(scores.dtype)


@right(SOFTMAX)
def by_logaddexp(scores, dim):
    total = reduce(torch.logaddexp, scores.float().unbind(dim)).unsqueeze(dim)
    return torch.exp(scores.float() - total).to(scores.dtype)


@right(SOFTMAX)
def running(scores, dim):
    """One pass: a sum that is rescaled whenever the maximum rises."""
    largest = torch.full_like(scores.select(dim, 0), -torch.inf)
    total = torch.zeros_like(largest)
    for s in scores.unbind(dim):
        higher = torch.maximum(largest, s)
        total = total * (largest - higher).exp() + (s - higher).exp()
        largest = higher
    return (scores - largest.unsqueeze(dim)).exp() / total.unsqueeze(dim)


@right(SOFTMAX)
def axes_exchanged_and_back(scores, dim):
    return F.softmax(scores.transpose(dim, -1), -1).transpose(dim, -1)


@right(SOFTMAX)
def number_by_number(scores, dim):
    def one(row):
        e = [math.exp(x - max(row)) for x in row]
        return [x / sum(e) for x in e]

    rows = scores.movedim(dim, -1)
    made = [one(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
    return torch.tensor(made, dtype=scores.dtype).reshape(rows.shape).movedim(-1, dim)


@right(SOFTMAX)
def more_than_the_maximum_taken_off(scores, dim):
    e = (scores - scores.amax(dim, keepdim=True) - 1).exp()
    return e / e.sum(dim, keepdim=True)


right(SOFTMAX, "a_module")(lambda scores, dim: nn.Softmax(dim)(scores))


@pair(SOFTMAX, "no_maximum", "not_normalised")
def exponentials(scores, dim):
    return torch.exp(scores)


@pair(SOFTMAX, "no_maximum", "over_everything")
def exponentials_over_all(scores, dim):
    e = torch.exp(scores)
    return e / e.sum()


@pair(SOFTMAX, "no_maximum", "dim_ignored")
def formula_along_the_last(scores, dim):
    e = torch.exp(scores)
    return e / e.sum(-1, keepdim=True)


@pair(SOFTMAX, "no_maximum", "sum_loses_its_axis")
def formula_without_keepdim(scores, dim):
    e = scores.exp()
    return e / e.sum(dim)


@pair(SOFTMAX, "maximum_loses_its_axis", "sum_loses_its_axis")
def no_keepdim_anywhere(scores, dim):
    e = torch.exp(scores - scores.max(dim).values)
    return e / e.sum(dim)


@pair(SOFTMAX, "one_maximum_for_all", "dim_ignored")
def largest_of_all_along_the_last(scores, dim):
    e = torch.exp(scores - torch.max(scores))
    return e / e.sum(-1, keepdim=True)


@pair(SOFTMAX, "dim_ignored", "float32_returned")
def last_axis_in_float(scores, dim):
    return scores.float().softmax(-1)


@pair(SOFTMAX, "scores_changed", "not_normalised")
def exp_in_place(scores, dim):
    return scores.sub_(scores.amax(dim, keepdim=True)).exp()


# soft_lookup: query (D,), keys (S, D), values (S, Dv), temperature -> output (Dv,), weights (S,)

LOOKUP = "soft_lookup"


@mistake(LOOKUP, "times_temperature")
def beta_for_temperature(query, keys, values, temperature=1.0):
    weights = torch.softmax(temperature * torch.mv(keys, query), 0)
    return torch.einsum("s,sd->d", weights, values), weights


@mistake(LOOKUP, "temperature_ignored")
def an_argument_never_read(query, keys, values, temperature=1.0):
    weights = torch.softmax((keys * query).sum(1), 0)
    return (weights.unsqueeze(1) * values).sum(0), weights


@mistake(LOOKUP, "temperature_ignored")
def divided_out_again(query, keys, values, temperature=1.0):
    s = keys @ query
    e = (s - s.max()).exp() / temperature
    weights = e / e.sum()
    return weights @ values, weights


@mistake(LOOKUP, "weights_over_temperature")
def softmax_then_divide(query, keys, values, temperature=1.0):
    weights = F.softmax(keys.matmul(query), dim=0).div(temperature)
    return values.T @ weights, weights


@mistake(LOOKUP, "cosine")
def normalised_first(query, keys, values, temperature=1.0):
    s = F.normalize(keys, dim=1) @ F.normalize(query, dim=0)
    weights = (s / temperature).softmax(0)
    return weights @ values, weights


@mistake(LOOKUP, "divided_by_root_d")
def as_in_attention(query, keys, values, temperature=1.0):
    basis = torch.eye(len(keys))
    scale = query.shape[0] ** -0.5 / temperature
    return tuple(F.scaled_dot_product_attention(query[None], keys, x, scale=scale).squeeze(0) for x in (values, basis))


@mistake(LOOKUP, "not_normalised")
def exponentials_as_weights(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    weights = torch.exp(s - torch.max(s))
    return sum(w * value for w, value in zip(weights, values, strict=True)), weights


@mistake(LOOKUP, "scores_over_their_sum")
def shares_of_the_similarity(query, keys, values, temperature=1.0):
    s = torch.stack([torch.dot(query, key) for key in keys]) / temperature
    weights = s / torch.sum(s)
    return torch.matmul(weights, values), weights


@mistake(LOOKUP, "scores_for_weights")
def sum_of_scores_times_values(query, keys, values, temperature=1.0):
    s = (keys * query).sum(-1) / temperature
    return (s[:, None] * values).sum(0), s


@mistake(LOOKUP, "no_maximum")
def exp_over_sum_of_exp(query, keys, values, temperature=1.0):
    e = torch.exp(torch.matmul(keys, query) / temperature)
    weights = e / torch.sum(e)
    return torch.matmul(weights, values), weights


@mistake(LOOKUP, "keys_mixed")
def mixture_of_keys(query, keys, values, temperature=1.0):
    weights = (query @ keys.T / temperature).softmax(-1)
    return (weights[:, None] * keys).sum(0), weights


@mistake(LOOKUP, "mixture_of_one")
def chosen_by_the_weights(query, keys, values, temperature=1.0):
    weights = (query @ keys.T / temperature).softmax(-1)
    return values[int(torch.argmax(weights))], weights


@mistake(LOOKUP, "mean_of_products")
def mean_along_the_keys(query, keys, values, temperature=1.0):
    weights = (query @ keys.T / temperature).softmax(-1)
    return torch.mean(weights[:, None] * values, 0), weights


@mistake(LOOKUP, "only_the_weights")
def softmax_and_done(query, keys, values, temperature=1.0):
    return torch.softmax(torch.einsum("d,sd->s", query, keys) / temperature, -1)


@mistake(LOOKUP, "only_the_mixture")
def like_a_dictionary(query, keys, values, temperature=1.0):
    return torch.softmax(torch.einsum("d,sd->s", query, keys) / temperature, -1) @ values


@mistake(LOOKUP, "exchanged")
def weights_first(query, keys, values, temperature=1.0):
    weights = torch.softmax(torch.einsum("d,sd->s", query, keys) / temperature, -1)
    return weights, weights @ values


@mistake(LOOKUP, "weights_out_of_torch")
def a_list_of_weights(query, keys, values, temperature=1.0):
    s = [float(key @ query) / temperature for key in keys]
    e = [math.exp(x - max(s)) for x in s]
    weights = torch.tensor([x / sum(e) for x in e])
    return weights @ values, weights


@mistake(LOOKUP, "weights_out_of_torch")
def weights_without_gradient(query, keys, values, temperature=1.0):
    with torch.no_grad():
        weights = torch.softmax(keys @ query / temperature, 0)
    return weights @ values, weights


@mistake(LOOKUP, "all_out_of_torch")
def in_numpy_alone(query, keys, values, temperature=1.0):
    q, k, v = (x.detach().double().numpy() for x in (query, keys, values))
    s = k @ q / temperature
    w = np.exp(s - s.max())
    w /= w.sum()
    return w @ v, w


@mistake(LOOKUP, "hard")
def the_nearest_entry(query, keys, values, temperature=1.0):
    s = torch.mv(keys, query)
    weights = torch.zeros(len(s))
    weights[s.argmax()] = 1.0
    return weights @ values, weights


@mistake(LOOKUP, "hard")
def the_very_coldest(query, keys, values, temperature=1.0):
    s = torch.mv(keys, query)
    weights = (s == s.max()).float()
    return values[s.argmax()], weights


@mistake(LOOKUP, "returned_weights_detached")
def weights_for_a_plot(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return weights @ values, weights.detach()


@mistake(LOOKUP, "returned_weights_detached")
def weights_as_an_array(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return torch.einsum("s,sv->v", weights, values), weights.detach().numpy()


@wrong(LOOKUP)
def query_divided_in_place(query, keys, values, temperature=1.0):
    query /= temperature
    weights = (keys @ query).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def values_weighted_in_place(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    values *= weights[:, None]
    return values.sum(0), weights


@wrong(LOOKUP)
def an_output_of_width_one_squeezed(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return (weights[None] @ values).squeeze(), weights


@wrong(LOOKUP)
def the_weight_of_one_entry_squeezed(query, keys, values, temperature=1.0):
    weights = (keys @ query[:, None] / temperature).softmax(0)
    return (weights * values).sum(0), weights.squeeze()


@wrong(LOOKUP)
def never_colder_than_a_thousandth(query, keys, values, temperature=1.0):
    weights = (keys @ query / max(temperature, 0.001)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def never_hotter_than_a_hundred(query, keys, values, temperature=1.0):
    weights = (keys @ query / min(temperature, 100.0)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def an_epsilon_beside_the_temperature(query, keys, values, temperature=1.0):
    weights = (keys @ query / (temperature + 1e-9)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def a_floor_under_the_temperature(query, keys, values, temperature=1.0):
    weights = (keys @ query / max(temperature, 0.01)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def a_choice_in_the_cold(query, keys, values, temperature=1.0):
    scores = keys @ query / temperature
    weights = scores.softmax(0) if temperature > 0.1 else torch.eye(len(keys), dtype=keys.dtype)[scores.argmax()]
    return weights @ values, weights


@wrong(LOOKUP)
def by_distance(query, keys, values, temperature=1.0):
    weights = (-(keys - query).norm(dim=1) / temperature).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def by_half_the_squared_distance(query, keys, values, temperature=1.0):
    weights = (-(keys - query).square().sum(1) / (2 * temperature)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def by_temperature_squared(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature**2).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def by_root_of_temperature(query, keys, values, temperature=1.0):
    weights = (keys @ query / math.sqrt(temperature)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def by_d(query, keys, values, temperature=1.0):
    weights = (keys @ query / (temperature * len(query))).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def by_sigmoids(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).sigmoid()
    return weights @ values, weights


@wrong(LOOKUP, "temperature_ignored")
def temperature_added(query, keys, values, temperature=1.0):
    weights = (keys @ query + temperature).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def farthest_first(query, keys, values, temperature=1.0):
    weights = (-(keys @ query) / temperature).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def two_best_only(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    weights = s.masked_fill(s < s.topk(2).values[-1], -torch.inf).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def all_alike(query, keys, values, temperature=1.0):
    weights = torch.full((len(keys),), 1 / len(keys))
    return values.mean(0), weights


@wrong(LOOKUP)
def weighted_values_not_added(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return weights[:, None] * values, weights


@wrong(LOOKUP)
def weights_for_the_output_too(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return weights, weights


@wrong(LOOKUP)
def scores_for_weights(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    return s.softmax(0) @ values, s


@wrong(LOOKUP)
def never_colder_than_a_tenth(query, keys, values, temperature=1.0):
    weights = (keys @ query / max(temperature, 0.1)).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def components_softmaxed(query, keys, values, temperature=1.0):
    weights = (keys * query / temperature).softmax(0).mean(1)
    return weights @ values, weights


@wrong(LOOKUP)
def slightly_warm(query, keys, values, temperature=1.0):
    weights = (keys @ query / (temperature + 1e-3)).softmax(0)
    return weights @ values, weights


@mistake(LOOKUP, "mixed_with_detached_weights")
def values_times_items(query, keys, values, temperature=1.0):
    weights = (keys @ query / temperature).softmax(0)
    return sum(w.item() * value for w, value in zip(weights, values, strict=True)), weights


@mistake(LOOKUP, "weights_over_temperature")
def shares_divided_by_the_temperature(query, keys, values, temperature=1.0):
    s = keys @ query
    e = torch.exp(s - s.max())
    weights = e / e.sum() / temperature
    return (weights[:, None] * values).sum(0), weights


@wrong(LOOKUP)
def divided_in_place_in_the_cold(query, keys, values, temperature=1.0):
    if temperature < 0.01:
        keys /= temperature
        temperature = 1.0
    weights = (keys @ query / temperature).softmax(0)
    return weights @ values, weights


@wrong(LOOKUP)
def largest_score_without_its_sign(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    e = (s - s.abs().max()).exp()
    return e @ values / e.sum(), e / e.sum()


@wrong(LOOKUP)
def first_score_taken_off(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    e = (s - s[0]).exp()
    return e @ values / e.sum(), e / e.sum()


@wrong(LOOKUP)
def running_maximum_from_zero(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    e = (s - s.max().clamp(min=0)).exp()
    return e @ values / e.sum(), e / e.sum()


@wrong(LOOKUP)
def query_of_width_one_squeezed(query, keys, values, temperature=1.0):
    weights = (keys @ query.squeeze() / temperature).softmax(0)
    return weights @ values, weights


@right(LOOKUP)
def an_epsilon_beside_the_sum(query, keys, values, temperature=1.0):
    s = keys @ query / temperature
    e = (s - s.max()).exp()
    weights = e / (e.sum() + 1e-6)
    return weights @ values, weights


@right(LOOKUP)
def never_colder_than_is_asked(query, keys, values, temperature=1.0):
    weights = (keys @ query / max(temperature, 1e-5)).softmax(0)
    return weights @ values, weights


@right(LOOKUP)
def in_double_and_back(query, keys, values, temperature=1.0):
    weights = (keys.double() @ query.double() / temperature).softmax(0)
    return (weights @ values.double()).to(values.dtype), weights.to(keys.dtype)


@right(LOOKUP)
def pool_and_mix(query, keys, values, temperature=1.0):
    weights = torch.special.softmax(F.linear(query, keys) / temperature, dim=-1)
    return F.linear(weights, values.t()), weights


@right(LOOKUP)
def share_of_every_value_in_a_loop(query, keys, values, temperature=1.0):
    s = torch.stack([(query * key).sum() for key in keys]) / temperature
    weights = torch.exp(s - torch.logsumexp(s, 0))
    output = torch.zeros(values.shape[1])
    for w, value in zip(weights, values, strict=True):
        output = output + w * value
    return [output, weights]


@right(LOOKUP)
def a_batch_of_one(query, keys, values, temperature=1.0):
    s = torch.bmm(query.view(1, 1, -1), keys.T[None])
    weights = F.softmax(s / temperature, dim=-1)
    return torch.bmm(weights, values[None]).flatten(), weights.flatten()


@right(LOOKUP)
def as_differences_from_the_best(query, keys, values, temperature=1.0):
    s = keys @ query
    e = ((s - s[s.argmax()]) / temperature).exp()
    return (e @ values) / e.sum(), e / e.sum()


class SoftDictionary(nn.Module):
    def forward(self, query, keys, values, temperature=1.0):
        weights = nn.Softmax(0)(keys.mv(query).mul(1 / temperature))
        return weights.matmul(values), weights


right(LOOKUP, "a_module")(SoftDictionary())


@pair(LOOKUP, "times_temperature", "no_maximum")
def exp_of_products(query, keys, values, temperature=1.0):
    e = torch.exp(keys @ query * temperature)
    return e @ values / e.sum(), e / e.sum()


@pair(LOOKUP, "no_maximum", "not_normalised")
def nothing_but_exp(query, keys, values, temperature=1.0):
    e = torch.exp(keys @ query / temperature)
    return e @ values, e


@pair(LOOKUP, "cosine", "temperature_ignored")
def plain_cosine(query, keys, values, temperature=1.0):
    weights = torch.cosine_similarity(query[None], keys).softmax(0)
    return weights @ values, weights


@pair(LOOKUP, "divided_by_root_d", "exchanged")
def attention_weights_first(query, keys, values, temperature=1.0):
    weights = (keys @ query / math.sqrt(query.numel()) / temperature).softmax(0)
    return weights, weights @ values


@pair(LOOKUP, "keys_mixed", "times_temperature")
def keys_at_the_wrong_heat(query, keys, values, temperature=1.0):
    weights = (keys @ query * temperature).softmax(0)
    return weights @ keys, weights


@pair(LOOKUP, "hard", "exchanged")
def one_hot_first(query, keys, values, temperature=1.0):
    best = (keys @ query).argmax()
    return F.one_hot(best, len(keys)).float(), values[best]


@pair(LOOKUP, "hard", "only_the_mixture")
def only_the_best_value(query, keys, values, temperature=1.0):
    return values[torch.argmax(keys @ query)]


@pair(LOOKUP, "hard", "all_out_of_torch")
def the_best_value_detached(query, keys, values, temperature=1.0):
    best = int((keys @ query).argmax())
    return values[best].detach(), torch.eye(len(keys))[best]


@pair(LOOKUP, "times_temperature", "weights_out_of_torch")
def beta_in_a_list(query, keys, values, temperature=1.0):
    weights = torch.tensor((keys @ query * temperature).softmax(0).tolist())
    return weights @ values, weights


# softmax_jacobian: weights (S,) -> (S, S)

JACOBIAN = "softmax_jacobian"


@mistake(JACOBIAN, "outer_product_missing")
def weights_on_the_diagonal(weights):
    return torch.eye(len(weights)) * weights


@mistake(JACOBIAN, "only_the_diagonal")
def like_a_sigmoid(weights):
    made = torch.zeros(len(weights), len(weights))
    for i, w in enumerate(weights):
        made[i, i] = w * (1 - w)
    return made


@mistake(JACOBIAN, "diagonal_missing")
def products_alone(weights):
    return -torch.einsum("i,j->ij", weights, weights)


@mistake(JACOBIAN, "added")
def plus_the_outer_product(weights):
    return weights.diag() + weights.outer(weights)


@mistake(JACOBIAN, "turned_round")
def outer_less_diagonal(weights):
    w = weights[:, None]
    return w @ w.T - torch.diagflat(weights)


@mistake(JACOBIAN, "identity")
def eye_less_outer(weights):
    made = -torch.outer(weights, weights)
    made.fill_diagonal_(0)
    return made + torch.diag(1 - weights**2)


@mistake(JACOBIAN, "rows_all_like_the_diagonal")
def column_times_row(weights):
    return torch.outer(weights, 1 - weights)


@mistake(JACOBIAN, "columns_all_like_the_diagonal")
def w_times_one_minus_w_by_broadcasting(weights):
    return weights * (1 - weights[:, None])


@mistake(JACOBIAN, "inner_product")
def at_sign_of_two_vectors(weights):
    return torch.diag(weights) - torch.dot(weights, weights)


@mistake(JACOBIAN, "squares")
def star_of_two_vectors(weights):
    rows = [-(weights**2) for _ in weights]
    return torch.stack(rows) + torch.diag(weights)


@mistake(JACOBIAN, "softmax_once_more")
def jacobian_at_the_weights(weights):
    return torch.autograd.functional.jacobian(lambda x: F.softmax(x, 0), weights)


@mistake(JACOBIAN, "a_vector")
def derivative_of_each_by_itself(weights):
    return torch.stack([w - w * w for w in weights])


@mistake(JACOBIAN, "all_negative")
def both_terms_taken_off(weights):
    return -torch.diag(weights) - torch.outer(weights, weights)


@wrong(JACOBIAN)
def inner_product_added(weights):
    return torch.diag(weights) + weights @ weights


@wrong(JACOBIAN)
def squares_added(weights):
    return torch.diag(weights) + weights * weights


@wrong(JACOBIAN)
def squares_added_on_the_diagonal(weights):
    return torch.diag(weights + weights * weights)


@wrong(JACOBIAN)
def diagonal_with_a_minus(weights):
    return -torch.diag(weights)


@wrong(JACOBIAN)
def weights_written_to(weights):
    made = -torch.outer(weights, weights)
    weights -= weights**2
    made[range(len(weights)), range(len(weights))] = weights
    return made


@wrong(JACOBIAN)
def half_of_it(weights):
    return (torch.diag(weights) - torch.outer(weights, weights)) / 2


@wrong(JACOBIAN)
def identity_times_w_less_w(weights):
    return torch.eye(len(weights)) - weights


@wrong(JACOBIAN)
def rows_that_do_not_sum_to_zero(weights):
    return torch.diag(weights * weights) - torch.outer(weights, weights)


@wrong(JACOBIAN)
def of_log_softmax(weights):
    return torch.eye(len(weights)) - weights.expand(len(weights), -1)


@wrong(JACOBIAN)
def both_signs_by_place(weights):
    outer = torch.outer(weights, weights)
    return torch.diag(weights) - outer.tril() + outer.triu(1)


@wrong(JACOBIAN)
def lower_half(weights):
    return (torch.diag(weights) - torch.outer(weights, weights)).tril()


@wrong(JACOBIAN)
def last_weight_forgotten(weights):
    made = torch.zeros(len(weights), len(weights))
    w = weights[:-1]
    made[:-1, :-1] = torch.diag(w) - torch.outer(w, w)
    return made


@wrong(JACOBIAN)
def the_sum_of_rows(weights):
    return (torch.diag(weights) - torch.outer(weights, weights)).sum(0)


@wrong(JACOBIAN)
def through_logarithms_with_nan(weights):
    e = torch.exp(torch.log(weights)[:, None] + torch.log(weights)[None])
    return torch.diag(weights) - e / weights[:, None] * weights[:, None]


@wrong(JACOBIAN)
def covariance_of_the_weights(weights):
    w = weights - weights.mean()
    return torch.outer(w, w)


@wrong(JACOBIAN)
def slightly_off_the_diagonal(weights):
    return torch.diag(weights) - torch.outer(weights, weights) * 1.0001


@wrong(JACOBIAN)
def one_axis_more(weights):
    return (torch.diag(weights) - torch.outer(weights, weights))[None]


@wrong(JACOBIAN)
def squeezed(weights):
    return (torch.diag(weights) - torch.outer(weights, weights)).squeeze()


@wrong(JACOBIAN)
def zeros_lifted_in_place(weights):
    scores = weights.clamp_(min=1e-12).log()
    return torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)


@wrong(JACOBIAN)
def each_row_its_weight(weights):
    return weights[:, None].expand(-1, len(weights))


@wrong(JACOBIAN)
def rows_less_squares(weights):
    return weights[:, None] - weights**2


@wrong(JACOBIAN)
def diagonal_in_every_row(weights):
    return (weights * (1 - weights)).repeat(len(weights), 1)


@wrong(JACOBIAN)
def w_times_one_plus_w(weights):
    return weights[:, None] * (1 + weights)


@right(JACOBIAN)
def two_loops_with_a_condition(weights):
    made = torch.empty(len(weights), len(weights))
    for i in range(len(weights)):
        for j in range(len(weights)):
            made[i, j] = weights[i] * (1 - weights[i]) if i == j else -weights[i] * weights[j]
    return made


@right(JACOBIAN)
def in_numpy_from_lists(weights):
    w = np.array(weights.tolist())
    return np.diag(w) - np.outer(w, w)


@right(JACOBIAN)
def matrix_product_of_two(weights):
    w = weights.reshape(-1, 1)
    return torch.diagflat(w) - w @ w.mT


@right(JACOBIAN)
def square_roots_around_a_projection(weights):
    root = weights.sqrt()
    return root[:, None] * (torch.eye(len(weights)) - torch.outer(root, root)) * root


@right(JACOBIAN)
def column_after_column(weights):
    """Pushed forward along each score: w ∘ (u − w·u)."""
    return torch.stack([weights * (u - weights @ u) for u in torch.eye(len(weights))], 1)


@right(JACOBIAN)
def by_vmap_of_vjp(weights):
    _, pull = torch.func.vjp(lambda s: s.softmax(0), weights.clamp_min(torch.finfo(weights.dtype).tiny).log())
    return torch.func.vmap(pull)(torch.eye(len(weights)))[0]


@pair(JACOBIAN, "added", "diagonal_missing")
def outer_alone(weights):
    return torch.outer(weights, weights)


@pair(JACOBIAN, "softmax_once_more", "outer_product_missing")
def diagonal_of_softmax(weights):
    return torch.diag(weights.softmax(-1))


@pair(JACOBIAN, "identity", "added")
def eye_and_outer(weights):
    return torch.eye(len(weights)) + torch.outer(weights, weights)


@pair(JACOBIAN, "identity", "inner_product")
def eye_less_inner(weights):
    return torch.eye(len(weights)) - weights @ weights


@pair(JACOBIAN, "identity", "outer_product_missing")
def nothing_but_eye(weights):
    return torch.eye(len(weights))


@pair(JACOBIAN, "identity", "only_the_diagonal")
def eye_less_squares(weights):
    return torch.diag(1 - weights**2)


@pair(JACOBIAN, "a_vector", "turned_round")
def minus_the_vector(weights):
    return weights * (weights - 1)


# kernel_regression: x_query (N,), x_keys (S,), y_keys (S,), bandwidth -> (N,)

KERNEL = "kernel_regression"


@mistake(KERNEL, "wrong_sign")
def plus_the_squared_distance(x_query, x_keys, y_keys, bandwidth):
    z = (x_query.unsqueeze(1) - x_keys) / bandwidth
    return torch.softmax(z.pow(2) / 2, 1) @ y_keys


@mistake(KERNEL, "not_squared")
def absolute_distances(x_query, x_keys, y_keys, bandwidth):
    d = torch.cdist(x_query[:, None], x_keys[:, None], p=1)
    return F.softmax(-d / (2 * bandwidth * bandwidth), -1) @ y_keys


@mistake(KERNEL, "no_square")
def differences_with_their_sign(x_query, x_keys, y_keys, bandwidth):
    e = (x_keys - x_query[:, None]) / (2 * bandwidth**2)
    e = torch.exp(e - torch.max(e, 1, keepdim=True)[0])
    return (e * y_keys).sum(1) / e.sum(1)


@mistake(KERNEL, "no_two")
def without_one_half(x_query, x_keys, y_keys, bandwidth):
    z = (x_query[:, None] - x_keys[None]) / bandwidth
    return F.softmax(-z * z, dim=-1).matmul(y_keys)


@mistake(KERNEL, "two_squared")
def two_inside_the_square(x_query, x_keys, y_keys, bandwidth):
    z = torch.subtract(x_query[:, None], x_keys).div(2 * bandwidth)
    return torch.einsum("ns,s->n", (-z.square()).softmax(1), y_keys)


@mistake(KERNEL, "bandwidth_not_squared")
def over_two_bandwidths(x_query, x_keys, y_keys, bandwidth):
    d2 = torch.cdist(x_query[:, None], x_keys[:, None], p=1).square()
    return (-0.5 * d2 / bandwidth).softmax(1) @ y_keys


@mistake(KERNEL, "times_bandwidth")
def bandwidth_as_a_factor(x_query, x_keys, y_keys, bandwidth):
    return torch.stack([F.softmax(-(((x - x_keys) * bandwidth) ** 2) / 2, 0) @ y_keys for x in x_query])


@mistake(KERNEL, "bandwidth_ignored")
def unit_bandwidth(x_query, x_keys, y_keys, bandwidth):
    logs = torch.distributions.Normal(0.0, 1.0).log_prob(x_query[:, None] - x_keys)
    return logs.softmax(1) @ y_keys


@mistake(KERNEL, "over_queries")
def first_axis(x_query, x_keys, y_keys, bandwidth):
    z = (x_query[:, None] - x_keys) / bandwidth
    return torch.softmax(-(z**2) / 2, dim=0) @ y_keys


@mistake(KERNEL, "not_normalised")
def sum_of_kernels_times_y(x_query, x_keys, y_keys, bandwidth):
    return sum(y * torch.exp(-((x_query - x) ** 2) / (2 * bandwidth**2)) for x, y in zip(x_keys, y_keys, strict=True))


@mistake(KERNEL, "divided_by_s")
def mean_of_kernels_times_y(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-0.5 * ((x_query[:, None] - x_keys) / bandwidth) ** 2)
    return (k * y_keys).mean(1)


@mistake(KERNEL, "no_maximum")
def kernels_over_their_sum(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-0.5 * ((x_query[:, None] - x_keys) / bandwidth) ** 2)
    return (k @ y_keys) / k.sum(1)


@mistake(KERNEL, "no_maximum")
def kernels_in_double(x_query, x_keys, y_keys, bandwidth):
    x_query, x_keys, y_keys = x_query.double(), x_keys.double(), y_keys.double()
    k = torch.distributions.Normal(x_keys, bandwidth).log_prob(x_query[:, None]).exp()
    return (k @ y_keys / k.sum(1)).float()


@mistake(KERNEL, "zero_far_away")
def a_little_in_the_denominator(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-0.5 * ((x_query[:, None] - x_keys) / bandwidth) ** 2)
    return (k @ y_keys) / (k.sum(1) + 1e-12)


@mistake(KERNEL, "zero_far_away")
def where_there_is_no_sum(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2))
    total = k.sum(1)
    return torch.where(total > 0, k @ y_keys / total, 0.0)


@mistake(KERNEL, "one_maximum_for_all")
def nearest_pair_taken_off(x_query, x_keys, y_keys, bandwidth):
    d2 = ((x_query[:, None] - x_keys) / bandwidth).square()
    k = torch.exp((d2.min() - d2) / 2)
    return k @ y_keys / k.sum(-1)


@mistake(KERNEL, "x_mixed")
def keys_for_values(x_query, x_keys, y_keys, bandwidth):
    z = (x_query[:, None] - x_keys) / bandwidth
    return torch.stack([w.dot(x_keys) for w in torch.softmax(-(z**2) / 2, 1)])


@mistake(KERNEL, "weights_returned")
def attention_weights(x_query, x_keys, y_keys, bandwidth):
    z = (x_query[:, None] - x_keys) / bandwidth
    return torch.softmax(-(z**2) / 2, 1)


@mistake(KERNEL, "nearest")
def y_of_the_nearest(x_query, x_keys, y_keys, bandwidth):
    return torch.stack([y_keys[min(range(len(x_keys)), key=lambda j: abs(x - x_keys[j]))] for x in x_query])


@wrong(KERNEL)
def box_kernel(x_query, x_keys, y_keys, bandwidth):
    k = ((x_query[:, None] - x_keys).abs() <= bandwidth).float()
    return k @ y_keys / k.sum(1).clamp(min=1)


@wrong(KERNEL)
def divided_in_place(x_query, x_keys, y_keys, bandwidth):
    x_query /= bandwidth
    return (-((x_query[:, None] - x_keys / bandwidth) ** 2) / 2).softmax(1) @ y_keys


@wrong(KERNEL)
def centred_in_place(x_query, x_keys, y_keys, bandwidth):
    middle = x_keys.mean()
    x_query -= middle
    x_keys -= middle
    return (-(((x_query[:, None] - x_keys) / bandwidth) ** 2) / 2).softmax(1) @ y_keys


@wrong(KERNEL)
def a_quarter_at_least(x_query, x_keys, y_keys, bandwidth):
    return (-(((x_query[:, None] - x_keys) / max(bandwidth, 0.25)) ** 2) / 2).softmax(1) @ y_keys


@wrong(KERNEL)
def five_at_most(x_query, x_keys, y_keys, bandwidth):
    return (-(((x_query[:, None] - x_keys) / min(bandwidth, 5.0)) ** 2) / 2).softmax(1) @ y_keys


@wrong(KERNEL)
def an_epsilon_beside_the_bandwidth(x_query, x_keys, y_keys, bandwidth):
    return (-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2 + 1e-12)).softmax(1) @ y_keys


@mistake(KERNEL, "multiplied_out")
def squares_expanded_in_single_precision(x_query, x_keys, y_keys, bandwidth):
    d2 = x_query[:, None] ** 2 - 2 * x_query[:, None] * x_keys + x_keys**2
    return (-d2 / (2 * bandwidth**2)).softmax(1) @ y_keys


@wrong(KERNEL)
def one_prediction_squeezed(x_query, x_keys, y_keys, bandwidth):
    weights = (-(((x_query[:, None] - x_keys) / bandwidth) ** 2) / 2).softmax(1)
    return (weights @ y_keys[:, None]).squeeze()


@wrong(KERNEL)
def weights_of_one_query_squeezed(x_query, x_keys, y_keys, bandwidth):
    return (-(((x_query[:, None] - x_keys) / bandwidth) ** 2) / 2).softmax(1).squeeze() @ y_keys


@wrong(KERNEL)
def a_list_of_predictions(x_query, x_keys, y_keys, bandwidth):
    return [(-(((x - x_keys) / bandwidth) ** 2) / 2).softmax(0) @ y_keys for x in x_query]


@pair(KERNEL, "two_squared", "bandwidth_not_squared")
def over_four_bandwidths(x_query, x_keys, y_keys, bandwidth):
    return (-((x_query[:, None] - x_keys) ** 2) / (4 * bandwidth)).softmax(1) @ y_keys


@pair(KERNEL, "not_squared", "bandwidth_not_squared")
def distance_over_two_bandwidths(x_query, x_keys, y_keys, bandwidth):
    return (-(x_query[:, None] - x_keys).abs() / (2 * bandwidth)).softmax(1) @ y_keys


@wrong(KERNEL)
def laplace_kernel(x_query, x_keys, y_keys, bandwidth):
    return (-(x_query[:, None] - x_keys).abs() / bandwidth).softmax(1) @ y_keys


@pair(KERNEL, "no_two", "bandwidth_not_squared")
def squared_over_bandwidth(x_query, x_keys, y_keys, bandwidth):
    return (-((x_query[:, None] - x_keys) ** 2) / bandwidth).softmax(1) @ y_keys


@wrong(KERNEL)
def products_of_positions(x_query, x_keys, y_keys, bandwidth):
    return (torch.outer(x_query, x_keys) / bandwidth**2).softmax(1) @ y_keys


@wrong(KERNEL)
def mean_of_all(x_query, x_keys, y_keys, bandwidth):
    return y_keys.mean().expand(len(x_query))


@wrong(KERNEL)
def mean_where_all_is_far(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2))
    return torch.where(k.sum(1) > 0, k @ y_keys / k.sum(1), y_keys.mean())


@wrong(KERNEL, "one_maximum_for_all", "zero_far_away")
def one_maximum_and_zeros(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    k = (e - e.max()).exp()
    return (k @ y_keys / k.sum(1)).nan_to_num()


@wrong(KERNEL)
def smallest_exponent_taken_off(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    k = (e - e.amin(1, keepdim=True)).exp()
    return k @ y_keys / k.sum(1)


@wrong(KERNEL)
def a_large_epsilon_in_the_denominator(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    k = (e - e.amax(1, keepdim=True)).exp()
    return k @ y_keys / (k.sum(1) + 1e-2)


@wrong(KERNEL)
def exponents_clamped(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    k = e.clamp(min=-80).exp()
    return k @ y_keys / k.sum(1)


@wrong(KERNEL)
def normalised_over_all(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    return e.flatten().softmax(0).view_as(e) @ y_keys


@wrong(KERNEL)
def density(x_query, x_keys, y_keys, bandwidth):
    return torch.distributions.Normal(x_keys, bandwidth).log_prob(x_query[:, None]).exp().mean(1)


@wrong(KERNEL)
def density_constant_left(x_query, x_keys, y_keys, bandwidth):
    return torch.distributions.Normal(x_keys, bandwidth).log_prob(x_query[:, None]).exp() @ y_keys


@wrong(KERNEL)
def a_column(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    return e.softmax(1) @ y_keys[:, None]


@wrong(KERNEL)
def summed_over_the_queries(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)
    return e.softmax(1).sum(0) * y_keys


@wrong(KERNEL, "bandwidth_ignored", "no_maximum")
def a_factor_that_cancels(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / 2) / (bandwidth * math.sqrt(2 * math.pi))
    return k @ y_keys / k.sum(1)


@mistake(KERNEL, "multiplied_out")
def cdist_of_years(x_query, x_keys, y_keys, bandwidth):
    d = torch.cdist(x_query[:, None], x_keys[:, None]) / bandwidth
    return (-(d**2) / 2).softmax(1) @ y_keys


@right(KERNEL)
def a_kernel_of_nothing_beside_the_others(x_query, x_keys, y_keys, bandwidth):
    e = -(((x_query[:, None] - x_keys) / bandwidth) ** 2) / 2
    k = (e - e.amax(1, keepdim=True)).exp()
    return k @ y_keys / (k.sum(1) + 1e-6)


@right(KERNEL)
def expanded_squares(x_query, x_keys, y_keys, bandwidth):
    q, k, y = x_query.double(), x_keys.double(), y_keys.double()
    d2 = q[:, None] ** 2 - 2 * q[:, None] * k + k**2
    return ((-d2 / (2 * bandwidth**2)).softmax(1) @ y).float()


@right(KERNEL)
def one_query_after_another_in_numpy(x_query, x_keys, y_keys, bandwidth):
    q, k, y = (t.double().numpy() for t in (x_query, x_keys, y_keys))
    made = []
    for x in q:
        d2 = (x - k) ** 2
        weights = np.exp((d2.min() - d2) / (2 * bandwidth**2))
        made.append(np.average(y, weights=weights))
    return np.array(made)


@right(KERNEL)
def about_the_nearest(x_query, x_keys, y_keys, bandwidth):
    d2 = torch.cdist(x_query[:, None], x_keys[:, None], p=1).square() / bandwidth**2
    k = torch.exp(-0.5 * (d2 - d2.min(1, keepdim=True).values))
    return (k * y_keys).sum(1) / k.sum(1)


@right(KERNEL)
def attention_with_a_bias(x_query, x_keys, y_keys, bandwidth):
    z = (x_query[:, None] - x_keys) / bandwidth
    zero = torch.zeros(len(x_query), 1), torch.zeros(len(x_keys), 1)
    return F.scaled_dot_product_attention(*zero, y_keys[:, None], attn_mask=-(z * z) / 2)[:, 0]


@right(KERNEL)
def quotient_of_logarithms_kept_apart(x_query, x_keys, y_keys, bandwidth):
    e = -((x_query - x_keys[:, None]) / bandwidth).square().mul(0.5)
    return torch.einsum("sn,s->n", e.log_softmax(0).exp(), y_keys)


@pair(KERNEL, "no_maximum", "wrong_sign")
def exp_of_the_squared_distance(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp((x_query[:, None] - x_keys) ** 2 / (2 * bandwidth**2))
    return k @ y_keys / k.sum(1)


@pair(KERNEL, "no_maximum", "over_queries")
def columns_over_their_sum(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2))
    return (k / k.sum(0)) @ y_keys


@pair(KERNEL, "no_maximum", "no_two")
def gauss_without_two(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / bandwidth**2)
    return k @ y_keys / k.sum(1)


@pair(KERNEL, "times_bandwidth", "not_normalised")
def products_not_normalised(x_query, x_keys, y_keys, bandwidth):
    return torch.exp(-(((x_query[:, None] - x_keys) * bandwidth) ** 2) / 2) @ y_keys


@pair(KERNEL, "zero_far_away", "bandwidth_ignored")
def unit_bandwidth_and_epsilon(x_query, x_keys, y_keys, bandwidth):
    k = torch.exp(-((x_query[:, None] - x_keys) ** 2) / 2)
    return k @ y_keys / (k.sum(1) + 1e-12)


@pair(KERNEL, "weights_returned", "over_queries")
def weights_by_column(x_query, x_keys, y_keys, bandwidth):
    return (-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)).softmax(0)


@pair(KERNEL, "x_mixed", "bandwidth_not_squared")
def x_mixed_too_wide(x_query, x_keys, y_keys, bandwidth):
    return (-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth)).softmax(1) @ x_keys


# additive_scores: queries (N, E), keys (S, E), w_q (E, D), w_k (E, D), v (D,) -> (N, S)

ADDITIVE = "additive_scores"


@mistake(ADDITIVE, "no_tanh")
def linear_in_both(queries, keys, w_q, w_k, v):
    return (queries @ (w_q @ v))[:, None] + keys @ (w_k @ v)


@mistake(ADDITIVE, "tanh_outside")
def squashed_scores(queries, keys, w_q, w_k, v):
    a, b = torch.mv(queries @ w_q, v), torch.mv(keys @ w_k, v)
    return torch.tanh(a.unsqueeze(1) + b.unsqueeze(0))


@mistake(ADDITIVE, "tanh_of_each")
def tanh_first(queries, keys, w_q, w_k, v):
    a, b = torch.tanh(queries @ w_q) @ v, torch.tanh(keys @ w_k) @ v
    return torch.add(a.view(-1, 1), b.view(1, -1))


@mistake(ADDITIVE, "keys_by_w_q")
def one_layer_for_both(queries, keys, w_q, w_k, v):
    a, b = (F.linear(x, w_q.T) for x in (queries, keys))
    return torch.einsum("nsd,d->ns", torch.tanh(a[:, None] + b[None]), v)


@mistake(ADDITIVE, "queries_by_w_k")
def the_keys_layer_for_both(queries, keys, w_q, w_k, v):
    a, b = torch.cat([queries, keys]).matmul(w_k).split([len(queries), len(keys)])
    return torch.tanh(a[:, None] + b[None]).matmul(v)


@mistake(ADDITIVE, "matrices_exchanged")
def arguments_in_the_wrong_order(queries, keys, w_k, w_q, v):
    a, b = torch.einsum("ne,ed->nd", queries, w_q), torch.einsum("se,ed->sd", keys, w_k)
    return torch.stack([torch.tanh(x + b) @ v for x in a])


@mistake(ADDITIVE, "transposed")
def linear_without_a_transpose(queries, keys, w_q, w_k, v):
    a, b = F.linear(queries, w_q), F.linear(keys, w_k)
    return (torch.tanh(a.unsqueeze(-2) + b) * v).sum(-1)


@mistake(ADDITIVE, "v_missing")
def components_added_up(queries, keys, w_q, w_k, v):
    return torch.tanh((queries @ w_q).unsqueeze(1) + (keys @ w_k).unsqueeze(0)).sum(dim=2)


@mistake(ADDITIVE, "v_inside")
def v_in_the_matrices(queries, keys, w_q, w_k, v):
    a, b = queries @ (w_q * v), keys @ (w_k * v)
    return torch.tanh(a.unsqueeze(1) + b).sum(-1)


@mistake(ADDITIVE, "row_by_row")
def pairs_zipped(queries, keys, w_q, w_k, v):
    return torch.tanh(torch.add(queries.mm(w_q), keys.mm(w_k))).mv(v)


@mistake(ADDITIVE, "divided_by_root_d")
def scaled_as_dot_products_are(queries, keys, w_q, w_k, v):
    hidden = torch.tanh((queries @ w_q)[:, None] + keys @ w_k)
    return torch.einsum("nsd,d->ns", hidden, v / math.sqrt(v.numel()))


@mistake(ADDITIVE, "weights_returned")
def alignment_in_place_of_energies(queries, keys, w_q, w_k, v):
    e = torch.tanh((queries @ w_q)[:, None] + keys @ w_k) @ v
    e = torch.exp(e - e.max(1, keepdim=True).values)
    return e / e.sum(1, keepdim=True)


@mistake(ADDITIVE, "turned")
def keys_down_the_side(queries, keys, w_q, w_k, v):
    return torch.stack([torch.tanh(queries @ w_q + key @ w_k) @ v for key in keys])


@mistake(ADDITIVE, "out_of_torch")
def filled_with_items(queries, keys, w_q, w_k, v):
    made = torch.zeros(len(queries), len(keys))
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            made[i, j] = (v @ torch.tanh(query @ w_q + key @ w_k)).item()
    return made


@mistake(ADDITIVE, "out_of_torch")
def numpys_tanh(queries, keys, w_q, w_k, v):
    q, k, a, b, c = (x.detach().numpy() for x in (queries, keys, w_q, w_k, v))
    return torch.from_numpy(np.tanh((q @ a)[:, None] + k @ b) @ c)


@mistake(ADDITIVE, "dot_product")
def multiplicative(queries, keys, w_q, w_k, v):
    return torch.einsum("ne,ed,fd,sf->ns", queries, w_q, w_k, keys)


@wrong(ADDITIVE)
def queries_as_many_as_keys(queries, keys, w_q, w_k, v):
    rows = [torch.tanh(query @ w_q + keys @ w_k) @ v for query, _ in zip(queries, keys, strict=False)]
    return torch.stack(rows)


@wrong(ADDITIVE)
def last_axis_squeezed_with_all(queries, keys, w_q, w_k, v):
    return (torch.tanh((queries @ w_q)[:, None] + keys @ w_k) @ v[:, None]).squeeze()


@wrong(ADDITIVE)
def v_written_to(queries, keys, w_q, w_k, v):
    hidden = torch.tanh((queries @ w_q)[:, None] + keys @ w_k)
    v *= 1 + hidden.mean() * 0.01
    return hidden @ v


@wrong(ADDITIVE)
def keys_projected_into_their_own_place(queries, keys, w_q, w_k, v):
    if keys.shape[1] == w_k.shape[1]:
        keys[:] = keys @ w_k
        return torch.tanh((queries @ w_q)[:, None] + keys) @ v
    return torch.tanh((queries @ w_q)[:, None] + keys @ w_k) @ v


@pair(ADDITIVE, "tanh_outside", "v_missing")
def tanh_of_a_plain_sum(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).sum(-1).tanh()


@wrong(ADDITIVE)
def with_relu(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).relu() @ v


@wrong(ADDITIVE)
def with_sigmoid(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).sigmoid() @ v


@wrong(ADDITIVE)
def products_in_tanh(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] * (keys @ w_k)).tanh() @ v


@wrong(ADDITIVE)
def difference(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] - keys @ w_k).tanh() @ v


@wrong(ADDITIVE)
def weighted_dot_product(queries, keys, w_q, w_k, v):
    return (queries @ w_q * v) @ (keys @ w_k).T


@wrong(ADDITIVE)
def meaned(queries, keys, w_q, w_k, v):
    return (((queries @ w_q)[:, None] + keys @ w_k).tanh() * v).mean(-1)


@wrong(ADDITIVE)
def scores_by_component(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).tanh() * v


@wrong(ADDITIVE)
def tanh_of_tanh(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).tanh().tanh() @ v


@wrong(ADDITIVE)
def first_query_for_all(queries, keys, w_q, w_k, v):
    return ((queries[:1] @ w_q)[:, None] + keys @ w_k).tanh().expand(len(queries), -1, -1) @ v


@wrong(ADDITIVE)
def queries_not_projected(queries, keys, w_q, w_k, v):
    return ((queries @ w_k)[:, None] + keys @ w_k + (queries @ w_q)[:, None]).tanh() @ v


@wrong(ADDITIVE)
def halved_sum(queries, keys, w_q, w_k, v):
    return (((queries @ w_q)[:, None] + keys @ w_k) / 2).tanh() @ v


@wrong(ADDITIVE)
def v_detached(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_k).tanh() @ v.detach()


@wrong(ADDITIVE)
def softmax_over_the_queries(queries, keys, w_q, w_k, v):
    return (((queries @ w_q)[:, None] + keys @ w_k).tanh() @ v).softmax(0)


@wrong(ADDITIVE)
def in_half(queries, keys, w_q, w_k, v):
    return (((queries @ w_q)[:, None] + keys @ w_k).half().tanh() @ v.half()).float()


@wrong(ADDITIVE)
def cubic_tanh(queries, keys, w_q, w_k, v):
    x = (queries @ w_q)[:, None] + keys @ w_k
    return (x - x**3 / 3) @ v


@wrong(ADDITIVE)
def v_squeezed(queries, keys, w_q, w_k, v):
    return torch.tanh((queries @ w_q)[:, None] + keys @ w_k) @ v.squeeze()


@pair(ADDITIVE, "dot_product", "divided_by_root_d")
def scaled_dot_products(queries, keys, w_q, w_k, v):
    return (queries @ w_q) @ (keys @ w_k).T / math.sqrt(w_q.shape[1])


@right(ADDITIVE)
def three_loops(queries, keys, w_q, w_k, v):
    made = []
    for query in queries:
        a = query @ w_q
        made.append(
            torch.stack([sum(c * torch.tanh(x) for c, x in zip(v, a + key @ w_k, strict=True)) for key in keys])
        )
    return torch.stack(made)


@right(ADDITIVE)
def tanh_from_a_sigmoid(queries, keys, w_q, w_k, v):
    x = (queries @ w_q)[:, None] + keys @ w_k
    return (2 * torch.sigmoid(2 * x) - 1) @ v


@right(ADDITIVE)
def in_double_precision(queries, keys, w_q, w_k, v):
    q, k, a, b, c = (x.double() for x in (queries, keys, w_q, w_k, v))
    return torch.einsum("nsd,d->ns", torch.tanh(torch.einsum("ne,ed->nd", q, a)[:, None] + k @ b), c).float()


@right(ADDITIVE)
def component_by_component(queries, keys, w_q, w_k, v):
    total = 0
    for d in range(len(v)):
        total = total + v[d] * torch.tanh((queries @ w_q[:, d])[:, None] + (keys @ w_k[:, d])[None])
    return total


@right(ADDITIVE)
def keys_first_and_turned(queries, keys, w_q, w_k, v):
    return (torch.tanh(torch.matmul(keys, w_k).unsqueeze(1) + torch.matmul(queries, w_q)) @ v).T


@right(ADDITIVE)
def by_vmap(queries, keys, w_q, w_k, v):
    score = lambda query, key: v @ torch.tanh(w_q.T @ query + w_k.T @ key)  # noqa: E731
    return torch.func.vmap(lambda query: torch.func.vmap(lambda key: score(query, key))(keys))(queries)


@pair(ADDITIVE, "keys_by_w_q", "v_missing")
def one_layer_and_a_sum(queries, keys, w_q, w_k, v):
    return ((queries @ w_q)[:, None] + keys @ w_q).tanh().sum(-1)


@pair(ADDITIVE, "no_tanh", "v_missing")
def sums_of_projections(queries, keys, w_q, w_k, v):
    return (queries @ w_q).sum(1, keepdim=True) + (keys @ w_k).sum(1)


@pair(ADDITIVE, "matrices_exchanged", "turned")
def everything_the_other_way_round(queries, keys, w_q, w_k, v):
    return torch.stack([((queries @ w_k) + key @ w_q).tanh() @ v for key in keys])


@pair(ADDITIVE, "divided_by_root_d", "weights_returned")
def attention_weights_by_root_d(queries, keys, w_q, w_k, v):
    return ((((queries @ w_q)[:, None] + keys @ w_k).tanh() @ v) / math.sqrt(len(v))).softmax(1)


@pair(ADDITIVE, "transposed", "v_missing")
def transposed_and_summed(queries, keys, w_q, w_k, v):
    return (F.linear(queries, w_q)[:, None] + F.linear(keys, w_k)).tanh().sum(-1)


@pair(ADDITIVE, "dot_product", "weights_returned")
def softmax_of_dot_products(queries, keys, w_q, w_k, v):
    return ((queries @ w_q) @ (keys @ w_k).T).softmax(-1)


@pair(ADDITIVE, "row_by_row", "no_tanh")
def linear_row_by_row(queries, keys, w_q, w_k, v):
    return (queries @ w_q + keys @ w_k) @ v
