"""Where a cohort's data lies, its secret, and its verdicts: a file for each submission, how it ended and why."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from .checksum import edited
from .errors import BadInput

ROOT = Path(__file__).resolve().parent.parent
RELEASED = ROOT / "notebooks"
REASON = 500  # characters, about
UNWRITTEN = "not written yet"
ROW = ("student", "assignment", "points", "max_points", "pending_points", "verdict", "reason")


def data() -> Path:
    """class/, or the folder that $COURSE_DATA names; nbgrader_config.py says the same."""
    return Path(os.environ.get("COURSE_DATA") or ROOT / "class").resolve()


def shown(path) -> str:
    """A path as a person here would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def assignments() -> list:
    return sorted(path.parent.name for path in RELEASED.glob("*/*.ipynb") if path.stem == path.parent.name)


def released(assignment: str) -> dict:
    """The notebook that students were given. BadInput when somebody has worked in it: their answers would count."""
    notebook = as_it_lies(assignment)
    for cell in filter(edited, notebook["cells"]):
        raise BadInput(
            f"{shown(released_file(assignment))} is not what students were given: its cell "
            f"{cell['metadata']['nbgrader']['grade_id']} was changed. `python -m autograder notebooks` keeps that copy "
            "under another name and writes a fresh one."
        )
    return notebook


def released_file(assignment):
    return RELEASED / assignment / f"{assignment}.ipynb"


def as_it_lies(assignment):
    path = released_file(assignment)
    try:
        notebook = json.loads(path.read_text("utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{shown(path)} is no notebook; write it again: python -m autograder notebooks") from None
    return notebook


def worth(assignment) -> float:
    """The points that there are in the notebook that students were given."""
    cells = (cell["metadata"].get("nbgrader", {}) for cell in as_it_lies(assignment)["cells"])
    return float(sum(cell.get("points", 0) for cell in cells if cell.get("grade")))


def point_to_book():
    """Links from a feedback page lead to the book built beside it, unless $COURSE_BOOK says where the book is."""
    page = data() / "feedback" / "student" / "assignment"
    os.environ["COURSE_BOOK_BESIDE"] = os.path.relpath(ROOT / "_build" / "html", page)


def secret() -> bytes:
    """32 random bytes, made once. Hidden inputs are drawn from it: without it a re-grade draws others."""
    path = data() / "secret"
    if not path.exists():
        with contextlib.suppress(FileExistsError):  # another process was faster
            whole(path, os.urandom(32), os.link)
    content = path.read_bytes() if path.is_file() else b""
    if len(content) != 32:
        raise BadInput(
            f"{shown(path)} should hold 32 random bytes and holds {len(content)}; restore it from your backup."
        )
    return content


def whole(path, content, put=os.replace):
    """Write a file whole or not at all, readable by its owner alone."""
    handle, half = tempfile.mkstemp(dir=path.parent, prefix=".half-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        put(half, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(half)


def swept():
    """Remove what writers left that were killed. The caller is the only one to write."""
    for places in (".half-*", "verdicts/*/.half-*", "results/*/.half-*"):
        for path in data().glob(places):
            path.unlink(missing_ok=True)


def record(assignment, student, verdict, reason, **more):
    """Write the verdict of one submission: the marks, and beside the row of tables what `unchanged` asks for."""
    row = {**unmarked(assignment, student, verdict, reason), **more}
    path = place(assignment, student)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole(path, (json.dumps(row, indent=1, ensure_ascii=False) + "\n").encode())
    return row


def unmarked(assignment, student, verdict, reason):
    """A row without points."""
    points = {"points": 0.0, "max_points": worth(assignment), "pending_points": 0.0}
    return {"student": student, "assignment": assignment, **points, "verdict": verdict, "reason": reason}


def place(assignment, student):
    return data() / "verdicts" / assignment / f"{student}.json"


def verdict(assignment, student):
    path = place(assignment, student)
    try:
        found = json.loads(path.read_text("utf-8"))
        return {**found, **{name: found[name] for name in ROW}}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{shown(path)} is no verdict; remove it, and grade the student again.") from None


def verdicts() -> list:
    return [verdict(path.parent.name, path.stem) for path in sorted((data() / "verdicts").glob("*/*.json"))]


def row(found) -> dict:
    """Of a verdict, what is shown."""
    return {name: found[name] for name in ROW}


def conclusion(verdict, notes, examined):
    """The verdict and its reason: what happened to the notebook, then what each check says that lacks points."""
    said, stopped = {}, examined["stopped"]
    for check in examined["checks"]:
        for words in lacking(check):
            said.setdefault(words.removesuffix("."), []).append(check["function"])
    if notes and list(said) == [UNWRITTEN]:
        said = {}
    if stopped and verdict == "graded":
        verdict = "stopped"
        notes = notes if any(stopped in words for words in said) else [*notes, stopped]
    parts = [*dict.fromkeys(notes), *(f"{', '.join(functions)}: {words}" for words, functions in said.items())]
    return verdict, shortened(parts) or "all right"


def lacking(check):
    """Why points are missing, and why some wait."""
    pending = check["pending_points"]
    if check["points"] + pending < check["max_points"]:
        yield check["said"]
    if pending:
        yield f"{pending:g} pending, {check['doubt']}" if check["doubt"] else f"{pending:g} pending"


def shortened(parts):
    """The first of them, whole; how many are left out."""
    kept = []
    for number, part in enumerate(parts):
        if kept and len("; ".join([*kept, part])) > REASON:
            return "; ".join([*kept, f"and {len(parts) - number} more"])
        kept.append(part)
    return "; ".join(kept)
