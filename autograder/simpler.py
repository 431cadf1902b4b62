"""On which simpler inputs does a wrong answer become right? "Only when B = 1" says where to look."""

from functools import lru_cache

import torch

from .trial import Trial, constant, distance

CUTS = {  # words -> the letters of the axes that are cut, and to what size
    "there is one batch item (B = 1)": ("B", 1),
    "there is one head": ("H Hq Hkv", 1),
    "there is one query (N = 1)": ("N", 1),
    "there is one key (S = 1)": ("S", 1),
    "D = 2": ("D", 2),
}


def when_right(subject, row):
    """The words of every simplification on which the answer is right, while the question still is one."""
    letters = {words: letters.split() for words, (letters, _) in CUTS.items()}
    return [
        words
        for words in simplified(row.trial)
        if right_when(words, subject, row.trial) and not cuts_it_off(row, letters.get(words, []))
    ]


def right_when(words, subject, trial):
    """Also on other draws: on one it may be chance."""
    simple = [made[words] for made in map(simplified, (trial, *trial.others)) if words in made]
    return all(one.passes(subject.see(one.inputs, one.look)) for one in simple)


@lru_cache(maxsize=64)
def simplified(trial):
    """Words -> a trial, for each simplification that changes anything and still tells right from wrong."""
    exercise = trial.exercise
    cuts = {
        words: {name: cut(axes, letters.split(), size) for name, axes in exercise.takes.items()}
        for words, (letters, size) in CUTS.items()
    }
    changes = cuts | {"nothing is masked": {"mask": torch.ones_like}} | exercise.simplifications
    made = {words: change(trial, functions) for words, functions in changes.items()}
    return {
        words: simple
        for words, simple in made.items()
        if simple and not simple.reference.seen.error and asks(simple, words in exercise.simplifications)
    }


def asks(trial, chosen):
    """Whether it is still a question: what is wanted varies, all of it where the exercise has not chosen the change."""
    wanted = zip(trial.reference.seen.outputs, trial.reference.tolerance, strict=True)
    varies = [distance(constant(t), t, tolerance) > 1 for t, tolerance in wanted]
    return any(varies) if chosen else all(varies) and trial.shows()


def change(trial, functions):
    """The trial on changed inputs; None where nothing changes."""
    given = {name: f(trial.inputs[name]) for name, f in functions.items() if trial.inputs.get(name) is not None}
    if all(unchanged(x, trial.inputs[name]) for name, x in given.items()):
        return None
    return Trial(trial.exercise, trial.case, trial.inputs | given)


def cut(axes, letters, size):
    """A function of a tensor that cuts every axis named by one of `letters` to `size`."""

    def cut_to(x):
        for axis, letter in enumerate(axes):
            x = x.narrow(axis, 0, min(size, x.shape[axis])) if letter in letters else x
        return x

    return cut_to


def cuts_it_off(row, letters):
    """Whether a cut leaves only entries that were right without it: then it explains nothing."""
    want, keep = row.trial.reference, [cut(axes, letters, 1) for axes in row.trial.named.values()]
    outputs = zip(row.seen.outputs, want.seen.outputs, want.tolerance, keep, strict=False)
    return bool(letters) and all(a.shape == b.shape and distance(kept(a), kept(b), t) <= 1 for a, b, t, kept in outputs)


def unchanged(a, b):
    return a is b or (torch.is_tensor(a) and torch.is_tensor(b) and a.shape == b.shape and torch.equal(a, b))
