"""What to say when no cause is claimed: what differs, in the order in which a person would look.

Never the wanted number. Each check is f(a, b, tolerance, axes) for an output `a` where `b` is wanted: words, or None.
"""

import math

import torch

from .observe import flat
from .trial import cast, distance, rms


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
        return [f"Returned: {many(len(seen.outputs))}. Wanted: {many(len(want.outputs))}, {', '.join(trial.named)}."]
    words = [f"{name} {said}" for name, said in zip(trial.named, differences(trial, seen), strict=True) if said]
    return words + fitted(trial, seen) if words else [beside(trial, seen)]


def many(n):
    return "1 value" if n == 1 else f"{n} values"


def raised(seen, case):
    kind, message = seen.error
    if case.raises:
        return f"Wanted: a {case.raises.__name__}. Raised: {kind}: {message}"
    if kind == "NotImplementedError":
        return "Not written yet: it raises NotImplementedError."
    return f"{kind}: {message}"


def beside(trial, seen):
    """The values are right; something beside them is not."""
    case, kinds = trial.case, trial.reference.seen.kinds
    if case.same_dtype and seen.kinds != kinds:
        return (
            f"Right values, but as {', '.join(seen.kinds)}. Inputs of {', '.join(kinds)} ask for outputs of the same."
        )
    if case.launches and not seen.launches:
        return "Right values, but no Triton kernel ran."
    for limit, used, what in (
        (case.largest, seen.largest, "elements in one tensor"),
        (case.kept, seen.kept, "bytes kept"),
    ):
        if limit and used > limit(**trial.inputs):
            return f"Right values, but {used} {what}; at most {limit(**trial.inputs)} are allowed."
    return "The outputs are not among the right ones."


def differences(trial, seen):
    """For each output words on how it differs, or "" where it is right."""
    expected = trial.reference
    outputs = zip(seen.outputs, expected.seen.outputs, expected.tolerance, trial.named.values(), strict=True)
    for a, b, tolerance, axes in outputs:
        axes = axes if len(axes) == b.ndim else [f"axis {d}" for d in range(b.ndim)]
        said = difference(a, b, tolerance, axes)
        yield f"{said}{empty_rows(trial, a, b)}." if said else ""


def difference(a, b, tolerance, axes):
    if a.shape == b.shape and distance(a, b, tolerance) <= 1:
        return ""
    checks = (shape, number, not_finite, coarse, flat_along, factor, exchanged, reordered, row_sums, nearly)
    said = (check(a, b, tolerance, axes) for check in checks)
    wrong = "differs in {}".format
    return next(filter(None, said), None) or wrong(
        where(((a - b).abs() > 2 * tolerance) | (a.isinf() != b.isinf()), axes)
    )


def shape(a, b, tolerance, axes):
    if a.shape != b.shape:
        same = "; the axes are in another order" if sorted(a.shape) == sorted(b.shape) else ""
        return f"has shape {tuple(a.shape)}; wanted is {tuple(b.shape)}, ({', '.join(axes)}){same}"


def number(a, b, tolerance, axes):
    if b.ndim == 0:
        times = a.item() / b.item() if b.item() else math.nan
        near = f", {times:.4g} times what is wanted" if 1e-3 < abs(times) < 1e3 else ""
        return f"is {a.item():.7g}, which is not right{near}"


def not_finite(a, b, tolerance, axes):
    odd = (a.isnan() & ~b.isnan()) | (a.isinf() & ~b.isinf())
    if odd.any():
        return f"is {'NaN' if a[odd].isnan().any() else 'infinite'} in {where(odd, axes)}"


def coarse(a, b, tolerance, axes):
    for name in ("bfloat16", "float16"):  # the coarser first: most bfloat16 values are float16 values too
        dtype = getattr(torch, name)
        if rms(a) and torch.equal(a, a.to(dtype).double()) and rms(a, b) < 8 * torch.finfo(dtype).eps * rms(b):
            return f"has only the precision of {name}: compute in the dtype of the inputs, or a wider one"


def flat_along(a, b, tolerance, axes):
    if rms(a) <= tolerance:
        return "is all zeros"
    for axis in range(b.ndim):
        if a.shape[axis] > 1 and rms(a, a.mean(axis, keepdim=True).expand(a.shape)) <= tolerance:
            return f"is the same all along {axes[axis]}; it should not be"


