"""Run a rebuilt notebook in the sandbox and judge its checks from outside.

The result depends on the notebook, the student's name, the course's secret and this repository; where a time limit or
the machine had a part in it, it says so.
"""

import ast
import hashlib
import hmac
import re
import time

from . import cohort, images, policy
from .box import shared
from .boxed import TOTAL_SECONDS, Boxed, Worker
from .describe import NOT_WRITTEN
from .judging import SECONDS, judge

STARTS = 8  # workers that one submission may use up
SHOWN = 8 << 20  # characters of all outputs of a submission: text, and pictures as a notebook holds them
ALT = {"image/png": {"alt": "a picture that this cell drew"}}


def examine(notebook: dict, student: str, secret: bytes, boxed: bool = True) -> dict:
    """{"outputs": {a cell's number: its outputs}, "checks": [one a check], "stopped": why a worker was lost, or None,
    "lasting": whether the same would come out again}."""
    run, outputs, checks = Run(boxed), {}, []
    found = policy.reaches(notebook["cells"])
    with run:
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            if asked := check(cell):
                outputs[number], judged_ = judged(run, *asked, student, secret, number, found)
                checks.append(judged_)
            else:
                outputs[number] = run.cell(number, cell["source"])
        return {"outputs": outputs, "checks": checks, "stopped": run.stopped, "lasting": run.lasting}


class Run:
    """The cells of one notebook, run in a worker. When it is lost, another runs them again, but for the one that was
    fatal, so that each exercise is judged on its own merits."""

    def __init__(self, boxed):
        self.box, self.until, self.starts = shared(boxed), time.monotonic() + TOTAL_SECONDS, 0
        self.sources, self.fatal, self.problems = {}, set(), {}  # by the numbers of cells
        self.worker, self.stopped, self.lasting, self.room = None, None, True, SHOWN

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.worker:
            self.worker.close()

    def cell(self, number, source):
        """The outputs of a cell of the student's: text and pictures."""
        worker = self.ready()
        self.sources[number] = source
        return self.fitting(displayed(*self.ran(worker, number)) if worker else displayed(f"not run: {self.stopped}\n"))

    def fitting(self, outputs):
        """Those for which there is room."""
        fitting = []
        for output in outputs:
            size = len(output.get("text") or output["data"]["image/png"])
            if size <= self.room:
                self.room -= size
                fitting.append(output)
        return fitting

    def ran(self, worker, number):
        """Run a cell; what it showed."""
        text, error, pictures = worker.run(self.sources[number])
        if worker.died:
            self.fatal.add(number)
            self.lost(worker)
            text += f"{worker.died}\n"
        if error:
            self.lasting &= error[0] not in ("OutOfTime", "Stopped")
            self.problems[number] = ended(*error)
        return text, pictures

    def why(self, name):
        """Why a function is missing: what stopped the last cell that would have defined it; or ""."""
        definition = re.compile(rf"^\s*(def|class) {name}\b", re.MULTILINE)
        stopped = [number for number in self.problems if definition.search(self.sources[number])]
        return f"its cell {self.problems[max(stopped)]}" if stopped else ""

    def lost(self, worker):
        self.stopped, self.lasting = self.stopped or worker.died, False

    def ready(self):
        """A worker in which all earlier cells have run; None when so many were lost, or so much time, that it ends."""
        while self.worker is None or self.worker.died:
            left = self.until - time.monotonic()
            if self.starts == STARTS or left <= 0:
                return None
            self.starts, self.worker = self.starts + 1, Worker(self.box, left)
            for number in list(self.sources):
                if number not in self.fatal and not self.worker.died:
                    self.ran(self.worker, number)
        return self.worker


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


def judged(run, exercise, function, student, secret, number, found):
    """The outputs of a check's cell, and what the verdict needs of it."""
    subject = Boxed(run.ready() or run.worker, function, run.why(function))
    began = time.monotonic()
    report = judge(exercise, subject, hidden=True, seed=seed(secret, student, exercise))
    run.lasting &= not subject.late and time.monotonic() - began < SECONDS
    if subject.worker.died:
        run.lost(subject.worker)
    report, doubt = policy.withheld(report, found)
    data = {"text/plain": repr(float(report.points)), "text/html": report.html()}
    shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
    told = {"function": function, "number": number, "points": report.points, "max_points": report.max_points}
    said = report.diagnosis or report.message.splitlines()[0]
    told |= {"pending_points": report.pending_points, "doubt": doubt}
    return [shown], {**told, "said": cohort.UNWRITTEN if NOT_WRITTEN in report.message else said}


def ended(kind, message):
    """How a cell ended that did not end well."""
    if kind == "Stopped":
        return f"was not finished: {message}"
    return f"stopped with {': '.join(filter(None, [kind, *message.splitlines()[:1]]))}"


def seed(secret, student, exercise):
    """No two students share inputs, and a re-grade draws the same ones."""
    return hmac.new(secret, f"{student}\0{exercise}".encode(), hashlib.sha256).hexdigest()


def displayed(text, pictures=()):
    """Outputs of a notebook's cell."""
    printed = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    drawn = [{"image/png": png} for png in map(images.shown, pictures) if png]
    return printed + [{"output_type": "display_data", "metadata": ALT, "data": data} for data in drawn]
