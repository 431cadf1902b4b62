"""Which mistake? One that would have done the same on every case is named; two together are tried; else none is."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from .exercise import Answer, turned
from .trial import is_real


@dataclass(frozen=True)
class Row:
    """One case and what the answer did on it."""

    trial: object
    seen: object
    ok: bool


@dataclass(frozen=True)
class Cause:
    """The mistakes that explain an answer, and where: in some properties, or everywhere."""

    mistakes: tuple
    where: tuple = ()


def causes(exercise, rows):
    """What can be said for certain: one mistake, or two at once, or one a property. Often nothing."""
    rows = sorted(rows, key=lambda row: row.ok)  # failing ones first: most mistakes are ruled out there
    alone = [mistake for mistake in exercise.mistakes if fits(mistake, rows)]
    if alone:
        return [Cause((alone[0],))] if len(alone) == 1 else []
    return two_at_once(exercise, rows) or by_property(exercise, rows)


def fits(mistake, rows):
    """An exception alone names nothing: other errors raise the same words."""
    return any(not row.seen.error for row in rows) and all(row.trial.matches(row.seen, mistake) for row in rows)


def two_at_once(exercise, rows):
    """Two slips of the shared implementation turned together, when just one such pair does the same on every case."""
    slips = [mistake for mistake in exercise.mistakes if mistake.knobs]
    pairs = [(a, b) for a, b in combinations(slips, 2) if not set(a.knobs) & set(b.knobs)]
    found = [pair for pair in pairs if together(exercise, pair, rows)]
    return [Cause(found[0])] if len(found) == 1 else []


def together(exercise, pair, rows):
    knobs = pair[0].knobs | pair[1].knobs
    both = Answer(f"{pair[0].name} + {pair[1].name}", turned(exercise.variant, knobs), knobs=knobs)
    return fits(both, rows)


def by_property(exercise, rows):
    """Several mistakes at once: one of them may rule a property alone."""
    found, by_name = {}, {p: [row for row in rows if row.trial.case.property == p] for p in exercise.points}
    failing = {name: mine for name, mine in by_name.items() if not all(row.ok for row in mine)}
    earned = [row for row in rows if row.trial.case.property not in failing]
    for name, mine in failing.items():
        alone = [m for m in exercise.mistakes if fits(m, mine) and fits_before(m, failing, name)]
        alone = [m for m in alone if spares(m, earned) and returns_as_many(m, rows)]
        if len(alone) == 1 and shows_numbers(mine) and telling(exercise, tuple(row.trial for row in mine)):
            found.setdefault(alone[0], []).append(name)
    return [Cause((mistake,), tuple(where)) for mistake, where in found.items()]


def spares(mistake, earned):
    """A mistake that would spoil what was earned was not made."""
    return all(row.trial.passes(row.trial.expected(mistake).seen) for row in earned)


def returns_as_many(mistake, rows):
    """Outputs, where they were looked at: gradients do not show how many there were."""
    shown = [(row.seen, row.trial.expected(mistake).seen) for row in rows if not row.trial.case.gradient]
    return all(len(seen.outputs) == len(theirs.outputs) for seen, theirs in shown if not (seen.error or theirs.error))


def fits_before(mistake, failing, name):
    """A mistake that spoils an earlier property too must be what is seen there; else the agreement here is chance."""
    for earlier, rows in failing.items():
        if earlier == name:
            return True
        spoils = not all(row.trial.passes(row.trial.expected(mistake).seen) for row in rows)
        if spoils and not fits(mistake, rows):
            return False


def shows_numbers(rows):
    """NaN everywhere looks alike whatever its cause."""
    return any(t.isfinite().any() for row in rows for t in row.seen.outputs)


@lru_cache(maxsize=256)
def telling(exercise, trials):
    """Whether these cases tell apart every two mistakes that fail them; saturated scores, say, do not.

    Only real numbers do: a few booleans or counts agree by chance.
    """
    if not all(is_real(kind) for trial in trials for kind in trial.reference.seen.kinds):
        return False
    wrong = [m for m in exercise.mistakes if not all(t.passes(t.expected(m).seen) for t in trials)]
    return not any(all(t.matches(t.expected(a).seen, b) for t in trials) for a, b in combinations(wrong, 2))
