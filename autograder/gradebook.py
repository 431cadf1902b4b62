"""nbgrader, served: by its configuration it reads submissions, rebuilds and judges them as this module says.

`nbgrader autograde`, the formgrader's button and `python -m autograder grade` all go this way: their marks are equal.
nbgrader is imported here and nowhere else.
"""

import html
import json
import logging
import os
import shutil
import sys
import textwrap
import warnings
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from glob import glob
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps import NbGrader
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor, SaveCells
from sqlalchemy import text
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from traitlets import Bool
from traitlets.config import Config

from . import annotate, box, cohort, grading, handed, lock, marks, received, report, store
from .errors import BadInput
from .progress import Progress

KEPT = "autograder"  # where what is known of a submission stands in its notebook, between nbgrader's two passes
WAIT = 60.0  # seconds that nbgrader waits for another grader
BEGUN = "grading began and did not end; grade this submission again"

# nbgrader reads a submission's cells before it has added the submission to its session; SQLAlchemy says so each time.
warnings.filterwarnings("ignore", category=SAWarning, module="nbgrader")


# --- what nbgrader is configured to use -------------------------------------------------------------------------------


class Reader(NotebookExporter):
    """In nbgrader's first pass the notebook is the released one with the student's answers, whatever the file holds."""

    def __init__(self, **keywords):
        super().__init__(**keywords)
        if isinstance(self.parent, Autograde):  # about to convert; nbgrader has no hook that comes before its own steps
            self.parent.convert_notebooks = partial(in_turn, self.parent, self.parent.convert_notebooks)

    def from_filename(self, filename, resources=None, **keywords):
        about = resources["nbgrader"]
        try:
            if not self.parent._sanitizing:
                return super().from_filename(filename, resources, **keywords)
            resources["metadata"] = {"name": about["notebook"], "path": str(Path(filename).parent)}
            return self.from_notebook_node(rebuilt(self.parent.coursedir, about), resources, **keywords)
        except Exception as problem:
            failed(about, problem)
            raise


def in_turn(converter, convert):
    """Alone, in a sandbox, and from clean folders; else nothing is begun."""
    try:
        if not Judge(parent=converter).unboxed:
            box.require()
        with lock.alone(WAIT):
            create(converter.coursedir)
            introduce(converter.parent, converter.coursedir)
            chosen = converter._format_source(converter.coursedir.assignment_id, converter.coursedir.student_id)
            asked = [(Path(folder).name, Path(folder).parent.name) for folder in glob(chosen)]
            for assignment, student in asked:
                with suppress(BadInput, OSError):  # it costs this one, and `rebuilt` says it
                    received.take(assignment, student)
            converter.init_notebooks()  # again, since names have changed
            try:
                convert()
            finally:
                withdraw_unfinished(converter.coursedir, asked)
    except BadInput as problem:
        converter.log.error(problem)
        raise NbGraderException(str(problem)) from None


def create(coursedir):
    """A gradebook, whole or not at all: nbgrader takes a second or two over it."""
    place = gradebook_file(coursedir)
    if not place.exists():
        half = place.with_name(".half-gradebook.db")
        half.unlink(missing_ok=True)
        Gradebook(f"sqlite:///{half}", coursedir.course_id).close()
        half.replace(place)


def gradebook_file(coursedir):
    return Path(coursedir.db_url.removeprefix("sqlite:///"))


def introduce(parent, coursedir):
    """Make an assignment known that the gradebook has never seen. (Stock nbgrader wants generate_assignment first.)"""
    assignment = coursedir.assignment_id
    with Gradebook(coursedir.db_url, coursedir.course_id) as gradebook:
        try:
            gradebook.find_notebook(assignment, assignment)
        except MissingEntry:
            release(parent, coursedir, gradebook)


def release(parent, coursedir, gradebook):
    """The gradebook knows the assignment as students were given it."""
    assignment = coursedir.assignment_id
    notebook = nbformat.from_dict(cohort.released(assignment))
    gradebook.update_or_create_assignment(assignment)
    about = {"notebook": assignment, "assignment": assignment, "db_url": coursedir.db_url}
    try:
        SaveCells(parent=parent).preprocess(notebook, {"nbgrader": about})
    except RuntimeError as problem:
        raise BadInput(f"The cells of {assignment} have changed since it was graded: {problem}.") from None


def begin(assignment, student, notebooks):
    """nbgrader's hook before a conversion: no earlier verdict stands, and Record alone gives another."""
    folder = Path(notebooks[0]).parent
    cohort.record(folder.name, folder.parent.name, "failed", BEGUN)


def begun(assignment, student):
    """Whether grading began, and did not end."""
    with suppress(BadInput):
        return cohort.verdict(assignment, student)["reason"] == BEGUN


def withdraw_unfinished(coursedir, asked):
    unfinished = [one for one in asked if begun(*one)]
    if unfinished:
        with suppress(SQLAlchemyError), Gradebook(coursedir.db_url) as gradebook:
            for one in unfinished:
                withdraw(gradebook, *one)