def factor(a, b, tolerance, axes):
    good = torch.isfinite(a) & torch.isfinite(b)
    c = ((a[good] @ b[good]) / (b[good] @ b[good]).clamp_min(1e-300)).item()
    if abs(c) > 1e-6 and rms(a, c * b) <= tolerance * max(1, abs(c)):
        return f"is {c:.4g} times what is wanted"


def exchanged(a, b, tolerance, axes):
    for i in range(b.ndim):
        for j in range(i + 1, b.ndim):
            if b.shape[i] == b.shape[j] and rms(a, b.transpose(i, j)) <= tolerance:
                return f"has {axes[i]} and {axes[j]} exchanged"


def reordered(a, b, tolerance, axes):
    for axis in range(b.ndim):
        others = [b.flip(axis), *(b.roll(shift, axis) for shift in range(1, b.shape[axis]))]
        if b.shape[axis] > 1 and any(rms(a, other) <= tolerance for other in others):
            return f"has the right values in another order along {axes[axis]}"


def row_sums(a, b, tolerance, axes):
    sums, one = a.sum(-1), torch.ones(b.shape[:-1], dtype=b.dtype)
    if rms(b.sum(-1), one) < 1e-3 and rms(sums, one) > 1e-3 and a.min() >= 0:
        return f"has rows that sum to {sums.min():.3g} … {sums.max():.3g}; each should sum to 1"


def nearly(a, b, tolerance, axes):
    size = rms(b)
    if rms(a, b) < 4e-3 * size:
        return f"is near, but not by rounding: relative error {rms(a, b) / size:.1e}, allowed {tolerance / size:.1e}"


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
    said, start = [], indices[0]
    for here, after in zip(indices, [*indices[1:], None], strict=True):
        if after != here + 1:
            said.append(f"{start}" if start == here else f"{start}…{here}")
            start = after
    return ", ".join(said[:6]) + (" …" if len(said) > 6 else "")


def empty_rows(trial, a, b):
    """Says so when exactly the queries that may attend to nothing are wrong."""
    mask = trial.inputs.get("mask")
    if mask is None or mask.all() or a.shape != b.shape or b.ndim != 4 or mask.shape[-2] not in (1, b.shape[-2]):
        return ""
    wrong = ((a != b) & ~(a.isclose(b, rtol=1e-3, atol=1e-5))).any(-1)
    empty = (~mask.any(-1)).expand(b.shape[:3])
    return ": exactly the queries that may attend to nothing" if empty.any() and torch.equal(wrong, empty) else ""


def fitted(trial, seen):
    """Where only a constant is off: which one was found, and what it is in the letters of the shape."""
    if not trial.exercise.family or trial.case.gradient:
        return []
    c, distance = fit(trial, seen)
    found = f"It is what the formula gives with the constant {c:.4g}{known_as(c, trial)}; another is wanted."
    return [found] if distance <= 4 else []


def known_as(c, trial):
    shapes = [(axes, trial.inputs[name].shape) for name, axes in trial.exercise.takes.items() if name in trial.inputs]
    sizes = {letter: n for axes, shape in shapes for letter, n in zip(axes, shape, strict=True)}
    forms = {"1/{}": -1.0, "1/√{}": -0.5, "√{}": 0.5, "{}": 1.0}
    powers = {form.format(letter): n**power for letter, n in sizes.items() for form, power in forms.items()}
    near = [form for form, value in powers.items() if math.isclose(c, value, rel_tol=1e-3)]
    return f" ({' or '.join(near)} here)" if near else ""


def fit(trial, seen):
    """c on a logarithmic grid of either sign, then by golden section on log |c|; how far off it is, in tolerances."""
    inputs = list(cast(trial.inputs, torch.float64).values())

    def cost(c):
        outputs, _ = flat(trial.exercise.family(c, *inputs))
        if [o.shape for o in outputs] != [o.shape for o in seen.outputs]:
            return math.inf
        pairs = zip(seen.outputs, outputs, trial.reference.tolerance, strict=True)
        return max(rms(a, b) / tolerance for a, b, tolerance in pairs)

    start = min((sign * 10 ** (e / 8) for sign in (1, -1) for e in range(-24, 17)), key=cost)
    low, high, golden = -0.15, 0.15, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if cost(start * 10**a) < cost(start * 10**b) else (a, high)
    c = start * 10 ** ((low + high) / 2)
    return c, cost(c)
