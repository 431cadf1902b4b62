"""nbgrader, served: by its configuration it reads submissions, rebuilds and judges them as this module says.

`nbgrader autograde`, the formgrader's button and `python -m autograder grade` all go this way: their marks are equal.
nbgrader is imported here and nowhere else.
"""

import fcntl
import json
import logging
import multiprocessing
import os
import textwrap
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGrader
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor, SaveCells
from sqlalchemy import text
from sqlalchemy.exc import SAWarning, SQLAlchemyError

from . import cohort, intake
from .errors import BadInput
from .examine import examine
from .progress import Progress
from .rebuild import rebuild

KEPT = "autograder"  # where intake's findings stand in the metadata of a notebook that is being graded
ahead = {}  # what is being examined in other processes: (assignment, student) -> a future

# nbgrader reads a submission's cells before it has added the submission to its session; SQLAlchemy says so each time.
warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")


# --- what nbgrader is configured to use -------------------------------------------------------------------------------


def expect_released_notebooks(assignment, student, notebooks):
    """Before conversion: grade the notebooks that were released, under whatever names the student's came."""
    folder = Path(notebooks[0]).parent
    if folder.name in cohort.assignments():
        notebooks[:] = [str(folder / f"{folder.name}.ipynb")]


class TolerantExporter(NotebookExporter):
    """Reads submissions as `intake` does. What it wrote itself, in nbgrader's second pass, it reads as nbconvert."""

    def from_filename(self, filename, resources=None, **keywords):
        if not self.parent._sanitizing:
            return super().from_filename(filename, resources, **keywords)
        path = Path(filename)
        submission = intake.read(path.parent, path.stem)
        notebook = nbformat.v4.new_notebook()
        notebook.metadata[KEPT] = {"cells": submission.cells, "notes": submission.notes, "verdict": submission.verdict}
        resources = {**(resources or {}), "metadata": {"name": path.stem, "path": str(path.parent)}}
        return self.from_notebook_node(notebook, resources, **keywords)


class Rebuild(NbGraderPreprocessor):
    """First of the sanitizing preprocessors: from here on it is the released notebook with the student's answers."""

    def preprocess(self, notebook, resources):
        found = notebook.metadata[KEPT]
        made, notes = rebuild(cohort.released(resources["nbgrader"]["assignment"]), found["cells"])
        made["metadata"][KEPT] = {"notes": [*found["notes"], *notes], "verdict": found["verdict"]}
        return nbformat.from_dict(made), resources


class Judge(NbGraderPreprocessor):
    """In place of nbgrader's Execute: the student's cells run in a worker, the checks are judged from outside."""

    def preprocess(self, notebook, resources):
        cohort.point_to_book()
        about = resources["nbgrader"]
        future = ahead.get((about["assignment"], about["student"]))
        examined = future.result() if future else examine(notebook, about["student"], cohort.secret())
        for check in examined["checks"]:
            require_points(check, notebook)
        for number, outputs in examined["outputs"].items():
            notebook.cells[number].outputs = [nbformat.from_dict(output) for output in outputs]
        resources[KEPT] = found = {**notebook.metadata.pop(KEPT), "examined": examined}
        notebook.cells = [*remark(found), *notebook.cells]
        return notebook, resources


def remark(found):
    """A cell at the top of the feedback: how the submission was taken. A comment, since file names may hold HTML."""
    notes = [*found["notes"], *filter(None, [found["examined"]["stopped"]])]
    lines = [f"# {line}" for note in notes for line in textwrap.wrap(note, 100)]
    return [nbformat.v4.new_code_cell("\n".join(["# About this submission", *lines]), id="remark")] if lines else []


def require_points(check, notebook):
    """nbgrader takes more points than the notebook promises for an error, fewer for a mark."""
    promised = notebook.cells[check["number"]].metadata.nbgrader.points
    if promised != check["max_points"]:
        raise BadInput(
            f"{check['function']} is worth {check['max_points']:g} points, but {promised:g} in the notebook: run"
            " `python -m autograder notebooks`, then `nbgrader generate_assignment` for this assignment."
        )


class Record(NbGraderPreprocessor):
    """Last: write the verdict, with the marks that nbgrader has saved."""

    def preprocess(self, notebook, resources):
        about, found = resources["nbgrader"], resources[KEPT]
        verdict, reason = cohort.conclusion(found["verdict"], found["notes"], found["examined"])
        with Gradebook(about["db_url"]) as gradebook:
            marks = marked(gradebook, about["assignment"], about["student"])
        cohort.record(about["assignment"], about["student"], verdict, reason, **marks)
        return notebook, resources


