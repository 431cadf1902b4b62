"""Kill the grader at random moments, and see that the next run ends as if nothing had happened.

    python tools/soak.py 20 --jobs 2          20 classes, each killed up to three times; `make soak` runs this
    python tools/soak.py 5 --stub --seed 7    the same within seconds: submissions are not run, but get invented marks

Each round begins with the demonstration's honest students newly handed in, or graded once and handed in again. The
grader is killed with SIGKILL, then runs to its end; verdicts, the gradebook's marks and the originals in received/ must
be those of a class that nobody disturbed, and no process may be left. Only the grading of a warm process is disturbed:
what comes before it, Python's imports, changes nothing.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from autograder import demo, store

ASSIGNMENT = demo.ASSIGNMENT
STUB = ("ada", "euler", "gauss", "thales", "tycho", "zeno")
KILLS = 3
MARKS = """SELECT submitted_assignment.student_id, base_cell.name, auto_score, manual_score, needs_manual_grade
    FROM grade JOIN base_cell ON grade.cell_id = base_cell.id
    JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
    JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id ORDER BY 1, 2"""


def invented(notebook, student, secret, boxed):
    """In place of `examine`: points that follow from the student's text, after a moment."""
    time.sleep(0.02)
    outputs, checks = {}, []
    for number, cell in enumerate(notebook["cells"]):
        grader = cell["metadata"].get("nbgrader", {})
        if grader.get("grade"):
            points = hashlib.sha256(f"{student} {number} {notebook['cells'][7]}".encode()).digest()[0] % 3
            data = {"text/plain": repr(float(points))}
            outputs[number] = [{"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}]
            worth = {"points": points, "max_points": grader["points"], "pending_points": 0}
            checks.append({"function": cell["id"], "number": number, **worth, "said": f"{points}", "doubt": ""})
    return {"outputs": outputs, "checks": checks, "stopped": None, "lasting": True}


if "--stub" in sys.argv:  # also in the grader's own processes, which read this file anew
    sys.modules["autograder.examine"] = ModuleType("autograder.examine")
    sys.modules["autograder.examine"].examine = invented


def main():
    options = parser().parse_args()
    names = STUB if options.stub else [name for name, want in demo.expected().items() if not want["hostile"]]
    chance = random.Random(options.seed)
    import_module("autograder.gradebook")  # once, before the first fork; processes of the grader's do without
    store.course()  # all grade with the same code
    with tempfile.TemporaryDirectory(prefix="attention-soak-") as folder:
        os.environ["TMPDIR"] = folder  # sandboxes have it in their command line
        new, old = Path(folder, "new"), Path(folder, "old")
        demo.hand_in(new, names)
        demo.hand_in(old, names)
        graded(old, options)
        hand_in_again(old)
        wrong = [
            difference
            for number in range(options.rounds)
            for difference in disturbed(number, (new, old)[number % 2], Path(folder, str(number)), options, chance)
        ]
    print("\n".join(wrong) or f"{options.rounds} classes, killed {KILLS} times each: nothing was lost.")
    return int(bool(wrong))


def parser():
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("rounds", type=int)
    made.add_argument("--jobs", type=int, default=1)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--stub", action="store_true")
    return made


def hand_in_again(data):
    """Everybody has thought again: the notebook of somebody else."""
    for folder in (data / "submitted").glob(f"*/{ASSIGNMENT}"):
        shutil.rmtree(folder)
        demo.students()["kurt" if folder.parent.name == "ada" else "ada"](folder)


def disturbed(number, begun, data, options, chance):
    """Grade a copy in peace, another with interruptions; how they differ."""
    peaceful = data.with_name(f"{number}-peaceful")
    for copy in (data, peaceful):
        shutil.copytree(begun, copy, symlinks=True)
    start = time.monotonic()
    graded(peaceful, options)
    took, moments = time.monotonic() - start, []
    for _ in range(KILLS):
        moments.append(chance.uniform(0, took))
        graded(data, options, moments[-1])
    graded(data, options)
    print(f"{number}: of {took:.1f} s, killed after {', '.join(f'{m:.2f}' for m in moments)}", flush=True)
    wrong = [
        f"{number}: {what} is {ours} and should be {theirs}"
        for (what, ours), (_, theirs) in zip(state(data), state(peaceful), strict=True)
        if ours != theirs
    ]
    shutil.rmtree(data)
    shutil.rmtree(peaceful)
    return wrong


def graded(data, options, kill_after=None):
    """Grade in a fork of this process."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.environ["COURSE_DATA"] = str(data)
        os._exit(sys.modules["autograder.gradebook"].grade(ASSIGNMENT, jobs=options.jobs))
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    require_nobody(child)


def require_nobody(session):
    """What a grader started ends with it, within a moment."""
    for _ in range(100):
        if not (left := members(session)):
            return
        time.sleep(0.1)
    raise SystemExit(f"processes {left} outlive the grader that started them")


def members(session):
    """Living processes of a grader's session, and sandboxes, which have sessions of their own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            boxed = os.environ["TMPDIR"].encode() in (process / "cmdline").read_bytes()
            if fields[0] != "Z" and (int(fields[3]) == session or boxed):
                found.append(int(process.name))
    return found


def state(data):
    """All that counts, in a form that can be compared."""
    for path in sorted((data / "verdicts").rglob("*")):
        if path.is_file():
            yield (
                path.stem,
                {name: value for name, value in json.loads(path.read_text("utf-8")).items() if name != "mark"},
            )
    book = sqlite3.connect(data / "gradebook.db")
    yield "the gradebook", book.execute(MARKS).fetchall()
    yield "its version", book.execute("SELECT * FROM alembic_version").fetchall()
    book.close()
    yield "what is kept", kept(data / "received")
    yield "what is left half done", [path.name for path in data.rglob(".half*")]


def kept(folder):
    return sorted((str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
