"""On which simpler inputs does a wrong answer become right? "Only when B = 1" says where to look."""

import torch

from .trial import Trial

LETTERS = {  # the letters that one question takes together, and the size each is cut to
    "there is one batch item (B = 1)": ({"B"}, 1),
    "there is one head": ({"H", "Hq", "Hkv"}, 1),
    "there is one query (N = 1)": ({"N"}, 1),
    "there is one key (S = 1)": ({"S"}, 1),
    "D = 2": ({"D"}, 2),
}


def when_right(subject, row):
    """The words for every simplification on which the answer is right while the question still is one."""
    return [words for words, inputs in simplifications(row.trial) if right_on(subject, row.trial, inputs)]


def simplifications(trial):
    """(words, inputs) for each that changes anything."""
    for words, (letters, size) in LETTERS.items():
        yield words, {name: cut(x, trial.exercise.takes.get(name, ()), letters, size) for name, x in trial.inputs.items()}
    if trial.inputs.get("mask") is not None:
        yield "nothing is masked", trial.inputs | {"mask": torch.ones_like(trial.inputs["mask"])}
    for words, changes in trial.exercise.rungs.items():
        yield words, trial.inputs | {name: change(trial.inputs[name]) for name, change in changes.items() if name in trial.inputs}


def cut(x, axes, letters, size):
    """x with every axis named by one of `letters` cut to `size`."""
    for axis, letter in enumerate(axes):
        if torch.is_tensor(x) and letter in letters:
            x = x.narrow(axis, 0, min(size, x.shape[axis]))
    return x


def right_on(subject, trial, inputs):
    if all(a is b or torch.is_tensor(a) and a.shape == b.shape and torch.equal(a, b) for a, b in zip(inputs.values(), trial.inputs.values(), strict=True)):
        return False
    simple = Trial.on(trial.exercise, trial.case, inputs)
    if simple.reference.seen.error or not simple.shows():
        return False
    return simple.passes(subject.see(inputs, trial.look))