def marked(gradebook, assignment, student):
    """The marks of a submission as nbgrader exports them, and the points that still wait for a person or a GPU."""
    submission = gradebook.find_submission(assignment, student)
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    waiting = [grade for grade in grades if grade.auto_score is None and grade.manual_score is None]
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)
    points = max(0.0, submission.score - penalty)
    pending = sum(grade.max_score for grade in waiting)
    return {"points": points, "max_points": submission.max_score, "pending_points": pending}


# --- the whole class --------------------------------------------------------------------------------------------------


def grade(assignment: str, student: str | None = None, jobs: int = 1) -> int:
    """Grade an assignment of every student, or of one. Exit status 0 when every submission has its verdict."""
    with course() as app:
        require_known(assignment)
        submitted, missing = students(app, assignment, student)
        with alone():
            prepare(app, assignment)
            rows = [absent(app, assignment, name) for name in missing]
            rows += graded(app, assignment, submitted, jobs)
    print(cohort.table(sorted(rows, key=lambda row: row["student"])))
    verdicts = {row["verdict"] for row in rows}
    return int("failed" in verdicts or not verdicts & {"graded", "stopped"})


def grades(as_json: bool) -> int:
    """Every verdict there is, with the marks as they now stand in the gradebook; and what was never graded."""
    with course() as app:
        rows = {(row["assignment"], row["student"]): row for row in cohort.verdicts()}
        for assignment in cohort.assignments():
            for name in handed_in(app, assignment):
                rows.setdefault((assignment, name), ungraded(assignment, name))
        with opened(app) if gradebook_file(app).exists() else nullcontext() as gradebook:
            for (assignment, name), row in rows.items():
                with suppress(MissingEntry):
                    row |= marked(gradebook, assignment, name) if gradebook else {}
    ordered = [rows[key] for key in sorted(rows)]
    print(json.dumps(ordered, indent=1, ensure_ascii=False) if as_json else sheets(ordered))
    return 0


def ungraded(assignment, name):
    row = {"student": name, "assignment": assignment, "points": 0.0, **worth(assignment), "pending_points": 0.0}
    return row | {"verdict": "ungraded", "reason": "not graded yet"}


def graded(app, assignment, names, jobs):
    rows = []
    with examining(app, assignment, names, jobs), Progress(f"Grading {assignment}", len(names)) as progress:
        for name in names:
            rows.append(grade_one(app, assignment, name))
            progress.step(f"{name}: {rows[-1]['points']:g} of {rows[-1]['max_points']:g}")
    return rows


def absent(app, assignment, name):
    """Known to the gradebook, and nothing there: marks of an earlier run do not stay."""
    withdraw(app, assignment, name)
    return cohort.record(assignment, name, "missing", "nothing was handed in", **worth(assignment))


def sheets(rows):
    """One table an assignment."""
    named = dict.fromkeys(row["assignment"] for row in rows)
    tables = [f"{name}\n{cohort.table([row for row in rows if row['assignment'] == name])}" for name in named]
    return "\n\n".join(tables) or "Nothing has been handed in."


def feedback(assignment: str):
    """Write the feedback pages of an assignment, as `nbgrader generate_feedback` does."""
    with course() as app:
        names = handed_in(app, assignment)
        with Progress("Writing feedback", len(names)) as progress:
            for name in names:
                app.coursedir.assignment_id, app.coursedir.student_id = assignment, name
                made = GenerateFeedback(coursedir=app.coursedir, parent=app)
                made.force = True
                made.start()
                progress.step(name)


@contextmanager
def course():
    """nbgrader's application with the course's configuration. What it logs is kept; the tables say it in a sentence."""
    here = os.getcwd()
    os.chdir(cohort.ROOT)  # nbgrader reads nbgrader_config.py there
    try:
        app = NbGrader()
        app.initialize([])
        app.log.handlers, app.log.propagate = [], False
        yield app
    finally:
        os.chdir(here)


@contextmanager
def alone():
    """One grader at a time: two would take each other's files away."""
    with open(cohort.data() / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"Another grader is at work in {cohort.data()}; wait until it has finished.") from None
        yield


def require_known(assignment):
    known = cohort.assignments()
    if assignment not in known:
        raise BadInput(f"There is no assignment {assignment!r}; there is {', '.join(known) or 'none in notebooks/'}.")


def students(app, assignment, student):
    """Who handed something in, and who is known to the gradebook and did not."""
    submitted = handed_in(app, assignment)
    if student is not None and student not in submitted:
        place = Path(app.coursedir.submitted_directory) / student / assignment
        raise BadInput(f"There is no submission of {student!r}: the folder {place} does not exist.")
    if student is not None:
        return [student], []
    missing = sorted(known(app) - set(submitted))
    if not submitted and not missing:
        place = Path(app.coursedir.submitted_directory) / "STUDENT" / assignment
        raise BadInput(f"Nobody has handed in {assignment}: put each student's notebook into {place}.")
    return submitted, missing


