"""Read what a student handed in, whatever it is. Nothing here raises because of what a file holds.

Of a notebook only the cells' kinds, texts and names are taken; outputs, tags and metadata stay behind.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import find
from .regular import Refused, content
from .submitted import printable

FILE_BYTES = 20 << 20
CELLS = 2000
CELL_CHARACTERS = 100_000
CHARACTERS = 300_000  # of all cells: a page that shows them is made in seconds
KINDS = {"code": "code", "markdown": "markdown", "raw": "raw", "heading": "markdown", "html": "raw"}  # the last: old
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OTHERS = {
    b"PK\x03\x04": "is a zip archive",
    b"\x1f\x8b": "is a gzip archive",
    b"%PDF": "is a PDF file",
    b"<": "is a web page",
}


@dataclass
class Taken:
    """A submission as it was read."""

    cells: list | None = None  # of {"kind", "source", "names"}; None: nothing could be read
    notes: list = field(default_factory=list)  # what the student should know about how the files were taken
    verdict: str = "graded"  # or "missing", "unreadable"


def read(folder: Path, name: str, ours=lambda path: False) -> Taken:
    """The submission of the notebook NAME.ipynb in `folder`; `ours` tells a file that the grader itself wrote."""
    try:
        path, notes = find.notebook(folder, f"{name}.ipynb", ours)
    except find.Missing as problem:
        return Taken(None, [f"{problem}; the released one was graded"], "missing")
    try:
        found, more = parsed(content(path, FILE_BYTES))
        taken, still_more = shortened(cells(found))
        return Taken(taken, notes + [f"{printable(path.name)} {note}" for note in more + still_more])
    except Refused as problem:
        reason = f"{printable(path.name)} is not a notebook that can be read: it {problem}"
        return Taken(None, [*notes, f"{reason}; the released one was graded"], "unreadable")


# --- from bytes to a notebook -----------------------------------------------------------------------------------------


def parsed(raw):
    """The JSON of a file, and how its text had to be read."""
    text, notes = decoded(raw)
    try:
        return json.loads(text, strict=False), notes  # not strict: line ends and tabs may stand in a text as they are
    except json.JSONDecodeError as problem:
        raise Refused(damage(raw, text, problem)) from None
    except RecursionError:
        raise Refused("holds lists in lists without end") from None
    except ValueError:
        raise Refused("holds a number that is too long") from None


def decoded(raw):
    """The text, and a note where it is not in UTF-8, as some editors on Windows write it."""
    encoding = json.detect_encoding(raw)
    if not encoding.startswith("utf-8"):
        return raw.decode(encoding, "replace"), [f"is in {encoding[:6].upper()}, not in UTF-8; it was read as that"]
    text = raw.decode("utf-8-sig", "replace")
    lost = text.count("\ufffd")
    if lost == raw.count("\ufffd".encode()):
        return text, []
    if lost < sum(letter > "\x7f" for letter in text) / 2:
        return text, ["is damaged in places: characters that cannot be read were replaced"]
    return raw.decode("cp1252", "replace"), ["is not in UTF-8; it was read as Windows-1252"]


def damage(raw, text, problem):
    """Why the text is no notebook, for somebody who has never heard of JSON."""
    if not text.strip():
        return "is empty"
    if not text.strip("\0"):
        return "holds nothing but zeros"
    for start, what in OTHERS.items():
        if raw.lstrip().startswith(start):
            return what
    if "<<<<<<< " in text:
        return "holds the marks of a merge that was never finished (<<<<<<<)"
    line = problem.lineno
    if problem.pos >= len(text.rstrip()) or problem.msg.startswith("Unterminated"):
        return f"breaks off in line {line}, as if it had not been saved or copied to its end"
    return f"is damaged in line {line}"


# --- from a notebook to cells -----------------------------------------------------------------------------------------


def cells(notebook):
    """The cells of a notebook of format 4, or of 2 or 3, which keep them in worksheets."""
    if not isinstance(notebook, dict):
        raise Refused("holds no cells")
    found = notebook.get("cells")
    if found is None and isinstance(notebook.get("worksheets"), list):
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        found = [cell for sheet in sheets for cell in listed(sheet.get("cells"))]
    if not isinstance(found, list):
        raise Refused("holds no cells")
    return [taken for taken in map(cell, found) if taken]


def cell(raw):
    """A cell's kind, text and names; None for what is no cell."""
    kind = KINDS.get(str(raw.get("cell_type"))) if isinstance(raw, dict) else None
    if kind is None:
        return None
    source = raw.get("source", raw.get("input", ""))
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return {"kind": kind, "source": clean(source), "names": names(raw)}


def names(raw):
    """nbgrader's name for a cell, and the notebook's own, which some editors keep with the metadata."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    grader = metadata.get("nbgrader")
    grader = grader if isinstance(grader, dict) else {}
    found = (grader.get("grade_id"), raw.get("id"), metadata.get("id"))
    return [clean(name) if isinstance(name, str) and len(name) <= 200 else None for name in found]


def shortened(found):
    """No more than a notebook of this course can need, and a note where that is less than there is."""
    kept, left = [], CHARACTERS
    for one in found[:CELLS]:
        kept.append({**one, "source": one["source"][: min(CELL_CHARACTERS, left)]})
        left -= len(kept[-1]["source"])
    whole = len(kept) == len(found) and all(a["source"] == b["source"] for a, b in zip(kept, found, strict=True))
    return kept, [] if whole else ["is longer than a notebook of this course can be; what was over was cut off"]


def listed(value):
    return value if isinstance(value, list) else []


def clean(text):
    """JSON can spell halves of characters, which no file can hold, and zeros, which end a program's text."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


# --- and back ---------------------------------------------------------------------------------------------------------


def notebook(cells: list) -> bytes:
    """A notebook file of format 4 that holds these cells and nothing else. `read` finds the same in it again."""
    ids = identities(cells)
    made = [written(one, id) for one, id in zip(cells, ids, strict=True)]
    whole = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, indent=1, ensure_ascii=False) + "\n").encode()


def written(cell, id):
    grade_id = cell["names"][0]
    metadata = {"nbgrader": {"grade_id": grade_id}} if grade_id is not None else {}
    code = {"execution_count": None, "outputs": []} if cell["kind"] == "code" else {}
    return {"cell_type": cell["kind"], "id": id, "metadata": metadata, "source": cell["source"], **code}


def identities(cells):
    """Each cell's own id where it has one that no cell before it has, else a new one."""
    wanted = [next((name for name in cell["names"][1:] if name and ID.fullmatch(name)), None) for cell in cells]
    taken, ids, number = set(), [], 0
    for id in wanted:
        while id is None or id in taken:
            number += 1
            id = f"cell-{number}" if f"cell-{number}" not in wanted else None
        taken.add(id)
        ids.append(id)
    return ids
