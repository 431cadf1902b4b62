"""Judge an answer: run it on every case, give points by property, say which mistake it is or what differs."""

from contextlib import contextmanager
from functools import lru_cache

import torch

from .describe import describe
from .exercises import get
from .explain import Row, causes
from .observe import Seen
from .report import Picture, Report
from .simpler import when_right
from .subject import InProcess
from .trial import Planted, Trial, is_real

AVAILABLE = {"": lambda: True, "cuda": torch.cuda.is_available}


def judge(name, answer, hidden=False, seed=0):
    """Judge `answer`, a function, class or Subject, as the exercise `name`.

    hidden: on inputs drawn from `seed` instead of the public ones. Returns a Report. ValueError for an unknown name.
    """
    exercise = get(name)
    subject = answer if hasattr(answer, "see") else InProcess(answer)
    with one_thread():
        cases = trials(name, ("hidden", seed) if hidden else "public")
        rows = run(subject, cases)
        own = {row.trial.case.property for row in rows if not row.ok}
        if own and exercise.uses and not stopped(rows):
            rows = run(subject, cases, trusted(exercise))
        return report(exercise, subject, rows, own)


def trials(name, key):
    exercise = get(name)
    return tuple(trial(exercise, case, None if case.fixed else key) for case in exercise.cases if AVAILABLE[case.requires]())


@lru_cache(maxsize=512)
def trial(exercise, case, key):
    return Trial(exercise, case, key)


def run(subject, cases, given=None):
    """A row a case. After one that ran out of time no other is started."""
    rows, late = [], False
    for trial in cases:
        seen = Seen(error=("NotRun", "an earlier case ran out of time"), late=True) if late else subject.see(trial.inputs, trial.look, given)
        late = late or seen.late
        rows.append(Row(trial, seen, trial.passes(seen)))
    return rows


def trusted(exercise):
    """Right implementations of the earlier exercises that this one builds on, so that their errors are not counted twice."""
    return {get(name).function: Planted(get(name).right[0].answer) for name in exercise.uses}


def stopped(rows):
    """The answer never answered: out of time, or not written yet."""
    errors = [row.seen.error for row in rows if row.seen.error]
    return any(row.seen.late for row in rows) or any(kind == "NotImplementedError" for kind, _ in errors)


def report(exercise, subject, rows, own):
    wrong = {row.trial.case.property for row in rows if not row.ok}
    pending = {case.property for case in exercise.cases if not AVAILABLE[case.requires]()}
    state = {p: "missed" if p in wrong else "pending" if p in pending else "earned" for p in exercise.points}
    properties = {p: (worth if state[p] == "earned" else 0, worth, state[p]) for p, worth in exercise.points.items()}
    found = causes(exercise, rows) if wrong and not stopped(rows) else []
    named = tuple(dict.fromkeys(m.name for cause in found for m in cause.mistakes))
    return Report(
        exercise.name, properties, message(exercise, subject, rows, found, own - wrong),
        named[0] if len(named) == 1 else None, named, exercise.see, picture(rows),
    )  # fmt: skip


def message(exercise, subject, rows, found, carried):
    failing = [row for row in rows if not row.ok]
    lines = [f"In {cause.where}: {m.sentence}" if cause.where else m.sentence for cause in found for m in cause.mistakes]
    if not found or found[0].where:
        lines += facts(subject, failing, {cause.where for cause in found})
    if carried:
        lines.append(f"It builds on your {', '.join(n.split('/')[1] for n in exercise.uses)}, which is wrong; with a right one it was judged as shown.")
    if not failing:
        lines.append("Right.")
    return "\n".join(lines)


def facts(subject, failing, explained):
    """What differs on the first case that no cause explains, and on which simpler inputs it does not."""
    row = next((row for row in failing if row.trial.case.property not in explained), None)
    if row is None:
        return []
    case = row.trial.case
    lines = [f"{case.property} ({case.name.replace('_', ' ')}): {said}" for said in describe(row)]
    simpler = [] if row.seen.error or case.raises else when_right(subject, row)
    return lines + ([f"It is right when {', or when '.join(simpler)}."] if simpler else [])


def picture(rows):
    """Where the error lies, on the first failing case that has an output of the right shape to draw it over."""
    for row in rows:
        want = row.trial.reference
        pairs = zip(row.trial.exercise.returns.items(), row.seen.outputs, want.seen.outputs, want.tolerance, strict=False)
        for (name, axes), a, b, tolerance in () if row.ok or row.trial.case.gradient else pairs:
            if a.shape == b.shape and len(axes) == b.ndim >= 2 and b.shape[-2] <= 24 and b.shape[-1] <= 24 and is_real(want.seen.kinds[0]):
                error = torch.where(a == b, 0.0, a - b).abs().nan_to_num(torch.inf).flatten(0, -3).amax(0) if b.ndim > 2 else (a - b).abs()
                if error.max() > tolerance:
                    return Picture(f"{name} ({row.trial.case.name.replace('_', ' ')})", axes[-2], axes[-1], shades(error, tolerance))
    return None


def shades(error, tolerance):
    """0 within tolerance, else from ¼ to 1 on a scale of the largest finite error."""
    finite = error[error.isfinite()]
    top = finite.max().item() if finite.numel() and finite.max() > 0 else 1.0
    return [[0.0 if e <= tolerance else min(1.0, 0.25 + 0.75 * e / top) for e in row] for row in error.tolist()]


@contextmanager
def one_thread():
    """Small tensors are judged fastest on one thread; the caller's number is put back."""
    before = torch.get_num_threads()
    if before != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if before != 1:
            torch.set_num_threads(before)
