"""Run a rebuilt notebook in a worker and judge its checks from outside.

The result depends on the notebook, the student's name, the course's secret and this repository, and on nothing else.
"""

import ast
import hashlib
import hmac

from . import cohort
from .boxed import Boxed, Worker
from .describe import UNWRITTEN
from .judging import judge


def examine(notebook: dict, student: str, secret: bytes) -> dict:
    """{"outputs": {a cell's number: its outputs}, "checks": [one a check], "stopped": why the worker was lost}."""
    outputs, checks = {}, []
    with Worker() as worker:
        worker.started()
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            if asked := check(cell):
                outputs[number], found = judged(worker, *asked, student, secret, number)
                checks.append(found)
            else:
                outputs[number] = run(worker, cell["source"])
        return {"outputs": outputs, "checks": checks, "stopped": worker.died}


def check(cell):
    """The exercise and the function that a graded cell asks for; None for a cell that is run."""
    grader = cell["metadata"].get("nbgrader", {})
    if not grader.get("grade") or grader.get("solution"):
        return None
    match ast.parse(cell["source"]).body:
        case [ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str() as exercise), ast.Name(function)], []))]:
            return exercise, function
    raise ValueError(
        f'The graded cell {grader.get("grade_id")} is not one call as check("ch02/project_qkv", project_qkv).'
    )


def judged(worker, exercise, function, student, secret, number):
    """The outputs of a check's cell, and what the verdict needs of it."""
    subject = Boxed(worker, function)
    report = judge(exercise, subject, hidden=True, seed=seed(secret, student, exercise))
    data = {"text/plain": repr(float(report.points)), "text/html": report.html()}
    shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
    written = UNWRITTEN not in subject.errors
    found = {"function": function, "number": number, "points": report.points, "max_points": report.max_points}
    said = report.diagnosis or report.message.splitlines()[0]
    return [shown], {**found, "said": said if written else cohort.UNWRITTEN}


def seed(secret, student, exercise):
    """No two students share inputs, and a re-grade draws the same ones."""
    return hmac.new(secret, f"{student}\0{exercise}".encode(), hashlib.sha256).hexdigest()


def run(worker, source):
    """The outputs of a cell of the student's: text."""
    before = worker.died
    text, error = worker.run(source)
    if worker.died:
        text += f"not run: {before}\n" if before else f"{error[1]}\n"
    return [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
