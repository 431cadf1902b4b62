"""The grader measured: every mistake and every right answer of every exercise, judged on many hidden draws."""

import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import torch

from . import exercises
from .exercises import get
from .judging import judge, trials
from .progress import Progress
from .subject import InProcess

COLUMNS = ("misconceptions", "rejected", "named", "misnamed", "panel", "accepted")


def main(draws, as_json=False, names=()):
    """Print the table, or JSON. 0 when every mistake was rejected, none misnamed, every right answer at full marks."""
    found = measure([get(name) for name in names] or exercises(), draws)
    print(json.dumps({"draws": draws, "exercises": found}, indent=1) if as_json else table(found, draws))
    return int(not all(map(sound, found)))


def measure(chosen, draws):
    """A row an exercise. A mistake is rejected, or named, when it was so on every draw; misnamed, when on any."""
    seen = defaultdict(list)
    wanted = [(exercise.name, seed) for seed in range(draws) for exercise in chosen if seed == 0 or is_drawn(exercise)]
    pool = ProcessPoolExecutor(os.cpu_count(), get_context("spawn"))
    with pool, Progress("Measuring the grader", len(wanted)) as bar:
        jobs = {pool.submit(one_draw, name, seed): name for name, seed in wanted}
        for job in as_completed(jobs):
            seen[jobs[job]] += job.result()
            bar.step()
    return [row(exercise, seen[exercise.name]) for exercise in chosen]


def is_drawn(exercise):
    return not all(case.fixed for case in exercise.cases)


def one_draw(name, seed):
    """(kind, name, outcome, gap) of every answer of an exercise on one draw."""
    torch.set_num_threads(1)
    exercise, cases = get(name), trials(name, ("hidden", seed))

    def judged(kind, answer):
        report = judge(name, answer.answer, hidden=True, seed=seed)
        full = report.points + report.pending_points == report.max_points
        named = "named" if report.diagnosis == answer.name else "misnamed" if report.diagnosis else "abstained"
        return kind, answer.name, "accepted" if full else named, furthest(answer, cases)

    return [judged("mistake", m) for m in exercise.mistakes] + [judged("right", r) for r in exercise.right]


def furthest(answer, cases):
    """The largest gap to the reference, in tolerances, over the cases whose outputs the reference decides."""
    subject = InProcess(answer.answer)
    cases = [trial for trial in cases if not trial.exercise.predicate]
    return max((trial.gap(subject.see(trial.inputs, trial.look)) for trial in cases), default=0.0)


def row(exercise, found):
    outcomes = defaultdict(set)
    for kind, name, outcome, _ in found:
        outcomes[kind, name].add(outcome)
    mistakes = {m.name: outcomes["mistake", m.name] for m in exercise.mistakes}
    right = {r.name: outcomes["right", r.name] for r in exercise.right}
    return {
        "name": exercise.name,
        "chapter": exercise.chapter,
        "misconceptions": len(mistakes),
        "rejected": sum("accepted" not in seen for seen in mistakes.values()),
        "named": sum(seen == {"named"} for seen in mistakes.values()),
        "misnamed": sum("misnamed" in seen for seen in mistakes.values()),
        "panel": len(right),
        "accepted": sum(seen == {"accepted"} for seen in right.values()),
        "largest_gap_of_right": max((gap for kind, _, _, gap in found if kind == "right"), default=0.0),
        "least_gap_of_wrong": min((gap for kind, _, _, gap in found if kind == "mistake" and gap > 1), default=None),
        "odd": [f"mistake {name}: {', '.join(sorted(seen))}" for name, seen in mistakes.items() if seen != {"named"}]
        + [f"right answer {name}: not accepted" for name, seen in right.items() if seen != {"accepted"}],
    }


def sound(row):
    return row["rejected"] == row["misconceptions"] and row["accepted"] == row["panel"] and row["misnamed"] == 0


def table(found, draws):
    """One line an exercise; below it what was not as it should be."""
    lines = [
        f"{draws} draws; gaps in tolerances",
        "exercise".ljust(35) + "".join(c.rjust(15) for c in (*COLUMNS, "right", "wrong")),
    ]
    for r in found:
        gaps = f"≤ {r['largest_gap_of_right']:.2f}", f"≥ {r['least_gap_of_wrong'] or 0:.1e}"
        lines.append(r["name"].ljust(35) + "".join(str(x).rjust(15) for x in (*(r[c] for c in COLUMNS), *gaps)))
        lines += [f"    {said}" for said in r["odd"]]
    return "\n".join(lines)
