"""Read what a student handed in, whatever it is. Nothing here raises because of what a file holds.

Of a notebook only the cells' kinds, texts and ids are taken; outputs, tags and metadata stay behind.
"""

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path

FILE_BYTES = 20 << 20
CELLS = 2000
CELL_CHARACTERS = 200_000


@dataclass
class Submission:
    cells: list | None = None  # of {"kind", "source", "id"}; None: nothing could be read
    notes: list = field(default_factory=list)  # what the student should know about how the files were taken
    verdict: str = "graded"  # or "missing", "unreadable"


def read(folder: Path, name: str) -> Submission:
    """The submission of the notebook NAME.ipynb in `folder`."""
    try:
        path, notes = find(folder, f"{name}.ipynb")
        if path is None:
            return Submission(None, [f"{notes[0]}; the released one was graded"], "missing")
        text, more = decoded(path)
        return Submission(cells(json.loads(text)), notes + more)
    except (OSError, ValueError, RecursionError) as problem:
        reason = f"{name}.ipynb is not a notebook that can be read ({first_line(problem)})"
        return Submission(None, [f"{reason}; the released one was graded"], "unreadable")


def find(folder, name):
    """The notebook of that name, or the only one there is, and a note."""
    notebooks = sorted(path for path in folder.glob("[!.]*.ipynb") if is_file(path))
    exact = [path for path in notebooks if path.name == name]
    if exact:
        return exact[0], []
    if len(notebooks) == 1:
        return notebooks[0], [f"{printable(notebooks[0].name)} was taken as {name}"]
    if notebooks:
        return None, [f"there are {len(notebooks)} notebooks in the folder, none of them {name}"]
    return None, ["there is no notebook in the folder"]


def is_file(path):
    return stat.S_ISREG(path.lstat().st_mode)


def decoded(path):
    """The file's text, and a note where it is not UTF-8, as some editors on Windows write it."""
    if path.stat().st_size > FILE_BYTES:
        raise ValueError(f"larger than {FILE_BYTES >> 20} MB")
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace"), [f"{path.name} is not in UTF-8; it was read as Windows-1252"]


def cells(notebook):
    """The cells of a notebook of format 4, or of 3, which keeps them in worksheets."""
    if not isinstance(notebook, dict):
        raise ValueError("it holds no JSON object")
    found = notebook.get("cells")
    if found is None and isinstance(notebook.get("worksheets"), list):
        found = [
            cell for sheet in notebook["worksheets"] if isinstance(sheet, dict) for cell in listed(sheet.get("cells"))
        ]
    if not isinstance(found, list):
        raise ValueError("it holds no list of cells")
    return [taken for taken in map(cell, found[:CELLS]) if taken]


def cell(raw):
    """A cell's kind, text and id; None for what is neither code nor text."""
    if not isinstance(raw, dict) or raw.get("cell_type") not in ("code", "markdown"):
        return None
    source = raw.get("source", raw.get("input", ""))
    source = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return {"kind": raw["cell_type"], "source": clean(source[:CELL_CHARACTERS]), "id": identity(raw)}


def identity(raw):
    """nbgrader's name for a cell, else the notebook's own."""
    for place in (raw.get("metadata"), "nbgrader", "grade_id"), (raw, "id"):
        value = place[0]
        for key in place[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            return clean(value[:200])
    return None


def listed(value):
    return value if isinstance(value, list) else []


def clean(text):
    """JSON can spell halves of characters, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def printable(name):
    """A file's name as a terminal may show it."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def first_line(problem):
    return (str(problem).splitlines() or [type(problem).__name__])[0][:120]