def rebuilt(coursedir, about):
    """The notebook to be graded. Marks of an earlier run are withdrawn: should this one not end, they do not stay."""
    assignment, student = about["assignment"], about["student"]
    with Gradebook(about["db_url"]) as gradebook:
        found = handed.read(assignment, student, lambda: lateness(coursedir, gradebook, assignment, student))
        submission = gradebook.find_submission(assignment, student)
        submission.timestamp = time_of(coursedir, assignment, student)  # nbgrader keeps one of earlier if there is none
        withdraw(gradebook, assignment, student)
    notebook = nbformat.from_dict(found.notebook)
    notebook.metadata[KEPT] = {"verdict": found.verdict, "notes": found.notes, "late": found.late}
    return notebook


def lateness(coursedir, gradebook, assignment, student):
    """Seconds from the due date to the time of a submission."""
    made, due = time_of(coursedir, assignment, student), gradebook.find_assignment(assignment).duedate
    return max(0.0, (made - due).total_seconds()) if made and due else 0.0


def time_of(coursedir, assignment, student):
    """When a submission says that it was made, or None."""
    return coursedir.get_existing_timestamp(coursedir.format_path(coursedir.submitted_directory, student, assignment))


class Judge(NbGraderPreprocessor):
    """In place of nbgrader's Execute: the student's cells run in a sandbox, the checks are judged from outside."""

    unboxed = Bool(False, help="Run submissions without a sandbox, with all the rights of who grades.").tag(config=True)

    def preprocess(self, notebook, resources):
        cohort.point_to_book()
        found = handed.Handed(notebook, **notebook.metadata.pop(KEPT))
        arguments = notebook, resources["nbgrader"]["student"], cohort.secret(), not self.unboxed
        examined = store.examined(*arguments)
        resources[KEPT] = found, examined, found.mark(store.key(*arguments))
        return annotate.annotated(notebook, found.notes, examined), resources


class Record(NbGraderPreprocessor):
    """Last: what waits for a person is marked so in the gradebook; then the verdict, with the marks as they are now."""

    def preprocess(self, notebook, resources):
        about, (found, examined, mark) = resources["nbgrader"], resources[KEPT]
        checks = [check for check in examined["checks"] if check["pending_points"]]
        verdict, reason = cohort.conclusion(found.verdict, found.notes, examined)
        with Gradebook(about["db_url"]) as gradebook:
            submission = gradebook.find_submission(about["assignment"], about["student"])
            for check in checks:
                marks.withhold(submission, check)
            gradebook.db.commit()
            known = {"withheld": {check["cell"]: check["pending_points"] for check in checks}}
            known |= {"auto": marks.automatic(submission), "mark": mark if examined["lasting"] else None}
            known |= marks.totals(submission, known["withheld"])
        cohort.record(about["assignment"], about["student"], verdict, reason, **known)
        return notebook, resources


class Returned(Preprocessor):
    """A feedback page lies elsewhere than the notebook, and so the book elsewhere from it.

    Links in the problem set's text lead there. Its formulas are drawn by nbconvert's MathJax, or by the book's own
    where the network is cut.
    """

    enabled = Bool(True).tag(config=True)  # with nbgrader's base class, what the exporter sets would be warned of

    def preprocess(self, notebook, resources):
        cohort.point_to_book()
        there = report.book(report.beside())
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace(f"]({report.BUILT}/", f"]({there}/")
        script = f'<script src="{html.escape(there)}/_static/feedback.js"></script>'
        notebook.cells.append(new_markdown_cell(script))
        return notebook, resources


def failed(about, problem):
    """A failure of the grader: no marks, and why."""
    said = problem if isinstance(problem, BadInput) else f"{type(problem).__name__}: {problem}"
    cohort.record(about["assignment"], about["student"], "failed", f"the grader failed: {first_line(said)}")
    with suppress(SQLAlchemyError), Gradebook(about["db_url"]) as gradebook:
        withdraw(gradebook, about["assignment"], about["student"])


def first_line(said):
    return textwrap.shorten(str(said).strip().split("\n")[0], 300, placeholder=" …")


def withdraw(gradebook, assignment, student, score=None):
    """Take back the marks of an earlier run, if there was one."""
    with suppress(MissingEntry):
        marks.withdraw(gradebook.find_submission(assignment, student), score)
        gradebook.db.commit()


# --- what a class is graded with --------------------------------------------------------------------------------------


def grade(assignment: str, student: str | None = None, jobs: int = 1, unboxed: bool = False) -> int:
    """Grade an assignment of every student, or of one. Exit status 0 when every submission has its verdict."""
    with course(unboxed) as opened:
        return grading.grade(opened, assignment, student, jobs)


def grades(as_json: bool) -> int:
    """Every verdict there is, with the marks as they now stand in the gradebook; and what was never graded."""
    with course() as opened:
        return grading.grades(opened, as_json)


def feedback(assignment: str):
    """Write the feedback pages of an assignment, as `nbgrader generate_feedback` does."""
    with course() as opened, lock.alone():
        opened.feedback(assignment)


