"""A class graded: each student ends with one row and one reason. What nbgrader does for it, `gradebook.Course` does."""

import json
import os
from contextlib import closing

from . import box, cohort, lock, received, roster, several, store, submitted, tables
from .errors import BadInput
from .progress import Progress


def grade(course, assignment, student, jobs) -> int:
    require_known(assignment)
    require_jobs(jobs)
    if course.boxed:
        box.require()
    with lock.alone():
        received.repair()
        listed, stray = roster.read(), submitted.misplaced(assignment)
        names, absent = students(course, assignment, student, listed, stray)
        prepare(course, assignment, listed)
        rows = [course.miss(assignment, name, reason) for name, reason in absent.items()]
        rows += graded(course, assignment, names, jobs)
    print(tables.report(rows, [] if student else [reason for name, reason in stray if not name]))
    return int(any(row["verdict"] == "failed" for row in rows))


def grades(course, as_json) -> int:
    rows = {(found["assignment"], found["student"]): current(course, found) for found in cohort.verdicts()}
    for assignment in cohort.assignments():
        for name in handed_in(assignment):
            rows.setdefault((assignment, name), cohort.unmarked(assignment, name, "ungraded", "not graded yet"))
    ordered = [rows[key] for key in sorted(rows)]
    shown = tables.tables(ordered) or "Nothing has been handed in."
    print(json.dumps(ordered, indent=1, ensure_ascii=False) if as_json else shown)
    return 0


def current(course, verdict):
    """A verdict's row, with the marks as they now stand in the gradebook."""
    return cohort.row(verdict) | course.marks(verdict["assignment"], verdict["student"], verdict)


def graded(course, assignment, names, jobs):
    """The rows of those who handed something in. Whose submission and marks are as they were is not graded again."""
    rows = []
    with Progress(f"Grading {assignment}", len(names)) as progress:

        def finish(row):
            rows.append(cohort.row(row))
            progress.step(f"{row['student']}: {tables.points(row)}")

        with closing(tasks(course, assignment, names, finish)) as changed:
            if min(jobs, len(names)) < 2:
                for (name, _), _ in changed:
                    finish(course.convert(assignment, name))
            else:
                convert_together(course, assignment, changed, min(jobs, len(names)), finish)
    return rows


def tasks(course, assignment, names, finish):
    """What has to be examined, as `several` takes it: (student, key), arguments. All others are finished at once."""
    secret = cohort.secret()
    for name in names:
        try:
            found = course.read(assignment, name)
        except (BadInput, OSError) as problem:
            finish(course.fail(assignment, name, problem))
            continue
        arguments = found.notebook, name, secret, course.boxed
        key = store.key(*arguments)
        if row := unchanged(course, assignment, name, found.mark(key)):
            finish(row)
        else:
            yield (name, key), arguments


def convert_together(course, assignment, changed, jobs, finish):
    """Examined in as many processes as there are jobs; this one alone writes the gradebook."""
    cohort.point_to_book()
    with closing(several.results(store.examined, changed, jobs)) as results:
        for (name, key), future in results:
            store.ahead[key] = future
            finish(course.convert(assignment, name))
            store.ahead.clear()


def unchanged(course, assignment, name, mark):
    """The row of a submission that was graded as it is, and whose marks are still there."""
    try:
        found = cohort.verdict(assignment, name)
    except BadInput:
        return None
    recorded = found.get("mark") == mark and course.stands(assignment, name, found)
    return current(course, found) if recorded else None


# --- who takes part ---------------------------------------------------------------------------------------------------


def require_known(assignment):
    known = cohort.assignments()
    if assignment not in known:
        raise BadInput(f"There is no assignment {assignment!r}; there is {', '.join(known) or 'none in notebooks/'}.")


def require_jobs(jobs):
    if jobs < 1:
        raise BadInput(f"--jobs is {jobs}; it is the number of submissions judged at the same time, at least 1.")


def students(course, assignment, student, listed, stray):
    """Who handed something in; and why others, on the roster, in the gradebook or in a wrong place, did not."""
    handed = handed_in(assignment)
    known = course.known() | {row["id"] for row in listed}
    absent = dict.fromkeys(known, received.NOTHING) | {name: reason for name, reason in stray if name}
    place = cohort.shown(submitted.root() / (student or "STUDENT") / assignment)
    if student is None and not handed and not absent:
        why = stray[0][1] if stray else f"put each student's notebook into {place}"
        raise BadInput(f"Nobody has handed in {assignment}: {why}.")
    if student is not None and student not in handed and student not in absent:
        raise BadInput(f"There is no submission of {student!r}: the folder {place} does not exist.")
    asked = (lambda name: name == student) if student is not None else (lambda name: True)
    return list(filter(asked, handed)), {name: absent[name] for name in filter(asked, set(absent) - set(handed))}


def handed_in(assignment):
    """Who has a folder for the assignment. What else lies there is the business of `submitted.misplaced`."""
    root = submitted.root()
    names = sorted(os.listdir(root)) if root.is_dir() else []
    return [name for name in names if os.path.isdir(root / name / assignment) and not submitted.unfit(name)]


def prepare(course, assignment, listed):
    """What students were given is there; all that will be written can be; the gradebook knows assignment and roster."""
    cohort.released(assignment)
    cohort.swept()
    for folder in (course.autograded(".", "."), cohort.data() / "verdicts" / assignment):
        require_writable(folder)
    cohort.secret()
    course.prepare(assignment)
    course.enrol(listed)


def require_writable(folder):
    why = "no permission"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return
    except OSError as problem:
        why = problem.strerror
    raise BadInput(f"The folder {cohort.shown(folder)} cannot be written ({why}).")
