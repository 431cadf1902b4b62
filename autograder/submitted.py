"""What may lie in submitted/: folders STUDENT/ASSIGNMENT whose names nbgrader can serve. All else gets a sentence."""

import os
import re
import unicodedata
from pathlib import Path

from . import cohort
from .regular import kind

NAME = re.compile(r"[^\W_][\w .@+'()-]*")
NAME_BYTES = 100
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
        return "has its accents as characters of their own"
    if not NAME.fullmatch(name) or name != name.strip():
        return "may hold letters, digits and . _ - @ + ' ( ), spaces inside, and begins with a letter or digit"
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


def clear():
    """Put folders that nbgrader would find, and stumble over, out of its way."""
    known = cohort.assignments()
    for name in entries(root()):
        if not name.startswith(".") and unfit(name) and any(kind(root() / name / one) for one in known):
            aside(name)


def aside(name):
    """Keep a student's folder under received/_misplaced/NNN/, with its name as it came."""
    kept = cohort.data() / "received" / ASIDE
    kept.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(taken) for taken in entries(kept) if taken.isdecimal()), default=0)
    (kept / f"{number:03}").mkdir()
    os.rename(root() / name, kept / f"{number:03}" / name)
