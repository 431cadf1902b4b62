"""On which simpler inputs does a wrong answer become right? "Only when B = 1" says where to look."""

import torch

from .trial import Trial

CUTS = {  # words -> the letters of the axes that are cut, and to what size
    "there is one batch item (B = 1)": ("B", 1),
    "there is one head": ("H Hq Hkv", 1),
    "there is one query (N = 1)": ("N", 1),
    "there is one key (S = 1)": ("S", 1),
    "D = 2": ("D", 2),
}


def when_right(subject, row):
    """The words of every simplification on which the answer is right, while the question still is one."""
    return [words for words, inputs in simplified(row.trial) if right_on(subject, row.trial, inputs)]


def simplified(trial):
    """(words, inputs) for each simplification that changes anything."""
    for words, (letters, size) in CUTS.items():
        yield (
            words,
            change(trial, {name: cut(axes, letters.split(), size) for name, axes in trial.exercise.takes.items()}),
        )
    yield "nothing is masked", change(trial, {"mask": torch.ones_like})
    for words, changes in trial.exercise.simplifications.items():
        yield words, change(trial, changes)


def change(trial, changes):
    given = {name: f(trial.inputs[name]) for name, f in changes.items() if trial.inputs.get(name) is not None}
    return trial.inputs | given


def cut(axes, letters, size):
    """A function of a tensor that cuts every axis named by one of `letters` to `size`."""

    def cut_to(x):
        for axis, letter in enumerate(axes):
            x = x.narrow(axis, 0, min(size, x.shape[axis])) if letter in letters else x
        return x

    return cut_to


def right_on(subject, trial, inputs):
    if all(unchanged(inputs[name], x) for name, x in trial.inputs.items()):
        return False
    simple = Trial.on(trial.exercise, trial.case, inputs)
    if simple.reference.seen.error or not simple.shows():
        return False
    return simple.passes(subject.see(inputs, trial.look))


def unchanged(a, b):
    return a is b or (torch.is_tensor(a) and torch.is_tensor(b) and a.shape == b.shape and torch.equal(a, b))
