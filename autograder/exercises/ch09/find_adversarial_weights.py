"""Other attention weights, the same prediction: an exercise with many right answers."""

import math

import torch

from autograder.exercise import exercise

FAR = 0.5  # nats of divergence that are asked; ln 2 = 0.693 is the most there is


@exercise(
    "ch09",
    points={"found": 4},
    takes="weights: S, v: S Dv, w_out: Dv C",
    returns="adversarial: S",
    see="09-reading-attention#adversarial-weights",
)
def find_adversarial_weights(weights, v, w_out, epsilon):
    """Weights over the same keys, at least 0.5 nats (Jensen–Shannon) from `weights`, that move the prediction
    softmax((weights v) w_out) by at most `epsilon` in total variation (Jain & Wallace 2019, section 4.2.2).

    Here every key has a near twin: move each weight to the key with the nearest value.
    """
    distance = (v[:, None] - v[None]).norm(dim=-1) + torch.diag(torch.full((len(v),), math.inf, dtype=v.dtype))
    return torch.zeros_like(weights).index_add(0, distance.argmin(1), weights)


@find_adversarial_weights.accepts
def fault(inputs, adversarial):
    weights, v, w_out, epsilon = inputs.values()
    moved = (prediction(adversarial, v, w_out) - prediction(weights, v, w_out)).abs().sum() / 2
    checks = {
        "negative": adversarial.min() < -1e-6,
        "not_normalised": abs(adversarial.sum() - 1) > 1e-4,
        "prediction_moved": moved > epsilon,
        "too_similar": divergence(adversarial, weights) < FAR,
    }
    return next((name for name, found in checks.items() if found), None)


def prediction(weights, v, w_out):
    return (weights @ v @ w_out).softmax(-1)


def divergence(a, b):
    """Jensen–Shannon, in nats."""
    a, b = a.clamp_min(0), b.clamp_min(0)
    middle = ((a + b) / 2).clamp_min(1e-30)
    return sum((torch.xlogy(x, x) - torch.xlogy(x, middle)).sum() for x in (a, b)) / 2


@find_adversarial_weights.case("found")
def twins_apart(draw):
    S, Dv = draw.sizes("S Dv")
    v = draw.normal(S, Dv).repeat(2, 1) + draw.normal(2 * S, Dv, scale=0.01)
    logits = torch.cat([draw.normal(S), draw.normal(S) - 8])
    order = draw.permutation(2 * S)
    return {"weights": logits.softmax(0)[order], "v": v[order], "w_out": draw.normal(Dv, 3), "epsilon": 0.05}


@find_adversarial_weights.mistake
def too_similar(weights, v, w_out, epsilon):
    """The weights are too near the given ones: find some at least 0.5 nats away. It is the prediction that may
    move by no more than epsilon, not the weights."""
    return weights.clone()


@find_adversarial_weights.mistake
def prediction_moved(weights, v, w_out, epsilon):
    """The weights differ, but so does the prediction, by more than epsilon in total variation."""
    return torch.full_like(weights, 1 / len(weights))


@find_adversarial_weights.mistake
def not_normalised(weights, v, w_out, epsilon):
    """The weights do not sum to 1."""
    return 2 * find_adversarial_weights.reference(weights, v, w_out, epsilon)


@find_adversarial_weights.mistake
def negative(weights, v, w_out, epsilon):
    """Some weights are negative. Attention weights are not."""
    return 2 * find_adversarial_weights.reference(weights, v, w_out, epsilon) - weights


@find_adversarial_weights.right
def each_to_its_twin(weights, v, w_out, epsilon):
    nearest = torch.cdist(v, v).fill_diagonal_(math.inf).argmin(1)
    return torch.stack([weights[nearest == j].sum() for j in range(len(v))])


@find_adversarial_weights.right
def one_at_a_time(weights, v, w_out, epsilon):
    """Greedy: take each weight in turn to the key, not used before, that changes the mixture least."""
    other = torch.zeros_like(weights)
    heavy = (weights > weights.median()).nonzero().flatten().tolist()
    free = [j for j in range(len(weights)) if j not in heavy]
    for i in sorted(heavy, key=lambda i: -weights[i]):
        other[min(free, key=lambda j: (v[i] - v[j]).norm())] += weights[i]
    return other / other.sum()


@find_adversarial_weights.right
def taken_from_its_twin(weights, v, w_out, epsilon):
    """Twins are each other's nearest, so that to take is the same as to give."""
    similar = -(v[:, None, :] - v[None, :, :]).square().sum(-1)
    similar.fill_diagonal_(-math.inf)
    return torch.take_along_dim(weights, similar.max(1).indices, 0)
