"""The grader's accuracy, measured: what `python -m autograder selftest` says of the whole catalogue."""

import json

import pytest
import torch

import autograder
from autograder import judge, selftest
from autograder.exercises import get

DRAWS = 20


@pytest.fixture(scope="module")
def measured():
    """Every mistake and right answer on twenty draws: minutes on two cores, and what the whole course rests on."""
    return selftest.measure(autograder.exercises(), DRAWS)


def test_every_mistake_is_rejected_on_every_draw(measured):
    assert [row["odd"] for row in measured if row["rejected"] != row["misconceptions"]] == []


def test_no_mistake_is_ever_taken_for_another(measured):
    assert [row["odd"] for row in measured if row["misnamed"]] == []


def test_at_least_95_of_100_mistakes_are_named_on_every_draw(measured):
    assert sum(row["named"] for row in measured) >= 0.95 * sum(row["misconceptions"] for row in measured)


def test_every_right_answer_has_full_marks_on_every_draw(measured):
    assert [row["odd"] for row in measured if row["accepted"] != row["panel"]] == []


def test_no_draw_lets_a_trivial_answer_come_near(measured):
    assert [row["weak_cases"] for row in measured if row["weak_cases"]] == []


def test_right_and_wrong_are_far_apart(measured):
    """In tolerances: what is right stays well below 1, and no mistake comes anywhere near."""
    assert max(row["largest_gap_of_right"] for row in measured) < 0.7
    assert min(row["least_gap_of_wrong"] or 1e9 for row in measured) > 10


def test_every_exercise_has_a_panel_of_three_and_mistakes_enough():
    for exercise in autograder.exercises():
        assert len(exercise.right) >= 3, exercise
        assert len(exercise.mistakes) >= 2, exercise
        assert all(mistake.sentence.endswith((".", ":")) for mistake in exercise.mistakes), exercise


@pytest.mark.parametrize("threads", [1, 2])
def test_the_callers_threads_do_not_matter(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        exercise = get("ch02/scaled_dot_product_attention")
        reports = [str(judge(exercise.name, m.answer, hidden=True, seed=1)) for m in exercise.mistakes[:5]]
    finally:
        torch.set_num_threads(before)
    torch.set_num_threads(1)
    assert reports == [str(judge(exercise.name, m.answer, hidden=True, seed=1)) for m in exercise.mistakes[:5]]
    torch.set_num_threads(before)


def test_the_command_prints_json_with_the_names_that_others_rely_on(capsys):
    assert selftest.main(1, as_json=True, names=["ch02/dot_product_variance"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["exercises"]
    counts = {name: row[name] for name in ("misconceptions", "rejected", "named", "misnamed", "panel", "accepted")}
    assert row["name"] == "ch02/dot_product_variance" and row["chapter"] == "ch02"
    assert counts == {"misconceptions": 10, "rejected": 10, "named": 10, "misnamed": 0, "panel": 5, "accepted": 5}


def test_what_is_odd_is_told_and_fails_the_command(capsys, monkeypatch):
    exercise = get("ch02/dot_product_variance")
    row = selftest.row(exercise, [("mistake", "divided_by_m", "accepted", 0.2, "")])
    monkeypatch.setattr(selftest, "measure", lambda chosen, draws: [row])
    assert selftest.main(1) == 1
    assert "mistake divided_by_m: accepted" in capsys.readouterr().out
