"""A small class, graded from beginning to end: `python -m autograder demo`.

Each student is one file below demo/ASSIGNMENT/, whose functions stand for what they typed into the solution cells. What
each should get was written down in expected.json beside them. The class has a folder of its own, never the cohort's.
"""

import json
import os
import re
import shutil
from pathlib import Path

from . import cohort

ASSIGNMENT = "02_queries_keys_values"
STUDENTS = Path(__file__).with_name("demo") / ASSIGNMENT
DATA = cohort.ROOT / "_build" / "demo"
SECRET = b"the demonstration's own, in print"[:32]  # the same marks everywhere, to the last point


def main() -> int:
    print(
        f"A demonstration class of {len(students())} hands in {ASSIGNMENT}; grading takes about half a minute.",
        flush=True,
    )
    from . import gradebook  # nbgrader takes seconds to import

    os.environ["COURSE_DATA"] = str(DATA)
    shutil.rmtree(DATA, ignore_errors=True)
    hand_in(DATA)
    status = gradebook.grade(ASSIGNMENT, jobs=min(2, os.cpu_count() or 1))
    gradebook.feedback(ASSIGNMENT)
    print(f"Feedback, a page a student: {DATA / 'feedback'}/STUDENT/{ASSIGNMENT}/{ASSIGNMENT}.html")
    wrong = differences(cohort.verdicts())
    print("\n".join(wrong) or "All marks are those that were written down before.")
    return int(bool(wrong)) or status


def hand_in(data):
    """Write the submissions, and the secret."""
    for path in students():
        folder = data / "submitted" / path.stem / ASSIGNMENT
        folder.mkdir(parents=True)
        notebook = completed(cohort.released(ASSIGNMENT), path.read_text("utf-8"))
        (folder / f"{ASSIGNMENT}.ipynb").write_text(json.dumps(notebook, indent=1), "utf-8")
    (data / "secret").write_bytes(SECRET)


def students():
    """Python files; a text file where the answer is no Python."""
    return sorted(path for path in STUDENTS.iterdir() if path.suffix in (".py", ".txt"))


def completed(notebook, answers):
    """The notebook with each answer, and what follows it up to the next, in the cell of its name."""
    cells = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in notebook["cells"]}
    for answer in re.split(r"^(?=def )", answers, flags=re.MULTILINE)[1:]:
        name = re.match(r"def (\w+)", answer)[1]
        if name in cells:
            cell = cells[name]
            cell["source"] = answer.strip()
        else:  # a helper
            cell["source"] += "\n\n\n" + answer.strip()
    return notebook


def differences(verdicts):
    """Where marks or reasons are not those expected, in sentences."""
    expected = json.loads((STUDENTS / "expected.json").read_text("utf-8"))
    found = {row["student"]: row for row in verdicts}
    return [
        f"{name} should get {want['points']} for {want['reason']!r} and got {found.get(name)}"
        for name, want in expected.items()
        if name not in found or found[name]["points"] != want["points"] or want["reason"] not in found[name]["reason"]
    ]
