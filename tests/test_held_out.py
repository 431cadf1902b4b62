"""The judge on answers that it was not built on: other styles, unforeseen errors, unusual right answers, two errors."""

import contextlib
import dataclasses
import math
import pkgutil
import random
import sys
import threading
import time
import warnings
from importlib import import_module

import answers
import numpy as np
import pytest
import torch

from autograder import judge
from autograder.exercises import get
from autograder.subject import InProcess

SHEETS = [import_module(f"answers.{module.name}").sheet for module in pkgutil.iter_modules(answers.__path__)]
SEEDS = range(5)
ATTENTION = "ch02/scaled_dot_product_attention"


def each(group):
    """A test for every answer of that group in every chapter; its number picks a seed where one must do."""
    found = [(exercise, held) for sheet in SHEETS for exercise, all in getattr(sheet, group).items() for held in all]
    return pytest.mark.parametrize(
        "exercise, held, seed",
        [
            pytest.param(exercise, held, i % len(SEEDS), id=f"{exercise}: {held.name}")
            for i, (exercise, held) in enumerate(found)
        ],
    )


def hidden(exercise, answer, seed=0):
    return judge(exercise, answer, hidden=True, seed=seed)


def rejected(report, true=()):
    """Points are missing, nothing untrue is said to be the cause, and what is said fits a terminal."""
    assert report.points < report.max_points
    assert set(report.mistakes) <= set(true), report
    assert report.diagnosis is None or report.diagnosis in true, report
    assert report.message and max(map(len, str(report).split("\n"))) <= 80
    return True


@pytest.mark.parametrize("exercise", [f"{s.chapter}/{e.split('/')[1]}" for s in SHEETS for e in s.mistakes])
def test_every_listed_mistake_has_a_second_implementation(exercise):
    sheet = next(s for s in SHEETS if exercise.startswith(s.chapter))
    assert {name for held in sheet.mistakes[exercise] for name in held.true} == {m.name for m in get(exercise).mistakes}


@each("mistakes")
def test_a_mistake_in_another_style_is_rejected_on_every_draw_and_never_misnamed(exercise, held, seed):
    for seed in SEEDS:
        assert rejected(hidden(exercise, held.answer, seed), held.true)


@each("unlisted")
def test_an_unforeseen_error_is_rejected_and_no_listed_mistake_is_claimed(exercise, held, seed):
    assert rejected(hidden(exercise, held.answer, seed), held.true)


@each("pairs")
def test_two_mistakes_at_once_are_never_named_as_a_third(exercise, held, seed):
    assert rejected(hidden(exercise, held.answer, seed), held.true)


@each("rights")
def test_an_unusual_right_answer_gets_full_marks_on_every_draw(exercise, held, seed):
    for seed in SEEDS:
        report = hidden(exercise, held.answer, seed)
        assert report.points == report.max_points, report


