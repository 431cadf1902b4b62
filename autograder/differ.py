"""How one output differs from the wanted one, in a few words. Each check takes an Output and gives words, or None."""

import math
from dataclasses import dataclass
from itertools import combinations

import torch

from .trial import constant, rms

FEW = 4  # different values, as 0 and 1, that are round in every precision


@dataclass(frozen=True)
class Output:
    """An output `a` where `b` is wanted, and the letters of its axes."""

    a: torch.Tensor
    b: torch.Tensor
    tolerance: float
    axes: list
    trial: object

    def same(self, other, times=1.0):
        return rms(self.a, other) <= self.tolerance * times


def difference(o):
    first = (shape, number, not_finite, coarse, flat_along, nearly)  # each rules out those that follow
    then = (factor, exchanged, reordered, row_sums, silent, elsewhere)
    return next(filter(None, (check(o) for check in first + then))) + empty_rows(o)


def shape(o):
    if o.a.shape != o.b.shape:
        letters = f", ({', '.join(o.axes)})" if o.axes else ""
        same = "; the axes are in another order" if sorted(o.a.shape) == sorted(o.b.shape) else ""
        return f"has shape {tuple(o.a.shape)}; wanted is {tuple(o.b.shape)}{letters}{same}"


def number(o):
    if o.b.ndim == 0:
        times = known_as(o.a.item() / o.b.item(), o.trial) if o.b.item() else ""
        said = f": a factor is off{times}" if times else ""
        return nearly(o) or f"is {o.a.item():.7g}, which is not right{said}"


def not_finite(o):
    for odd, words in (
        (o.a.isnan() & ~o.b.isnan(), "is NaN in {}"),
        (o.a.isinf() & ~o.b.isinf(), "is infinite in {}"),
        (o.a.isfinite() & ~o.b.isfinite(), "is finite in {} where it should not be"),
    ):
        if odd.any():
            return words.format(where(odd, o.axes))


def coarse(o):
    for name in ("bfloat16", "float16"):  # the coarser first: most bfloat16 values are float16 values too
        dtype = getattr(torch, name)
        near = rms(o.a, o.b) < 8 * torch.finfo(dtype).eps * rms(o.b)
        if near and o.a.unique().numel() > FEW and torch.equal(o.a, o.a.to(dtype).double()):
            return f"has only the precision of {name}: compute in the dtype of the inputs, or a wider one"


def flat_along(o):
    if o.same(torch.zeros_like(o.b)):
        return "is all zeros"
    for axis, letter in enumerate(o.axes):
        level = o.a.mean(axis, keepdim=True).expand(o.a.shape)
        varies = rms(o.b, o.b.mean(axis, keepdim=True).expand(o.b.shape)) > o.tolerance
        if o.a.shape[axis] > 1 and varies and o.same(level):
            return f"is the same all along {letter}; it should not be"


def nearly(o):
    size, wrong = rms(o.b), (o.a - o.b).abs() > 2 * o.tolerance
    if rms(o.a, o.b) < 4e-3 * size:
        few = f" in {where(wrong, o.axes)}" if wrong.any() and wrong.float().mean() < 0.2 else ""
        error, allowed = rms(o.a, o.b) / size, o.tolerance / size
        return f"is near, but not by rounding{few}: relative error {error:.1e}, allowed {allowed:.1e}"


def factor(o):
    if rms(o.b, constant(o.b)) < 0.05 * rms(o.b):  # of what hardly varies, every constant is a multiple
        return None
    good = torch.isfinite(o.a) & torch.isfinite(o.b)
    c = ((o.a[good] @ o.b[good]) / (o.b[good] @ o.b[good]).clamp_min(1e-300)).item()
    if abs(c) > 1e-6 and o.same(c * o.b, max(1, abs(c))):
        return f"is {c:.4g} times what is wanted{known_as(c, o.trial)}"


def exchanged(o):
    for i, j in combinations(range(o.b.ndim), 2):
        if o.b.shape[i] == o.b.shape[j] and o.same(o.b.transpose(i, j)):
            return f"has {o.axes[i]} and {o.axes[j]} exchanged"


def reordered(o):
    for axis, letter in enumerate(o.axes):
        others = [o.b.flip(axis), *(o.b.roll(shift, axis) for shift in range(1, o.b.shape[axis]))]
        if o.b.shape[axis] > 1 and any(map(o.same, others)):
            return f"has the right values in another order along {letter}"


def row_sums(o):
    sums, one = o.a.sum(-1), torch.ones(o.b.shape[:-1], dtype=o.b.dtype)
    if rms(o.b.sum(-1), one) < 1e-3 and rms(sums, one) > 1e-3 and o.a.min() >= 0:
        return f"has rows that sum to {sums.min():.3g} … {sums.max():.3g}; each should sum to 1"


def silent(o):
    odd = (o.a == 0) & (o.b.abs() > o.tolerance)
    if odd.any():
        return f"is 0 where it should not be, in {where(odd, o.axes)}"


def elsewhere(o):
    return f"differs in {where(((o.a - o.b).abs() > 2 * o.tolerance) | (o.a.isinf() != o.b.isinf()), o.axes)}"


def where(bad, axes):
    """How many entries; and on which indices of an axis, when some index of it is spotless."""
    spots = []
    for axis in range(bad.ndim):
        hit = bad.movedim(axis, 0).flatten(1).any(1) if bad.ndim > 1 else bad
        if not hit.all():
            spots.append(f"{axes[axis]} = {runs(hit.nonzero().flatten().tolist())}")
    return f"{int(bad.sum())} of {bad.numel()} entries" + (f", only at {' and '.join(spots)}" if spots else "")


def runs(indices):
    """[0, 1, 2, 5] -> "0…2, 5"."""
    said, start = [], indices[0] if indices else None
    for here, after in zip(indices, [*indices[1:], None], strict=True):
        if after != here + 1:
            said.append(f"{start}" if start == here else f"{start}…{here}")
            start = after
    return ", ".join(said[:6]) + (" …" if len(said) > 6 else "")


def empty_rows(o):
    """Says so when exactly the queries that may attend to nothing are wrong."""
    mask = o.trial.inputs.get("mask")
    if mask is None or mask.ndim < 2 or mask.all() or o.a.shape != o.b.shape or o.axes[:3] != ["B", "H", "N"]:
        return ""
    wrong = (~o.a.isclose(o.b, rtol=1e-3, atol=1e-5)).any(-1)
    empty = (~mask.any(-1)).expand(o.b.shape[:3])
    return ": exactly the queries that may attend to nothing" if empty.any() and torch.equal(wrong, empty) else ""


def known_as(c, trial):
    """What the number c is in the letters of the shape, as " (1/√D here)"; "" when it is nothing simple."""
    shapes = [(axes, trial.inputs[name].shape) for name, axes in trial.exercise.takes.items() if name in trial.inputs]
    sizes = {letter: n for axes, shape in shapes for letter, n in zip(axes, shape, strict=True)}
    forms = {"1/{}": -1.0, "1/√{}": -0.5, "√{}": 0.5, "{}": 1.0}
    powers = {form.format(letter): n**power for letter, n in sizes.items() for form, power in forms.items()}
    near = [form for form, value in powers.items() if math.isclose(c, value, rel_tol=1e-3)]
    return f" ({' or '.join(near)} here)" if near else ""
