"""The grader measured: every mistake and every right answer of every exercise, judged on many hidden draws."""

import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import torch

from . import exercises
from .exercises import get
from .judge import judge, trials
from .progress import Progress
from .subject import InProcess

DRAWS = 20
COLUMNS = ("misconceptions", "rejected", "named", "misnamed", "panel", "accepted")


def main(draws=DRAWS, as_json=False, names=()):
    """Print the table, or JSON; 0 when every mistake was rejected, none misnamed and every right answer had full marks."""
    found = measure([get(name) for name in names] or exercises(), draws)
    print(json.dumps({"draws": draws, "exercises": found}, indent=1) if as_json else table(found, draws))
    return int(not all(sound(row) for row in found))


def measure(chosen, draws):
    """A row an exercise. A mistake counts as rejected, or named, when it was so on every draw; as misnamed, when on any."""
    seen = defaultdict(list)
    context = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context) as pool, Progress("Measuring the grader", len(chosen) * draws) as bar:
        jobs = {pool.submit(one_draw, exercise.name, seed): exercise for seed in range(draws) for exercise in chosen}
        for job in as_completed(jobs):
            seen[jobs[job].name] += job.result()
            bar.step()
    return [row(exercise, seen[exercise.name]) for exercise in chosen]


def one_draw(name, seed):
    """(kind, answer, outcome, gap) for every answer of an exercise on one draw."""
    torch.set_num_threads(1)
    exercise, found = get(name), []
    cases = trials(name, ("hidden", seed))
    for answer in exercise.mistakes:
        report = judge(name, answer.answer, hidden=True, seed=seed)
        right = report.points == report.max_points
        outcome = "accepted" if right else "named" if report.diagnosis == answer.name else "misnamed" if report.diagnosis else "abstained"
        found.append(("mistake", answer.name, outcome, furthest(answer, cases)))
    for answer in exercise.right:
        report = judge(name, answer.answer, hidden=True, seed=seed)
        full = report.points + report.pending_points == report.max_points
        found.append(("right", answer.name, "accepted" if full else "rejected", furthest(answer, cases)))
    return found


def furthest(answer, cases):
    """The largest gap to the reference, in tolerances, on the cases that the reference's outputs decide."""
    gaps = [trial.gap(InProcess(answer.answer).see(trial.inputs, trial.look)) for trial in cases if not trial.exercise.predicate]
    return max(gaps, default=0.0)


def row(exercise, found):
    outcomes = defaultdict(set)
    for kind, name, outcome, _ in found:
        outcomes[kind, name].add(outcome)
    mistakes = [outcomes["mistake", m.name] for m in exercise.mistakes]
    right = [outcomes["right", r.name] for r in exercise.right]
    return {
        "name": exercise.name,
        "chapter": exercise.chapter,
        "misconceptions": len(mistakes),
        "rejected": sum("accepted" not in o for o in mistakes),
        "named": sum(o == {"named"} for o in mistakes),
        "misnamed": sum("misnamed" in o for o in mistakes),
        "panel": len(right),
        "accepted": sum(o == {"accepted"} for o in right),
        "largest_gap_of_right": max((gap for kind, _, _, gap in found if kind == "right"), default=0.0),
        "least_gap_of_wrong": min((gap for kind, _, _, gap in found if kind == "mistake" and gap > 1), default=None),
        "not_named": sorted({f"{name}: {outcome}" for kind, name, outcome, _ in found if kind == "mistake" and outcome != "named"}),
        "not_accepted": sorted({name for kind, name, outcome, _ in found if kind == "right" and outcome != "accepted"}),
    }


def sound(row):
    return row["rejected"] == row["misconceptions"] and row["accepted"] == row["panel"] and row["misnamed"] == 0


def table(found, draws):
    """One line an exercise; below it what was not as it should be."""
    lines = [f"{draws} draws", f"{'exercise':36}" + "".join(f"{column:>15}" for column in COLUMNS) + f"{'right ≤':>10}{'wrong ≥':>10}"]
    for r in found:
        least = r["least_gap_of_wrong"]
        lines.append(
            f"{r['name']:36}" + "".join(f"{r[column]:15}" for column in COLUMNS) + f"{r['largest_gap_of_right']:10.2f}" + f"{least or 0:10.1e}"
        )
        lines += [f"    {said}" for said in r["not_named"] + [f"right, but rejected: {name}" for name in r["not_accepted"]]]
    return "\n".join(lines)
