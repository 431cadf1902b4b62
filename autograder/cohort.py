"""Where a cohort's data lies, its secret, and its verdicts: a file for each submission, how it ended and why."""

import contextlib
import json
import os
import shutil
import tempfile
import textwrap
from pathlib import Path

from .errors import BadInput

ROOT = Path(__file__).resolve().parent.parent
RELEASED = ROOT / "notebooks"
REASON = 500  # characters
UNWRITTEN = "not written yet"


def data() -> Path:
    """class/, or the folder that $COURSE_DATA names; nbgrader_config.py says the same."""
    return Path(os.environ.get("COURSE_DATA") or ROOT / "class").resolve()


def assignments() -> list:
    return sorted(path.parent.name for path in RELEASED.glob("*/*.ipynb") if path.stem == path.parent.name)


def released(assignment: str) -> dict:
    """The notebook that students were given."""
    path = RELEASED / assignment / f"{assignment}.ipynb"
    try:
        notebook = json.loads(path.read_text("utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{path} is no notebook; write it again: python -m autograder notebooks") from None
    return notebook


def point_to_book():
    """Links from a feedback page lead to the book built beside it, unless $COURSE_BOOK says where the book is."""
    page = data() / "feedback" / "student" / "assignment"
    os.environ.setdefault("COURSE_BOOK", os.path.relpath(ROOT / "_build" / "html", page))


def secret() -> bytes:
    """32 random bytes, made once. Hidden inputs are drawn from it: without it a re-grade draws others."""
    path = data() / "secret"
    if not path.exists():
        with contextlib.suppress(FileExistsError):  # another process was faster
            whole(path, os.urandom(32), os.link)
    content = path.read_bytes() if path.is_file() else b""
    if len(content) != 32:
        raise BadInput(f"{path} should hold 32 random bytes and holds {len(content)}; restore it from your backup.")
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


def record(assignment, student, verdict, reason, points=0.0, max_points=0.0, pending_points=0.0):
    """Write the verdict of one submission."""
    path = data() / "verdicts" / assignment / f"{student}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"student": student, "assignment": assignment, "points": points, "max_points": max_points}
    row |= {"pending_points": pending_points, "verdict": verdict, "reason": reason[:REASON]}
    whole(path, (json.dumps(row, indent=1, ensure_ascii=False) + "\n").encode())
    return row


def verdict(assignment, student):
    path = data() / "verdicts" / assignment / f"{student}.json"
    try:
        row = json.loads(path.read_text("utf-8"))
        row["student"], row["points"], row["max_points"], row["verdict"], row["reason"]
        return row
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{path} is no verdict; remove it, and grade the student again.") from None


def verdicts() -> list:
    return [verdict(path.parent.name, path.stem) for path in sorted((data() / "verdicts").glob("*/*.json"))]


def conclusion(verdict, notes, examined):
    """The verdict and its reason: what happened to the notebook, then what each check says that lacks points."""
    if examined["stopped"] and verdict == "graded":
        verdict, notes = "stopped", [*notes, examined["stopped"]]
    said = {}
    for check in examined["checks"]:
        if check["points"] < check["max_points"]:
            said.setdefault(shortened(check["said"]), []).append(check["function"])
    if notes and list(said) == [UNWRITTEN]:
        said = {}
    missed = [f"{', '.join(functions)}: {words}" for words, functions in said.items()]
    return verdict, "; ".join([*notes, *missed]) or "all right"


def shortened(text):
    return textwrap.shorten(text, 90, placeholder=" …")


def table(rows) -> str:
    """Student, points, verdict and reason, a row a submission, as wide as the terminal."""
    columns = [(r["student"], f"{r['points']:g} of {r['max_points']:g}", r["verdict"]) for r in rows]
    names = ("student", "points", "verdict")
    widths = [max(map(len, column)) for column in zip(names, *columns, strict=True)]
    room = max(30, shutil.get_terminal_size().columns - sum(widths) - 6)
    lines = [line(names, widths) + "reason"]
    for cells, row in zip(columns, rows, strict=True):
        pending = f"{row['pending_points']:g} pending; " if row["pending_points"] else ""
        first, *more = textwrap.wrap(pending + row["reason"], room) or [""]
        lines += [line(cells, widths) + first, *(line(("", "", ""), widths) + rest for rest in more)]
    return "\n".join(text.rstrip() for text in lines)


def line(cells, widths):
    return "".join(f"{cell:{width}}  " for cell, width in zip(cells, widths, strict=True))
