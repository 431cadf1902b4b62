"""What may lie in submitted/: folders STUDENT/ASSIGNMENT whose names nbgrader can serve. All else gets a sentence."""

import os
import re
import unicodedata
from pathlib import Path

from . import cohort
from .regular import kind

SERVED = re.compile(r"[\w .@+'()-]")
NAME_BYTES = 100
LEFT = ("Thumbs.db", "desktop.ini")  # by file managers, and what begins with a dot
ASIDE = "_misplaced"  # below received/; no student's name begins so


def root() -> Path:
    return cohort.data() / "submitted"


def unfit(name: str) -> str | None:
    """Why no student can have this name; None for a name that all of nbgrader can serve: as a folder, in its patterns,
    its pages and its CSV, and stripped of the white space around it."""
    if not name.isprintable():
        return "holds characters that cannot be shown"
    if len(name.encode()) > NAME_BYTES:
        return f"is longer than {NAME_BYTES} bytes"
    if unicodedata.normalize("NFC", name) != name:
        return "has accents that are characters of their own"
    if others := "".join(sorted({letter for letter in name if not SERVED.match(letter)})):
        return f"holds {others!r}, where only letters, digits, spaces and . _ - @ + ' ( ) may be"
    if not name or not name[0].isalnum() or name != name.strip():
        return "does not begin with a letter or digit, or ends with a space"
    return None


def printable(name: str) -> str:
    """A file's name as a terminal and a page may show it."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


def entries(folder) -> list:
    """The names in a folder; none where there is no folder that can be opened."""
    try:
        return sorted(os.listdir(folder)) if kind(folder) == "a folder" else []
    except OSError:
        return []


def unserved() -> list:
    """Names of folders that nbgrader finds and stumbles over."""
    known = cohort.assignments()
    visible = [name for name in entries(root()) if not name.startswith(".")]
    return [name for name in visible if unfit(name) and any(kind(root() / name / one) for one in known)]


def aside(name):
    """Keep such a folder under received/_misplaced/NNN/, with its name as it came."""
    kept = cohort.data() / "received" / ASIDE
    kept.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(taken) for taken in entries(kept) if taken.isdecimal()), default=0)
    (kept / f"{number:03}").mkdir()
    os.rename(root() / name, kept / f"{number:03}" / name)


# --- what is not where it should be -----------------------------------------------------------------------------------


def misplaced(assignment: str) -> list:
    """(student or None, sentence) for each thing in submitted/ that is not graded because of where it lies."""
    found = []
    for name in entries(root()):
        here = root() / name
        if kind(here / assignment) and unfit(name):
            found.append((None, stranger(name)))
        elif kind(here) == "a folder" and not unfit(name) and not os.path.isdir(here / assignment):
            found += [(name, sentence) for sentence in instead(here, assignment)[:1]]
        elif not os.path.isdir(here) and not name.startswith(".") and name not in LEFT:
            where = f"a submission is a folder, submitted/STUDENT/{assignment}"
            found.append((None, f"submitted/{printable(name)} is {kind(here)}; {where}"))
    return found + put_aside()


def instead(here, assignment):
    """Why a student has no folder of the assignment's."""
    if not os.access(here, os.R_OK | os.X_OK):
        return [f"the folder submitted/{here.name} may not be opened by the grader"]
    if kind(here / assignment):
        what = kind(here / assignment)
        return [f"submitted/{here.name}/{assignment} is {what}, where a folder with the notebook should be"]
    others = [plain(one) for one in cohort.assignments() if one != assignment]
    near = [name for name in entries(here) if plain(name).startswith(plain(assignment))]
    loose = [name for name in entries(here) if name.lower().endswith(".ipynb") and plain(name[:-6]) not in others]
    where = f"the notebook belongs into submitted/{here.name}/{assignment}"
    return [f"{where}; there is submitted/{here.name}/{printable(name)} instead" for name in near + loose]


def plain(name):
    """What is left of a name where people differ in how they write it."""
    return re.sub(r"[\W_]+", "", name).casefold()


def stranger(name):
    return f"the folder {printable(name)!r} in submitted/ is no student's: its name {unfit(name)}"


def put_aside():
    """Sentences on what `aside` has put away."""
    kept = cohort.data() / "received" / ASIDE
    away = [(number, name) for number in entries(kept) for name in entries(kept / number)]
    where = f"it is now in received/{ASIDE}/{{}}; rename it there and move it back"
    return [(None, f"{stranger(name)}; {where.format(number)}") for number, name in away]
