"""A notebook with what a student typed into it: a py:percent file, as the problem sets are.

A cell that defines an exercise's function takes the place of that solution cell, as does one with place="THE NAME"; any
other is added behind the cell before it. The text above the first cell says what the student does; with
`from .ada import f` there, they hand in f as Ada has it.
"""

import re
from pathlib import Path

import jupytext

from .. import cohort

ASSIGNMENT = "02_queries_keys_values"  # unless another is named
STUDENTS = Path(__file__).parent
AS_ANOTHER = re.compile(r"^from \.(\w+) import (.+)$", re.MULTILINE)
DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)


def notebook(student: str, assignment: str = ASSIGNMENT) -> dict:
    """The notebook of a student who typed all of it."""
    return completed(cohort.released(assignment), text(student, assignment), assignment)


def completed(notebook: dict, typed: str, assignment: str = ASSIGNMENT) -> dict:
    """The released notebook with the cells of `typed` in their places."""
    solutions = {cell["id"]: cell for cell in notebook["cells"] if is_solution(cell)}
    for name, source in taken_over(typed, assignment).items():
        solutions[name]["source"] = source
    after = first_code(notebook)
    for cell in cells(typed):
        if name := defines(cell, solutions):
            solutions[name]["source"] = cell.source
            after = notebook["cells"].index(solutions[name])
        else:
            after += 1
            notebook["cells"].insert(after, added(cell, after))
    return notebook


def text(student, assignment):
    [path] = (STUDENTS / assignment).glob(f"{student}.*")
    return path.read_text("utf-8")


def cells(typed):
    return jupytext.reads(typed, fmt="py:percent").cells[1:]


def taken_over(typed, assignment):
    """Function -> the cell of the student it is taken from."""
    found = {}
    for student, names in AS_ANOTHER.findall(typed):
        theirs = answers(student, assignment)
        found |= {name: theirs[name] for name in names.split(", ")}
    return found


def answers(student, assignment=ASSIGNMENT):
    """Function -> the cell that a student defines it in."""
    return {name: cell.source for cell in cells(text(student, assignment)) for name in DEFINED.findall(cell.source)}


def defines(cell, solutions):
    defined = (name for name in DEFINED.findall(cell.source) if name in solutions)
    return cell.metadata.get("place") or next(defined, None)


def is_solution(cell):
    return cell["metadata"].get("nbgrader", {}).get("solution", False)


def first_code(notebook):
    """The place of the set-up cell."""
    return next(i for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code")


def added(cell, number):
    code = {"outputs": [], "execution_count": None} if cell.cell_type == "code" else {}
    return {"cell_type": cell.cell_type, "id": f"mine-{number}", "metadata": {}, "source": cell.source, **code}
