"""Tables of verdicts, as wide as the terminal."""

import shutil
import textwrap
from collections import Counter

from .words import count

NAMES = ("student", "points", "verdict")
UNMARKED = ("failed", "ungraded")  # verdicts with which there are no marks


def table(rows) -> str:
    """A row for each verdict: the points earned of those that can be given today, and why some are missing."""
    columns = [(row["student"], points(row), row["verdict"]) for row in rows]
    widths = [max(map(len, column)) for column in zip(NAMES, *columns, strict=True)]
    room = max(30, shutil.get_terminal_size().columns - sum(widths) - 6)
    lines = [line(NAMES, widths) + "reason"]
    for cells, row in zip(columns, rows, strict=True):
        first, *more = textwrap.wrap(row["reason"], room) or [""]
        lines += [line(cells, widths) + first, *(line(("", "", ""), widths) + rest for rest in more)]
    return "\n".join(text.rstrip() for text in lines)


def points(row):
    """What waits for a person or a GPU is neither earned nor missed."""
    if row["verdict"] in UNMARKED:
        return "-"
    pending = f", {row['pending_points']:g} pending" if row["pending_points"] else ""
    return f"{row['points']:g} of {row['max_points'] - row['pending_points']:g}{pending}"


def line(cells, widths):
    return "".join(f"{cell:{width}}  " for cell, width in zip(cells, widths, strict=True))


def tables(rows) -> str:
    """One table an assignment."""
    named = dict.fromkeys(row["assignment"] for row in rows)
    made = [f"{name}\n{table([row for row in rows if row['assignment'] == name])}" for name in named]
    return "\n\n".join(made)


def report(rows, sentences) -> str:
    """The table of a class, what is said beside it, and how many there are of each verdict."""
    rows = sorted(rows, key=lambda row: row["student"])
    return "\n".join([*([table(rows)] if rows else []), *sentences, counted(rows)])


def counted(rows) -> str:
    found = Counter(row["verdict"] for row in rows)
    said = ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())
    return f"{count(len(rows), 'student')}: {said}."