@contextmanager
def course(unboxed=False):
    """nbgrader's application with the course's configuration. What it logs is kept; the tables say it in a sentence."""
    here = os.getcwd()
    os.chdir(cohort.ROOT)  # nbgrader reads nbgrader_config.py there
    try:
        app = NbGrader()
        app.initialize([])
    finally:
        os.chdir(here)
    if unboxed:
        app.update_config(Config({"Judge": {"unboxed": True}}))
    app.log.handlers, app.log.propagate = [], False
    made = Course(app)
    try:
        yield made
    finally:
        made.close()


def finished(path):
    """Whether a graded notebook is what nbgrader's second pass writes: a kill may leave that of the first."""
    with suppress(OSError, ValueError):
        return KEPT not in json.loads(path.read_text("utf-8"))["metadata"]
    return False


class Course:
    """nbgrader's application and gradebook, as `grading` needs them."""

    def __init__(self, app):
        self.app, self.boxed = app, not Judge(parent=app).unboxed
        self.file = gradebook_file(app.coursedir)

    @cached_property
    def opened(self):
        """The gradebook, found writable before anything depends on it."""
        try:
            create(self.app.coursedir)
            gradebook = Gradebook(self.app.coursedir.db_url, self.app.coursedir.course_id)
            version = gradebook.db.execute(text("PRAGMA user_version")).scalar()
            gradebook.db.execute(text(f"PRAGMA user_version = {version}"))  # a write: a read-only file begins well
            gradebook.db.commit()
            return gradebook
        except (SQLAlchemyError, OSError) as problem:
            reason = getattr(problem, "orig", None) or problem
            raise BadInput(f"The gradebook {cohort.shown(self.file)} cannot be written ({reason}).") from None

    @property
    def gradebook(self):
        """As it is now: conversions write to it beside us."""
        self.opened.db.expire_all()
        return self.opened

    def close(self):
        if "opened" in vars(self):
            self.opened.close()

    def known(self):
        """The students in the gradebook; none where there is no gradebook yet."""
        return {student.id for student in self.gradebook.students} if self.file.exists() else set()

    def enrol(self, listed):
        """Make the gradebook know the students of a roster."""
        for row in listed:
            self.gradebook.update_or_create_student(row["id"], **{name: row[name] for name in row if name != "id"})

    def prepare(self, assignment):
        self.app.coursedir.assignment_id = assignment
        release(self.app, self.app.coursedir, self.gradebook)

    def read(self, assignment, student) -> handed.Handed:
        late = partial(lateness, self.app.coursedir, self.gradebook, assignment, student)
        return handed.read(assignment, student, late)

    def marks(self, assignment, student, verdict):
        """The marks of a submission as they now are; none where the gradebook has no such submission."""
        if not self.file.exists():
            return {}
        try:
            return marks.totals(self.gradebook.find_submission(assignment, student), verdict.get("withheld", {}))
        except MissingEntry:
            return {}

    def stands(self, assignment, student, verdict):
        """Whether what a verdict has recorded is still there."""
        with suppress(MissingEntry):
            same = marks.automatic(self.gradebook.find_submission(assignment, student)) == verdict["auto"]
            return same and finished(self.autograded(assignment, student) / f"{assignment}.ipynb")
        return False

    def autograded(self, assignment, student):
        coursedir = self.app.coursedir
        return Path(coursedir.format_path(coursedir.autograded_directory, student, assignment))

    def convert(self, assignment, student):
        """Grade one submission through nbgrader's own conversion. A failure of the grader costs this one only."""
        self.app.coursedir.assignment_id, self.app.coursedir.student_id = assignment, student
        converter = Autograde(coursedir=self.app.coursedir, parent=self.app)
        converter.force = True
        heard = Heard()
        self.app.log.addHandler(heard)
        cohort.record(assignment, student, "failed", BEGUN)
        try:
            converter.start()
        except (NbGraderException, OSError, UnicodeError) as problem:
            if begun(assignment, student):
                self.fail(assignment, student, heard.problem or problem)
        finally:
            self.app.log.removeHandler(heard)
        return cohort.verdict(assignment, student)

    def fail(self, assignment, student, problem):
        failed({"assignment": assignment, "student": student, "db_url": self.app.coursedir.db_url}, problem)
        return cohort.verdict(assignment, student)

    def miss(self, assignment, student, reason):
        """Nothing is there: no points, and nothing of an earlier run."""
        withdraw(self.gradebook, assignment, student, 0.0)
        shutil.rmtree(self.autograded(assignment, student), ignore_errors=True)
        return cohort.record(assignment, student, "missing", reason, **self.marks(assignment, student, {}))

    def feedback(self, assignment):
        self.app.coursedir.assignment_id, self.app.coursedir.student_id = assignment, "*"
        made = GenerateFeedback(coursedir=self.app.coursedir, parent=self.app)
        made.force = True
        with Progress("Writing feedback", len(list(self.autograded(".", ".").glob(f"*/{assignment}")))) as progress:
            made.post_convert_hook = lambda **about: progress.step()
            made.start()


class Heard(logging.Handler):
    """Keeps the first exception that nbgrader logs, and then swallows."""

    problem = None

    def emit(self, record):
        self.problem = self.problem or sys.exc_info()[1]