def known(app):
    """The students in the gradebook; none where there is no gradebook yet."""
    if not gradebook_file(app).exists():
        return set()
    with opened(app) as gradebook:
        return {student.id for student in gradebook.students}


def gradebook_file(app):
    return Path(app.coursedir.db_url.removeprefix("sqlite:///"))


def handed_in(app, assignment):
    found = Path(app.coursedir.submitted_directory).glob(f"*/{assignment}")
    return sorted(path.parent.name for path in found if path.is_dir())


def prepare(app, assignment):
    """Everything that will be written can be; the gradebook knows the assignment as it is released."""
    for name in (app.coursedir.autograded_directory, cohort.data() / "verdicts" / assignment):
        try:
            Path(name).mkdir(parents=True, exist_ok=True)
            cohort.whole(Path(name) / ".writable", b"")
            (Path(name) / ".writable").unlink()
        except OSError as problem:
            raise BadInput(f"The folder {name} cannot be written ({problem.strerror}).") from None
    cohort.secret()
    with opened(app) as gradebook:
        gradebook.update_or_create_assignment(assignment)
    about = {"notebook": assignment, "assignment": assignment, "db_url": app.coursedir.db_url}
    try:
        SaveCells(parent=app).preprocess(nbformat.from_dict(cohort.released(assignment)), {"nbgrader": about})
    except RuntimeError as problem:
        raise BadInput(f"The cells of {assignment} have changed since submissions were graded: {problem}.") from None


@contextmanager
def opened(app):
    """The gradebook, found writable before anything depends on it."""
    try:
        gradebook = Gradebook(app.coursedir.db_url, app.coursedir.course_id)
        version = gradebook.db.execute(text("PRAGMA user_version")).scalar()
        gradebook.db.execute(text(f"PRAGMA user_version = {version}"))  # a write: a read-only file begins well
        gradebook.db.commit()
    except (SQLAlchemyError, OSError) as problem:
        reason = getattr(problem, "orig", None) or problem
        raise BadInput(f"The gradebook {gradebook_file(app)} cannot be written ({reason}).") from None
    with gradebook:
        yield gradebook


@contextmanager
def examining(app, assignment, names, jobs):
    """With several jobs, submissions are examined in as many processes; this one alone writes the gradebook."""
    if jobs < 1:
        raise BadInput(f"--jobs is {jobs}; it is the number of submissions judged at the same time, at least 1.")
    if jobs == 1 or len(names) < 2:
        yield
        return
    cohort.point_to_book()
    with ProcessPoolExecutor(min(jobs, len(names)), multiprocessing.get_context("spawn")) as pool:
        for name in names:
            folder = Path(app.coursedir.submitted_directory) / name / assignment
            notebook, _ = rebuild(cohort.released(assignment), intake.read(folder, assignment).cells)
            ahead[assignment, name] = pool.submit(examine, notebook, name, cohort.secret())
        try:
            yield
        finally:
            ahead.clear()
            pool.shutdown(cancel_futures=True)


class OneFolder(Autograde):
    """Grades one submission's folder, whatever is in it. (nbgrader itself passes over a folder without a notebook.)"""

    def init_notebooks(self):
        folder = self._format_source(self.coursedir.assignment_id, self.coursedir.student_id)
        self.assignments = {folder: [str(Path(folder) / f"{self.coursedir.assignment_id}.ipynb")]}


def grade_one(app, assignment, name):
    """Through nbgrader's own conversion. A failure of the grader costs this submission only; old marks do not stay."""
    app.coursedir.assignment_id, app.coursedir.student_id = assignment, name
    converter = OneFolder(coursedir=app.coursedir, parent=app)
    converter.force = True
    heard = Heard()
    app.log.addHandler(heard)
    try:
        converter.start()
    except (NbGraderException, OSError, UnicodeError):
        withdraw(app, assignment, name)
        return cohort.record(assignment, name, "failed", f"the grader failed: {heard.last}", **worth(assignment))
    finally:
        app.log.removeHandler(heard)
    return cohort.verdict(assignment, name)


class Heard(logging.Handler):
    """Keeps the last line of the first error that nbgrader logs with a traceback."""

    last = "no reason was given"

    def emit(self, record):
        message = record.getMessage().strip()
        if "Traceback" in message:
            self.last = message.splitlines()[-1]


def withdraw(app, assignment, name):
    """Take back the marks of an earlier run."""
    with opened(app) as gradebook:
        try:
            submission = gradebook.find_submission(assignment, name)
        except MissingEntry:
            return
        for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
            grade.auto_score, grade.needs_manual_grade = None, True
        gradebook.db.commit()


def worth(assignment):
    cells = (cell["metadata"].get("nbgrader", {}) for cell in cohort.released(assignment)["cells"])
    return {"max_points": float(sum(cell.get("points", 0) for cell in cells if cell.get("grade")))}
