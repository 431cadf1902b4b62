"""What to say when no cause is claimed: what differs, as a person would look for it. Never the wanted number."""

import math
from itertools import permutations

import torch

from .differ import Output, difference, known_as
from .observe import flat
from .trial import cast, distance
from .words import count

UNWRITTEN = ("NotImplementedError", "")  # what a released cell raises
NOT_WRITTEN = "Not written yet: it raises NotImplementedError."


def describe(row):
    """Sentences on a case that an answer fails."""
    trial, seen = row.trial, row.seen
    want, case = trial.reference.seen, trial.case
    if seen.error:
        return [raised(seen, case)]
    if case.raises:
        return [f"Wanted: a {case.raises.__name__}. Your function returned something."]
    if case.unchanged and seen.changed:
        return [
            f"Your function changes its input {', '.join(seen.changed)}. Work on a copy: the caller still needs it."
        ]
    if len(seen.outputs) != len(want.outputs):
        return [miscounted(trial, seen)]
    if order := permuted(trial, seen):
        return [f"The right values, in another order: {', '.join(order)}. Wanted: {', '.join(trial.named)}."]
    words = [f"{name} {said}." for name, said in zip(trial.named, differences(trial, seen), strict=True) if said]
    return words + fitted(trial, seen) if words else [beside(trial, seen)]


def raised(seen, case):
    said = ": ".join(filter(None, seen.error))
    if case.raises:
        return f"Wanted: a {case.raises.__name__}. Raised: {said}"
    return NOT_WRITTEN if seen.error == UNWRITTEN else said


def miscounted(trial, seen):
    """Too few outputs, or too many: a list of rows, perhaps, where one tensor is wanted."""
    given, wanted = (count(len(outputs), "value") for outputs in (seen.outputs, trial.named))
    rows = len(trial.named) == 1 and len({t.shape for t in seen.outputs}) == 1
    joined = " One tensor is wanted: torch.stack makes it of a list of tensors." if rows else ""
    return f"Returned: {given}. Wanted: {wanted}, {', '.join(trial.named)}.{joined}"


def permuted(trial, seen):
    """The names of the outputs in the order in which they came, when the order is all that is wrong."""
    wanted = list(zip(trial.named, trial.reference.seen.outputs, trial.reference.tolerance, strict=True))
    orders = list(permutations(wanted))[1:] if 1 < len(wanted) <= 4 else []
    for order in orders:
        pairs = zip(seen.outputs, order, strict=True)
        if all(a.shape == b.shape and distance(a, b, tolerance) <= 1 for a, (_, b, tolerance) in pairs):
            return [name for name, _, _ in order]


def differences(trial, seen):
    """For each output words on how it differs, or "" where it is right."""
    outputs = zip(
        seen.outputs, trial.reference.seen.outputs, trial.reference.tolerance, trial.named.values(), strict=True
    )
    for a, b, tolerance, axes in outputs:
        right = a.shape == b.shape and distance(a, b, tolerance) <= 1
        axes = axes if len(axes) == b.ndim else [f"axis {d}" for d in range(b.ndim)]
        yield "" if right else difference(Output(a, b, tolerance, axes, trial))


def beside(trial, seen):
    """The values are right; something beside them is not."""
    case, kinds = trial.case, trial.reference.seen.kinds
    if case.same_dtype and seen.kinds != kinds:
        return (
            f"Right values, but as {', '.join(seen.kinds)}. Inputs of {', '.join(kinds)} ask for outputs of the same."
        )
    if case.launches and not seen.launches:
        return "Right values, but no Triton kernel ran."
    limits = (case.largest, seen.largest, "elements in one tensor"), (case.kept, seen.kept, "bytes kept")
    for limit, used, what in limits:
        if limit and used > limit(**trial.inputs):
            return f"Right values, but {used} {what}; at most {limit(**trial.inputs)} are allowed."
    return "The outputs are not among the right ones."


def fitted(trial, seen):
    """Where only a constant is off: which one was found, and what it is in the letters of the shape."""
    finite = all(t.isfinite().all() for t in seen.outputs)
    if not trial.exercise.family or trial.case.gradient or not finite:
        return []
    c, off = fit(trial, seen)
    wanted, _ = fit(trial, trial.reference.seen)
    if off > 4 or math.isclose(c, wanted, rel_tol=1e-3):
        return []
    found = f"{trial.exercise.factor_of} times {c:.4g}{known_as(c, trial)}"
    return [f"It is what comes out with {found}, which is not the factor wanted."]


def misfit(trial, seen, c):
    """How far the outputs lie from those of the formula with the constant c, in tolerances."""
    outputs, _ = flat(trial.exercise.family(c, *cast(trial.inputs, torch.float64).values()))
    if [o.shape for o in outputs] != [o.shape for o in seen.outputs]:
        return math.inf
    return max(map(distance, seen.outputs, outputs, trial.reference.tolerance))


def fit(trial, seen):
    """c on a logarithmic grid of either sign, then by golden section on log |c|; how far off it is, in tolerances."""

    def cost(c):
        return misfit(trial, seen, c)

    start = min((sign * 10 ** (e / 8) for sign in (1, -1) for e in range(-24, 17)), key=cost)
    low, high, golden = -0.15, 0.15, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if cost(start * 10**a) < cost(start * 10**b) else (a, high)
    c = start * 10 ** ((low + high) / 2)
    return c, cost(c)
