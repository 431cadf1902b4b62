"""The grader measured: every mistake and every right answer of every exercise, judged on many hidden draws."""

import json
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import torch

from . import exercises
from .errors import BadInput
from .exercises import get
from .explain import fits
from .judging import judged, trials
from .progress import Progress
from .subject import InProcess
from .trial import FAR

COLUMNS = ("misconceptions", "rejected", "named", "misnamed", "panel", "accepted")


def main(draws, as_json=False, names=()):
    """Print the table, or JSON. 0 when every mistake was rejected, none misnamed, every right answer at full marks."""
    if draws < 1:
        raise BadInput(f"--draws is {draws}; at least 1 is needed, and 20 say more.")
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
    """(kind, name, outcome, gap, words) of every answer of an exercise on one draw, and its cases that are no use."""
    torch.set_num_threads(1)
    exercise, cases = get(name), trials(name, ("hidden", seed))
    weak = [("case", trial.case.name, "weak", 0.0, "trivial answers come near") for trial in cases if trial.weak]
    mistakes = [outcome("mistake", mistake, exercise, cases) for mistake in exercise.mistakes]
    return weak + mistakes + [outcome("right", answer, exercise, cases) for answer in exercise.right]


def outcome(kind, answer, exercise, cases):
    report, rows = judged(exercise, InProcess(answer.answer), cases)
    full = report.points + report.pending_points == report.max_points
    named = "named" if report.diagnosis == answer.name else "misnamed" if report.diagnosis else "abstained"
    gap = max((row.trial.gap(row.seen) for row in rows if not exercise.predicate), default=0.0)
    words = alike(answer, exercise, rows) if kind == "mistake" else report.message.split("\n")[0]
    return kind, answer.name, "accepted" if full else named, gap, words


def alike(mistake, exercise, rows):
    """The other mistakes that did the same on every case: merge them, or add a case."""
    others = [other.name for other in exercise.mistakes if other is not mistake and fits(other, rows)]
    return f"cannot be told from {', '.join(others)}" if others else ""


def row(exercise, found):
    outcomes, words = defaultdict(set), {}
    for kind, name, outcome, _, said in found:
        outcomes[kind, name].add(outcome)
        words[kind, name] = said or words.get((kind, name), "")
    mistakes = {m.name: outcomes["mistake", m.name] for m in exercise.mistakes}
    right = {r.name: outcomes["right", r.name] for r in exercise.right}
    gaps = {kind: [gap for k, _, _, gap, _ in found if k == kind and gap != FAR] for kind in ("mistake", "right")}
    return {
        "name": exercise.name,
        "chapter": exercise.chapter,
        "misconceptions": len(mistakes),
        "rejected": sum("accepted" not in seen for seen in mistakes.values()),
        "named": sum(seen == {"named"} for seen in mistakes.values()),
        "misnamed": sum("misnamed" in seen for seen in mistakes.values()),
        "panel": len(right),
        "accepted": sum(seen == {"accepted"} for seen in right.values()),
        "largest_gap_of_right": max(gaps["right"], default=0.0),
        "least_gap_of_wrong": min((gap for gap in gaps["mistake"] if gap > 1), default=None),
        "weak_cases": sorted({name for kind, name, *_ in found if kind == "case"}),
        "odd": [
            f"{kind} {name}: {', '.join(sorted(seen))}. {words.get((kind, name), '')}".strip()
            for (kind, name), seen in outcomes.items()
            if seen != {"named" if kind == "mistake" else "accepted"}
        ],
    }


def sound(row):
    rejected, accepted = row["rejected"] == row["misconceptions"], row["accepted"] == row["panel"]
    return rejected and accepted and row["misnamed"] == 0 and not row["weak_cases"]


def table(found, draws):
    """One line an exercise; below it what was not as it should be."""
    lines = [
        f"{draws} draws; gaps in tolerances",
        "exercise".ljust(35) + "".join(c.rjust(15) for c in (*COLUMNS, "right", "wrong")),
    ]
    for r in found:
        least = r["least_gap_of_wrong"]
        gaps = f"≤ {r['largest_gap_of_right']:.2f}", "–" if least is None else f"≥ {least:.1e}"
        lines.append(r["name"].ljust(35) + "".join(str(x).rjust(15) for x in (*(r[c] for c in COLUMNS), *gaps)))
        lines += [f"    {said}" for said in r["odd"]]
    return "\n".join(lines)
