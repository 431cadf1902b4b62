"""A class, graded from beginning to end: `python -m autograder demo`.

A student is a file below ASSIGNMENT/ (what they typed: `typed`), or a function of `odd` (where the file or the notebook
itself is odd). What each should get, and why, was written down in expected.json before it was graded. Hostile students
try to get more; their answers are wrong. The class has a folder of its own, never the cohort's.
"""

import inspect
import json
import os
import shutil
from functools import partial

from .. import box, cohort, lock
from ..words import count
from . import odd
from .typed import ASSIGNMENT, STUDENTS, completed

__all__ = [
    "ASSIGNMENT",
    "ASSIGNMENTS",
    "STUDENTS",
    "completed",
    "differences",
    "expected",
    "hand_in",
    "main",
    "students",
]
ASSIGNMENTS = ("01_soft_retrieval", ASSIGNMENT)  # the class grows: who hands in one hands in the next
DATA = cohort.ROOT / "_build" / "demo"
SECRET = b"the demonstration's own, in print"[:32]  # the same marks everywhere, to the last point
CLASS = "/srv/class"  # where students think the class's folder lies; somebody told the hostile ones where it does


def main() -> int:
    reason = box.available()
    classes = {assignment: taking_part(assignment, reason) for assignment in ASSIGNMENTS}
    announce(classes, reason)
    from .. import gradebook  # nbgrader takes seconds to import

    os.environ["COURSE_DATA"] = str(DATA)
    status = 0
    with lock.alone():
        empty(DATA)
        for assignment, names in classes.items():
            hand_in(DATA, names, assignment)
            status |= gradebook.grade(assignment, jobs=min(2, os.cpu_count() or 1), unboxed=bool(reason))
            gradebook.feedback(assignment)
            print(f"Feedback, a page a student: {DATA / 'feedback'}/STUDENT/{assignment}/{assignment}.html")
    wrong = [line for one, names in classes.items() for line in differences(cohort.verdicts(), names, one)]
    print("\n".join(wrong) or "All marks, verdicts and reasons are those that were written down before.")
    return int(bool(wrong)) or status


def taking_part(assignment, reason):
    """Without a sandbox, the honest alone."""
    return sorted(name for name, want in expected(assignment).items() if not (reason and want["hostile"]))


def announce(classes, reason):
    if reason:
        left_out = sum(len(expected(assignment)) - len(names) for assignment, names in classes.items())
        print(f"{reason}\nSo the {left_out} hostile submissions are left out, and the others run without a sandbox.")
    handed_in = " and ".join(f"{assignment} ({count(len(names), 'student')})" for assignment, names in classes.items())
    print(
        f"A demonstration class hands in {handed_in}; grading and feedback take about"
        f" {'a minute' if reason else 'two minutes'}.",
        flush=True,
    )


def empty(data):
    """An earlier demonstration goes; the lock that is held stays."""
    for path in data.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def expected(assignment=ASSIGNMENT) -> dict:
    """Student -> points, verdict, a part of the reason, and whether they are hostile."""
    return json.loads((STUDENTS / assignment / "expected.json").read_text("utf-8"))


def students(assignment=ASSIGNMENT) -> dict:
    """Student -> a function that puts what they hand in into a folder."""
    names = expected(assignment)
    made = {name: function for name, function in vars(odd).items() if inspect.isfunction(function) and name in names}
    files = (path for path in (STUDENTS / assignment).iterdir() if path.suffix != ".json")  # a .txt is no Python
    return made | {path.stem: partial(odd.put, path.stem, assignment=assignment) for path in files}


def hand_in(data, names=None, assignment=ASSIGNMENT):
    """Write the submissions of these students, or of all, and the class's roster and secret."""
    names = sorted(expected(assignment)) if names is None else names
    data.mkdir(parents=True, exist_ok=True)
    made = students(assignment)
    for name in names:
        made[name](data / "submitted" / name / assignment)
    for path in (data / "submitted").rglob("*.ipynb"):
        if path.is_file() and not path.is_symlink():
            path.write_bytes(path.read_bytes().replace(CLASS.encode(), str(data).encode()))
    (data / "roster.csv").write_text("\n".join(["id", *names]) + "\n", "utf-8")
    (data / "secret").write_bytes(SECRET)


def differences(verdicts, names=None, assignment=ASSIGNMENT):
    """Where points, verdict or reason are not those expected, in sentences."""
    found = {row["student"]: row for row in verdicts if row["assignment"] == assignment}
    wanted = {name: want for name, want in expected(assignment).items() if names is None or name in names}
    return [
        f"{name} should get {want['points']}, {want['verdict']}, for {want['reason']!r} and got {found.get(name)}"
        for name, want in wanted.items()
        if name not in found or not agree(found[name], want)
    ]


def agree(row, want):
    return row["points"] == want["points"] and row["verdict"] == want["verdict"] and want["reason"] in row["reason"]
