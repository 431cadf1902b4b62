"""What an exercise is: a reference, cases, mistakes, right answers. Nothing here runs an answer.

An exercise is one file below `exercises/chNN/`; README, *Contributing*, shows how to write one.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch

from .errors import BadInput

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs that show one property, and what else is looked at beside the outputs."""

    name: str
    property: str
    inputs: Callable  # Draw -> the arguments, by name
    dtype: torch.dtype = F32
    gradient: tuple = ()  # look at the gradients of these inputs instead of the outputs
    raises: type | None = None  # the exception that is the right answer
    unchanged: bool | tuple = False  # the inputs, or those of these names, must be as they were
    same_dtype: bool = False  # the outputs come in the reference's dtype
    largest: Callable | None = None  # arguments -> the most elements in one tensor made on the way (scores too)
    kept: Callable | None = None  # arguments -> the most bytes that an object may keep
    launches: bool = False  # a Triton kernel must have run
    requires: str = ""  # "cuda": pending on a machine without one
    fixed: bool = False  # nothing is drawn


@dataclass(frozen=True, eq=False)
class Answer:
    """A named implementation: a right answer, or a mistake with the sentence that explains it."""

    name: str
    answer: Callable
    sentence: str = ""
    knobs: dict = field(default_factory=dict)


class RightAnswers(list):
    """The panel; called as a decorator, it takes one more."""

    def __call__(self, answer):
        self.append(Answer(answer.__name__, answer))
        return answer


class Exercise:
    """What is asked, with points for each property. `@exercise` leaves one under the reference's name."""

    def __init__(self, reference, chapter, points, returns, takes="", see="", drive=None, uses=()):
        self.reference, self.chapter, self.points, self.see = reference, chapter, points, see
        self.function, self.name = reference.__name__, f"{chapter}/{reference.__name__}"
        self.returns, self.takes, self.drive, self.uses = axes(returns), axes(takes), drive, tuple(uses)
        parameters = list(inspect.signature(drive or reference).parameters.values())
        self.signature = inspect.Signature(parameters[1:] if drive else parameters)  # drive(answer, …) uses a class
        self.cases, self.mistakes, self.right = [], [], RightAnswers()
        self.variant = self.family = self.factor_of = self.predicate = None
        self.simplifications = {}  # words -> {input: function of it}

    def __repr__(self):
        return f"<exercise {self.name}>"

    @property
    def max_points(self):
        return sum(self.points.values())

    def case(self, property, dtypes=(F32,), **how):
        """Decorate a function from a Draw to the arguments, by name: one case a dtype."""
        if not isinstance(property, str):
            raise BadInput(f'{self.name}: a case names the property that it shows: .case("values"), not .case')
        if property not in self.points:
            raise BadInput(f"{self.name}: a case shows {property!r}, but points are given for {list(self.points)}")

        def add(inputs):
            for dtype in dtypes:
                name = inputs.__name__ + (f" in {str(dtype).removeprefix('torch.')}" if len(dtypes) > 1 else "")
                self.cases.append(Case(self.unused(name, self.cases), property, inputs, dtype, **how))
            return inputs

        return add

    def plant(self, property, name, **inputs):
        """A case whose inputs are not drawn: functions planted for the answer to be used on, or fixed values."""

        def planted(draw):
            return inputs

        planted.__name__ = name
        self.case(property, fixed=True)(planted)

    def slips(self, variant):
        """slip = exercise.slips(variant): for mistakes one keyword (of a class: one attribute) away from right.

        With no knob turned the variant is right, and so joins the right answers. A knob sets one effect, so that two of
        them together still do what both sentences say.
        """
        self.variant = self.right(variant)
        known = dir(variant) if inspect.isclass(variant) else inspect.signature(variant).parameters

        def slip(name, sentence, **knobs):
            for knob in set(knobs) - set(known):
                raise BadInput(f"{self.name}: the slip {name!r} turns a knob {knob!r} that {variant.__name__} has not")
            answer = turned(variant, knobs)
            self.mistakes.append(Answer(self.unused(name, self.mistakes), answer, sentence, knobs))

        return slip

    def mistake(self, answer):
        """Decorate a wrong implementation that is no mere keyword; its docstring is the sentence the student reads."""
        sentence = " ".join((answer.__doc__ or "").split())
        if not sentence:
            raise BadInput(f"{self.name}: the mistake {answer.__name__!r} needs a docstring, which the student reads")
        self.mistakes.append(Answer(self.unused(answer.__name__, self.mistakes), answer, sentence))
        return answer

    def accepts(self, predicate):
        """Decorate fault(inputs, outputs): None where the outputs are right, else the name of the mistake they show.

        For an exercise with many right answers; the reference is then only one of them.
        """
        self.predicate = predicate
        return predicate

    def fit(self, factor_of):
        """Decorate f(c, …): the answers in which c stands before what `factor_of` names. c is then measured."""

        def add(family):
            self.family, self.factor_of = family, factor_of
            return family

        return add

    def simpler(self, words, **changes):
        """A question to ask of a wrong answer: is it right when these inputs are changed so?"""
        self.simplifications[words] = changes

    def unused(self, name, among):
        if any(other.name == name for other in among):
            raise BadInput(f"{self.name}: two cases or mistakes are called {name!r}; give one of them another name")
        return name


def complaints(exercise):
    """What an author has still to do, in sentences."""
    arguments, shown = set(exercise.signature.parameters), {case.property for case in exercise.cases}
    unknown = (set(exercise.takes) | {name for case in exercise.cases for name in case.gradient}) - arguments
    if missing := [name for name in exercise.points if name not in shown]:
        yield f"points are given for {', '.join(missing)}, but no case shows it"
    if unknown:
        yield f"takes or gradient name {', '.join(sorted(unknown))}; the arguments are {', '.join(arguments)}"
    if len(exercise.right) < 3:
        yield f"it has {len(exercise.right)} right answers; give at least 3, in different styles"
    if not exercise.mistakes:
        yield "it has no mistakes: give some that students make"


def turned(variant, knobs):
    """The shared implementation with its knobs turned; a class keeps them as attributes."""
    return type(variant.__name__, (variant,), knobs) if inspect.isclass(variant) else partial(variant, **knobs)


def axes(text):
    """The names and letters in "output: B H N Dv, weights: B H N S"; a number has no letters."""
    pairs = (part.partition(":") for part in text.split(",") if part.strip())
    return {name.strip(): letters.split() for name, _, letters in pairs}


def exercise(chapter, points, returns, **how):
    """Decorate the reference: the plainest correct implementation, from the formula; the judge runs it in float64.

    points: property -> points. returns, takes: names and axes, as "output: B H N Dv, weights: B H N S". see: the book's
    section, as "04-position#rotary". drive: a function that uses a class, drive(answer, …) -> outputs. uses: the names
    of earlier exercises that an answer may build on.
    """
    return lambda reference: Exercise(reference, chapter, points, returns, **how)
