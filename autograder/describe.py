"""What to say when no cause is claimed: what differs, in the order in which a person would look. Never the wanted number."""

import math

import torch

from .observe import flat
from .trial import cast, rms


def describe(row):
    """Sentences on the first failing case."""
    trial, seen = row.trial, row.seen
    want, case = trial.reference.seen, trial.case
    if seen.error:
        return [raised(seen, case)]
    if case.raises:
        return [f"Wanted: a {case.raises.__name__}. Your function returned something."]
    if case.unchanged and seen.changed:
        return [f"Your function changes its input {', '.join(seen.changed)}. Work on a copy: the caller still needs it."]
    names = list(trial.named)
    if len(seen.outputs) != len(want.outputs):
        return [f"Wanted: {len(want.outputs)} values ({', '.join(names)}). Returned: {len(seen.outputs)}."]
    said = [f"{name} {words}" for name, words in zip(names, differences(trial, seen), strict=True) if words]
    return said + fitted(trial, seen) if said else [beside(trial, seen)]


def raised(seen, case):
    kind, message = seen.error
    if case.raises:
        return f"Wanted: a {case.raises.__name__}. Raised: {kind}: {message}"
    if kind == "NotImplementedError":
        return "Not written yet: it raises NotImplementedError."
    return f"{kind}: {message}"


def beside(trial, seen):
    """The values are right; something beside them is not."""
    case, want = trial.case, trial.reference.seen
    if case.same_dtype and seen.kinds != want.kinds:
        return f"Right values, but they come as {', '.join(seen.kinds)}; the inputs are {', '.join(want.kinds)}, and so should the outputs be."
    if case.launches and not seen.launches:
        return "Right values, but no Triton kernel ran."
    if case.largest and seen.largest > case.largest(**trial.inputs):
        return f"Right values, but a tensor of {seen.largest} elements is made on the way; at most {case.largest(**trial.inputs)} are allowed."
    if case.kept and seen.kept > case.kept(**trial.inputs):
        return f"Right values, but {seen.kept} bytes are kept; at most {case.kept(**trial.inputs)} are allowed."
    return "The outputs are not among the right ones."


def differences(trial, seen):
    """For each output a predicate, or "" where it is right."""
    expected, letters = trial.reference, trial.named.values()
    for a, b, tolerance, axes in zip(seen.outputs, expected.seen.outputs, expected.tolerance, letters, strict=True):
        axes = axes if len(axes) == b.ndim else [f"axis {d}" for d in range(b.ndim)]
        good = a.shape == b.shape and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.isinf(), b.isinf()) and rms(a, b) <= tolerance
        yield "" if good else difference(a, b, tolerance, axes)


def difference(a, b, tolerance, axes):
    checks = (shape, number, not_finite, coarse, flat_along, factor, exchanged, reordered, row_sums, nearly)
    for check in checks:
        words = check(a, b, tolerance, axes)
        if words:
            return words
    return f"differs in {where(((a - b).abs() > 2 * tolerance) | (a.isinf() != b.isinf()), axes)}."


def shape(a, b, tolerance, axes):
    if a.shape != b.shape:
        same = ", the same axes in another order" if sorted(a.shape) == sorted(b.shape) else ""
        wanted = f" = ({', '.join(axes)})" if axes else ""
        return f"has shape {tuple(a.shape)}; {tuple(b.shape)}{wanted} is wanted{same}."


def number(a, b, tolerance, axes):
    if b.ndim == 0:
        times = a.item() / b.item() if b.item() else math.nan
        near = f", {times:.4g} times what is wanted" if 1e-3 < abs(times) < 1e3 else ""
        return f"is {a.item():.7g}, which is not right{near}." if a.isfinite() else f"is {a.item()}."


def not_finite(a, b, tolerance, axes):
    odd = (a.isnan() & ~b.isnan()) | (a.isinf() & ~b.isinf())
    if odd.any():
        return f"is {'NaN' if a[odd].isnan().any() else 'infinite'} in {where(odd, axes)}."


def coarse(a, b, tolerance, axes):
    for name in ("bfloat16", "float16"):  # the coarser first: most bfloat16 values are float16 values too
        dtype = getattr(torch, name)
        if torch.equal(a, a.to(dtype).double()) and rms(a, b) < 8 * torch.finfo(dtype).eps * rms(b) and rms(a):
            return f"has only the precision of {name}: compute in the dtype of the inputs, or a wider one."