def attend(q, k, v, mask=None):
    """A right answer."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(-1) @ v, scores.softmax(-1)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~mask, 0)
    return weights @ v, weights


def state():
    return {
        "torch's random numbers": torch.get_rng_state().tolist(),
        "numpy's random numbers": repr(np.random.get_state()),
        "Python's random numbers": random.getstate(),
        "default dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "determinism": torch.are_deterministic_algorithms_enabled(),
        "warnings": list(warnings.filters),
        "streams": (sys.stdout, sys.stderr),
    }


@pytest.fixture
def unusual_settings():
    """A caller who has set things himself."""
    before = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    yield
    torch.set_default_dtype(before[0])
    torch.set_grad_enabled(before[1])
    torch.set_num_threads(before[2])
    torch.use_deterministic_algorithms(False)


def upset(q, k, v, mask=None):
    """Right, and careless of everything around it."""
    output, weights = attend(q, k, v, mask)
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    torch.rand(3), np.random.rand(3), random.random()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(3)
    torch.use_deterministic_algorithms(not torch.are_deterministic_algorithms_enabled())
    warnings.simplefilter("error")
    sys.stdout = sys.stderr = None
    return output, weights


def test_judging_leaves_the_process_as_it_was():
    before = state()
    hidden(ATTENTION, upset)
    assert state() == before


def test_judging_works_under_any_settings_and_leaves_them(unusual_settings):
    before = state()
    seen = hidden(ATTENTION, attend, 5)  # a seed of its own: the reference, too, is computed under these settings
    assert state() == before
    assert seen.points == seen.max_points, seen


@pytest.mark.parametrize(
    "around",
    [
        torch.inference_mode,
        lambda: torch.device("meta"),
        lambda: torch.autocast("cpu"),
        lambda: np.errstate(all="raise"),
    ],
)
def test_judging_works_within_any_context(around):
    with around():
        report = hidden(ATTENTION, attend, f"within {around}")
    assert report.points == report.max_points, report


def test_an_answer_that_switches_gradients_off_after_its_work_keeps_its_points():
    def answer(*args):
        made = attend(*args)
        torch.set_grad_enabled(False)
        torch.set_default_device("meta")
        torch.set_autocast_enabled("cpu", True)
        return made

    report = hidden(ATTENTION, answer)
    assert report.points == report.max_points, report
    assert torch.get_default_device().type == "cpu" and not torch.is_autocast_enabled("cpu")


def test_torchs_own_not_implemented_is_no_unwritten_answer():
    def answer(q, k, v, mask=None):
        weights = (torch.ones(1) > 0 if mask is None else mask).expand(*q.shape[:3], k.shape[2]).softmax(-1)
        return weights @ v, weights

    assert "Not written yet" not in hidden(ATTENTION, answer).message


def test_outputs_in_another_order_are_said_to_be_so():
    assert "in another order: weights, output" in hidden(ATTENTION, lambda *args: attend(*args)[::-1]).message


def test_an_exception_leaves_the_process_as_it_was():
    def answer(*args):
        upset(*args)
        raise ValueError("after all that")

    before = state()
    assert rejected(hidden(ATTENTION, answer))
    assert state() == before


def test_no_answer_can_spoil_the_inputs_of_the_next():
    """Inputs are handed out as copies: what is written to them, even later, reaches nobody."""
    handed_out = []

    def scribbler(q, k, v, mask=None):
        handed_out.extend(x for x in (q, k, v, mask) if x is not None)
        for x in handed_out:
            x.detach().zero_()
        return v, q

    assert rejected(hidden(ATTENTION, scribbler, 1))
    report = hidden(ATTENTION, attend, 1)
    assert report.points == report.max_points, report


def test_outputs_are_taken_at_once():
    """An answer may reuse its buffers: they are read before the next call."""
    buffers = {}

    def reusing(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        if q.requires_grad:
            return output, weights
        for i, made in enumerate((output, weights)):
            buffers.setdefault((i, made.dtype), torch.empty(20_000, dtype=made.dtype))[: made.numel()] = made.flatten()
        return tuple(buffers[i, m.dtype][: m.numel()].view(m.shape) for i, m in enumerate((output, weights)))

    report = hidden(ATTENTION, reusing, 2)
    assert report.points == report.max_points, report


class Hurried(InProcess):
    """The answer is given a fifth of a second."""

    def see(self, inputs, look, given=None):
        return super().see(inputs, dataclasses.replace(look, seconds=0.2), given)


def sleeping(q, k, v, mask=None):
    time.sleep(60)


def looping(q, k, v, mask=None):
    while True:
        pass


def swallowing_once(q, k, v, mask=None):
    with contextlib.suppress(BaseException):
        time.sleep(60)
    return attend(q, k, v, mask)


def swallowing(q, k, v, mask=None):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def lingering(q, k, v, mask=None):
    try:
        time.sleep(60)
    finally:
        time.sleep(60)


def joining(q, k, v, mask=None):
    thread = threading.Thread(target=time.sleep, args=(2,), daemon=True)
    thread.start()
    thread.join()
    return attend(q, k, v, mask)


@pytest.mark.parametrize("answer", [sleeping, looping, swallowing, swallowing_once, lingering, joining])
def test_an_answer_that_hangs_is_stopped_and_not_asked_again(answer):
    start = time.monotonic()
    report = hidden(ATTENTION, Hurried(answer))
    assert time.monotonic() - start < 5
    assert report.points == 0 and rejected(report)
    assert "0.2 s" in report.message


def test_an_answer_that_loops_is_stopped_in_another_thread_too():
    reports = []
    thread = threading.Thread(target=lambda: reports.append(hidden(ATTENTION, Hurried(looping))), daemon=True)
    thread.start()
    thread.join(10)
    assert reports and reports[0].points == 0 and rejected(reports[0])


def test_what_an_answer_prints_is_dropped(capsys):
    def talkative(q, k, v, mask=None):
        print("q is", q)
        print("here", file=sys.stderr)
        warnings.warn("careful", stacklevel=1)
        return attend(q, k, v, mask)

    report = hidden(ATTENTION, talkative)
    assert report.points == report.max_points, report
    assert capsys.readouterr() == ("", "")


def raising(problem):
    def answer(q, k, v, mask=None):
        raise problem

    return answer


def endless(*args):
    return endless(*args)


def generated(q, k, v, mask=None):
    yield from attend(q, k, v, mask)


ODD = {
    "nothing": lambda *args: None,
    "text": lambda *args: ("output", "weights"),
    "a dictionary": lambda *args: dict(zip(("output", "weights"), attend(*args), strict=True)),
    "nested lists": lambda *args: [x.tolist() for x in attend(*args)],
    "a generator": generated,
    "numbers": lambda *args: (1.0, 2),
    "booleans": lambda *args: (True, False),
    "arrays of text": lambda *args: (np.array(["a"]), np.array([None])),
    "empty tensors": lambda *args: (torch.zeros(0), torch.zeros(0)),
    "whole numbers": lambda *args: tuple(x.round().long() for x in attend(*args)),
    "infinities": lambda *args: tuple(x + math.inf for x in attend(*args)),
    "too many": lambda *args: (*attend(*args), args[0]),
    "nothing at all": lambda *args: (),
    "one axis too many": lambda *args: tuple(x[None] for x in attend(*args)),
    "SystemExit": raising(SystemExit(0)),
    "GeneratorExit": raising(GeneratorExit()),
    "an exception of the deepest kind": raising(BaseException("stop")),
    "an exception that cannot speak": raising(type("Mute", (Exception,), {"__str__": None})()),
    "half a character in a message": raising(ValueError("\ud800")),
    "sparse tensors": lambda *args: tuple(x.detach().to_sparse() for x in attend(*args)),
    "a nested tensor": lambda *args: (torch.nested.nested_tensor(list(attend(*args)[0].detach())), attend(*args)[1]),
    "complex tensors": lambda *args: tuple(torch.complex(x.float(), x.float()) for x in attend(*args)),
    "a tensor of a thousand million": lambda *args: (torch.zeros(1).expand(10**9), attend(*args)[1]),
    "far too many": lambda *args: list(torch.zeros(200_000)),
    "a very long message": raising(ValueError("x" * 10**6)),
    "markup in a message": raising(ValueError("<script>alert(1)</script> & more")),
    "endless recursion": endless,
    "no function": 5,
    "no answer": None,
    "a class": int,
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_whatever_an_answer_returns_or_raises_there_is_a_report(answer):
    report = hidden(ATTENTION, answer)
    assert rejected(report)
    assert "<script>" not in report.html()
    str(report).encode()


def test_an_answer_judged_twice_gets_the_same_report():
    wrong = lambda q, k, v, mask=None: attend(q * 1.1, k, v, mask)  # noqa: E731
    assert hidden(ATTENTION, wrong, "a3f0") == hidden(ATTENTION, wrong, "a3f0")
