"""Judge an answer: run it on every case, give points by property, say which mistake it is or what differs."""

import time
from contextlib import contextmanager
from functools import lru_cache

import torch

from .describe import UNWRITTEN, describe
from .exercises import get
from .explain import Row, causes
from .isolation import calm
from .observe import Seen
from .picture import picture
from .report import Report
from .simpler import when_right
from .subject import InProcess, Subject
from .trial import Trial

AVAILABLE = {"": lambda: True, "cuda": torch.cuda.is_available}
NOT_RUN = Seen(error=("", "not run: the time was used up by earlier cases"), late=True)
SECONDS = 60.0  # for all cases of an exercise together


def judge(name, answer, hidden=False, seed=0):
    """Judge `answer`, a function, class or Subject, as the exercise `name`.

    hidden: on inputs drawn from `seed` instead of the public ones. Returns a Report. BadInput for an unknown name.
    """
    subject = answer if isinstance(answer, Subject) else InProcess(answer)
    with one_thread(), calm():
        return judged(get(name), subject, trials(name, ("hidden", seed) if hidden else "public"))[0]


def judged(exercise, subject, cases):
    """The report, and the rows that it rests on."""
    rows = run(subject, cases)
    alone = missed(rows)
    if alone and exercise.uses and not any(row.seen.late for row in rows):
        helped = run(subject, cases, trusted(exercise))
        rows = [fairer(own, lent) for own, lent in zip(rows, helped, strict=True)]
    return report(exercise, subject, rows, alone), rows


def trials(name, key):
    exercise = get(name)
    cases = [case for case in exercise.cases if AVAILABLE[case.requires]()]
    return tuple(trial(exercise, case, None if case.fixed else key) for case in cases)


@lru_cache(maxsize=512)
def trial(exercise, case, key):
    return Trial.drawn(exercise, case, key)


def run(subject, cases, given=None):
    """A row a case. After one that ran out of time no other is started, nor when all together take too long."""
    rows, began = [], time.monotonic()
    for trial in cases:
        late = any(row.seen.late for row in rows) or time.monotonic() - began > SECONDS
        seen = NOT_RUN if late else subject.see(trial.inputs, trial.look, given)
        rows.append(Row(trial, seen, trial.passes(seen)))
    return rows


def missed(rows):
    return {row.trial.case.property for row in rows if not row.ok}


def trusted(exercise):
    """Right implementations of the earlier exercises that this one builds on, so that no error is counted twice."""
    return {get(name).function: called_as_asked(get(name)) for name in exercise.uses}


def fairer(own, lent):
    """The row with a right helper, unless that does not fit: the student may have given theirs other arguments."""
    unfit = lent.seen.late or (lent.seen.error and not own.seen.error)
    return own if own.ok or unfit else lent


def called_as_asked(exercise):
    """A right answer that takes the arguments of the exercise and no others; ours may have more."""

    def function(*args, **kwargs):
        exercise.signature.bind(*args, **kwargs)
        return exercise.right[0].answer(*args, **kwargs)

    return function


def unanswered(rows):
    """Out of time, or not written yet."""
    return any(row.seen.late or row.seen.error == UNWRITTEN for row in rows)


def report(exercise, subject, rows, alone):
    """alone: the properties missed with the answer's own helpers; rows may be with trusted ones."""
    wrong, pending = missed(rows), {c.property for c in exercise.cases if not AVAILABLE[c.requires]()}
    states = {p: "missed" if p in wrong else "pending" if p in pending else "earned" for p in exercise.points}
    properties = {p: (worth * (states[p] == "earned"), worth, states[p]) for p, worth in exercise.points.items()}
    found = causes(exercise, rows) if wrong and not unanswered(rows) else []
    named = tuple(dict.fromkeys(mistake.name for cause in found for mistake in cause.mistakes))
    message = "\n".join(sentences(exercise, subject, rows, found, alone - wrong))
    only = named[0] if len(named) == 1 else None
    return Report(exercise.name, properties, message, only, named, exercise.see, picture(rows))


def sentences(exercise, subject, rows, found, carried):
    failing = [row for row in rows if not row.ok]
    places = [f"In {' and '.join(cause.where)}: " if cause.where else "" for cause in found]
    lines = [place + m.sentence for place, cause in zip(places, found, strict=True) for m in cause.mistakes]
    if not found or found[0].where:
        lines += facts(subject, failing, {name for cause in found for name in cause.where})
    if carried:
        lines.append(f"It builds on your {helpers(exercise, carried)}. With a right one it was judged as shown.")
    return lines if failing else [*lines, "Right."]


def helpers(exercise, carried):
    """The earlier answers, and what is wrong with them: `carried` names the properties that right ones mend."""
    severed = all(case.gradient for case in exercise.cases if case.property in carried)
    fault = "through which gradients do not pass as they should" if severed else "which is wrong or not written yet"
    return f"{', '.join(get(name).function for name in exercise.uses)}, {fault}"


def facts(subject, failing, explained):
    """What differs on the first case that no cause explains, and on which simpler inputs it does not."""
    row = next((row for row in failing if row.trial.case.property not in explained), None)
    if row is None:
        return []
    case = row.trial.case
    lines = [f"{case.property} ({circumstances(row.trial)}): {said}" for said in describe(row)]
    simpler = [] if row.seen.error or case.raises else when_right(subject, row)
    return [*lines, f"It is right when {', or when '.join(simpler)}."] if simpler else lines


def circumstances(trial):
    """The case, and which arguments were left out: their defaults may be wrong."""
    absent = [name for name in trial.exercise.signature.parameters if name not in trial.inputs]
    return ", ".join([trial.case.name.replace("_", " "), *([f"called without {', '.join(absent)}"] if absent else [])])


@contextmanager
def one_thread():
    """Small tensors are judged fastest on one thread; the caller's number is put back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
