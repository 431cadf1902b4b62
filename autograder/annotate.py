"""A judged notebook, as feedback and the formgrader show it: outputs in their cells, and at its top what to know."""

import textwrap

import nbformat

from .errors import BadInput


def annotated(notebook, notes, examined):
    """Put in what was found; each check then also knows the names of its cell and of the answer's."""
    for check in examined["checks"]:
        require_points(check, notebook)
        check |= {"cell": about(notebook.cells[check["number"]])["grade_id"], "answer": answer(notebook, check)}
    for number, outputs in examined["outputs"].items():
        notebook.cells[number].outputs = [nbformat.from_dict(output) for output in outputs]
    notebook.cells = [*remark(notes, examined), *notebook.cells]
    return notebook


def about(cell):
    return cell.metadata.get("nbgrader", {})


def answer(notebook, check):
    """The solution cell that a check is about: the nearest above it. Comments stand there."""
    above = map(about, reversed(notebook.cells[: check["number"]]))
    return next(grader["grade_id"] for grader in above if grader.get("solution"))


def require_points(check, notebook):
    """nbgrader takes more points than the notebook promises for an error, fewer for a mark."""
    promised = about(notebook.cells[check["number"]])["points"]
    if promised != check["max_points"]:
        raise BadInput(
            f"{check['function']} is worth {check['max_points']:g} points, but {promised:g} in the notebook: run"
            " `python -m autograder notebooks`, then `nbgrader generate_assignment` for this assignment."
        )


def remark(notes, examined):
    """How the submission was taken. A comment in a cell of code, since names of files may hold HTML."""
    notes = [*notes, *filter(None, [examined["stopped"]])]
    notes += [f"{check['function']}: {pending(check)}" for check in examined["checks"] if check["pending_points"]]
    lines = [f"# {line}" for note in notes for line in textwrap.wrap(note, 100)]
    return [nbformat.v4.new_code_cell("\n".join(["# About this submission", *lines]), id="remark")] if lines else []


def pending(check):
    return f"{check['pending_points']:g} points pending: {check['doubt']}"