def flat_along(a, b, tolerance, axes):
    if rms(a) <= tolerance:
        return "is all zeros."
    for axis in range(b.ndim):
        if a.shape[axis] > 1 and rms(a, a.mean(axis, keepdim=True).expand(a.shape)) <= tolerance:
            return f"is the same all along {axes[axis]}; it should not be."


def factor(a, b, tolerance, axes):
    good = torch.isfinite(a) & torch.isfinite(b)
    c = ((a[good] @ b[good]) / (b[good] @ b[good]).clamp_min(1e-300)).item()
    if abs(c) > 1e-6 and rms(a, c * b) <= tolerance * max(1, abs(c)):
        return f"is {c:.4g} times what is wanted."


def exchanged(a, b, tolerance, axes):
    for i in range(b.ndim):
        for j in range(i + 1, b.ndim):
            if b.shape[i] == b.shape[j] and rms(a, b.transpose(i, j)) <= tolerance:
                return f"has {axes[i]} and {axes[j]} exchanged."


def reordered(a, b, tolerance, axes):
    for axis in range(b.ndim):
        others = [b.flip(axis), *(b.roll(shift, axis) for shift in range(1, b.shape[axis]))]
        if b.shape[axis] > 1 and any(rms(a, other) <= tolerance for other in others):
            return f"has the right values in another order along {axes[axis]}."


def row_sums(a, b, tolerance, axes):
    sums = a.sum(-1)
    one = torch.ones_like(sums)
    if rms(b.sum(-1), one) < 1e-3 and rms(sums, one) > 1e-3 and a.min() >= 0:
        return f"has rows that sum to {sums.min():.3g} … {sums.max():.3g}; each should sum to 1."


def nearly(a, b, tolerance, axes):
    if rms(a, b) < 4e-3 * rms(b):
        return f"is near, but not as near as rounding: relative error {rms(a, b) / rms(b):.1e}, {tolerance / rms(b):.1e} is allowed."


def where(bad, axes):
    """How many entries; and on which indices of an axis, when some index of it is spotless."""
    spots = []
    for axis in range(bad.ndim):
        hit = bad.movedim(axis, 0).flatten(1).any(1) if bad.ndim > 1 else bad
        if not hit.all():
            spots.append(f"{axes[axis]} = {runs(hit.nonzero().flatten().tolist())}")
    everywhere = "all along every axis" if bad.ndim else ""
    return f"{int(bad.sum())} of {bad.numel()} entries, " + (f"only at {' and '.join(spots)}" if spots else everywhere)


def runs(indices):
    """[0, 1, 2, 5] -> "0…2, 5"."""
    said, start = [], indices[0]
    for here, after in zip(indices, [*indices[1:], None], strict=True):
        if after != here + 1:
            said.append(f"{start}" if start == here else f"{start}…{here}")
            start = after
    return ", ".join(said[:6]) + (" …" if len(said) > 6 else "")


def fitted(trial, seen):
    """Where only a constant is off, say which constant was found, and what it is in the letters of the shape."""
    if not trial.exercise.family or trial.case.gradient:
        return []
    c, distance = fit(trial, seen)
    if distance > 4:
        return []
    return [f"It is what the formula gives with the constant {c:.4g} where another is wanted{known_as(c, trial)}."]


def known_as(c, trial):
    sizes = {letter: n for name, axes in trial.exercise.takes.items() if torch.is_tensor(trial.inputs.get(name))
             for letter, n in zip(axes, trial.inputs[name].shape, strict=False)}  # fmt: skip
    forms = {"1/{}": -1.0, "1/√{}": -0.5, "√{}": 0.5, "{}": 1.0}
    near = [form.format(letter) for letter, n in sizes.items() for form, power in forms.items() if math.isclose(c, n**power, rel_tol=1e-3)]
    return f" ({' or '.join(near)} here)" if near else ""


def fit(trial, seen):
    """c on a logarithmic grid of either sign, then by golden section on log |c|; and how far it still is, in tolerances."""
    inputs = list(cast(trial.inputs, torch.float64).values())

    def cost(c):
        outputs, _ = flat(trial.exercise.family(c, *inputs))
        if [o.shape for o in outputs] != [o.shape for o in seen.outputs]:
            return math.inf
        return max(rms(a, b) / t for a, b, t in zip(seen.outputs, outputs, trial.reference.tolerance, strict=True))

    start = min((sign * 10 ** (e / 8) for sign in (1, -1) for e in range(-24, 17)), key=cost)
    low, high, golden = -0.15, 0.15, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if cost(start * 10**a) < cost(start * 10**b) else (a, high)
    c = start * 10 ** ((low + high) / 2)
    return c, cost(c)
