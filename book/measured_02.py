"""The measurements of page 02 that it does not print, because writing them is an exercise."""

import torch
from torch import nn


def variances(q, k, widths):
    """For each width, the variance of the scores of the rows of q and k, cut to that width."""
    return {d: sum(q[:, i] * k[:, i] for i in range(d)).var().item() for d in widths}


def variance_at_the_start(width, d):
    """The variance of the scores that two new linear layers make of normalised inputs of that width."""
    torch.manual_seed(0)
    with torch.no_grad():
        q, k = (nn.Linear(width, d)(torch.randn(10_000, width)) for _ in range(2))
    return variances(q, k, [d])[d]
