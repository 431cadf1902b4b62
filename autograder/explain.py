"""Which mistake? One that would have done the same on every case is named; two together are tried; else none is claimed."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from .exercise import turned
from .trial import Expected, is_real


@dataclass(frozen=True)
class Row:
    """One case and what the answer did on it."""

    trial: object
    seen: object
    ok: bool


@dataclass(frozen=True)
class Cause:
    """The mistakes that explain an answer, and where: on every case, or within one property."""

    mistakes: tuple = ()
    where: str = ""  # a property, or "" for everything


def causes(exercise, rows):
    """What can be said for certain: one mistake, or two at once, or one a property; an empty list says nothing is."""
    rows = sorted(rows, key=lambda row: row.ok)  # failing ones first: most mistakes are ruled out there
    alone = [m for m in exercise.mistakes if fits(m, rows)]
    if len(alone) == 1:
        return [Cause((alone[0],))]
    if alone:
        return []
    return two_at_once(exercise, rows) or by_property(exercise, rows)


def fits(mistake, rows):
    return all(row.trial.matches(row.seen, mistake) for row in rows)


def two_at_once(exercise, rows):
    """Two slips of the shared implementation turned together, when exactly one such pair does the same on every case."""
    slips = [m for m in exercise.mistakes if m.knobs]
    pairs = [(a, b) for a, b in combinations(slips, 2) if not set(a.knobs) & set(b.knobs)]
    found = [pair for pair in pairs if together(exercise, pair, rows)]
    return [Cause(found[0])] if len(found) == 1 else []


def together(exercise, pair, rows):
    both = turned(exercise.variant, pair[0].knobs | pair[1].knobs)
    return all(near(row.trial, row.seen, both) for row in rows) and all(same(row.trial, row.seen, both) for row in rows)


def near(trial, seen, answer):
    """One run, to rule out most pairs cheaply."""
    theirs = trial.see(answer)
    tolerance = trial.reference.tolerance
    return trial.gap(seen, Expected(theirs, tolerance)) <= 16 if len(theirs.outputs) == len(tolerance) else seen.error == theirs.error


def same(trial, seen, answer):
    theirs = trial.expect(answer)
    return trial.within(seen) == trial.within(theirs.seen) and trial.gap(seen, theirs) <= 1


def by_property(exercise, rows):
    """Several mistakes at once: one may rule a property alone. Only where the cases of the property tell its mistakes
    apart, and only for real numbers: a few booleans or counts agree by chance."""
    found = []
    for name in dict.fromkeys(row.trial.case.property for row in rows if not row.ok):
        mine = tuple(row for row in rows if row.trial.case.property == name)
        if not telling(exercise, tuple(row.trial for row in mine)):
            continue
        alone = [m for m in exercise.mistakes if fits(m, mine)]
        if len(alone) == 1:
            found.append(Cause((alone[0],), name))
    return found


@lru_cache(maxsize=256)
def telling(exercise, trials):
    """Whether these cases tell apart every two mistakes that fail them. Saturated scores, say, do not."""
    if not all(is_real(kind) for trial in trials for kind in trial.reference.seen.kinds):
        return False
    wrong = [m for m in exercise.mistakes if not all(t.passes(t.expected(m).seen) for t in trials)]
    return not any(all(t.matches(t.expected(a).seen, b) for t in trials) for a, b in combinations(wrong, 2))
