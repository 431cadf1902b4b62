"""The class's roster, class/roster.csv: the columns of `nbgrader db student import`, of which `id` must be there."""

import csv
import io

from . import cohort
from .errors import BadInput
from .submitted import unfit

COLUMNS = ("id", "first_name", "last_name", "email", "lms_user_id")


def read() -> list:
    """A dictionary a student, of the columns that the file has; an empty value is None. No file: nobody."""
    path = cohort.data() / "roster.csv"
    if not path.exists():
        return []
    try:
        return students(path.read_text("utf-8-sig"))
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not in UTF-8; save it as CSV in UTF-8.") from None
    except ValueError as problem:
        raise BadInput(f"{path}, {problem}") from None


def students(text):
    (_, header), *rows = [*lines(text)] or [(1, [])]
    names, found, seen = columns(header), [], {}
    for line, values in rows:
        student = row(names, values, line)
        if (first := seen.setdefault(student["id"], line)) != line:
            raise ValueError(f"line {line}: the id {student['id']} is that of line {first} too.")
        found.append(student)
    return found


def lines(text):
    """(number, values) of each line that holds something; a quoted value may go on over several."""
    rows, number = csv.reader(io.StringIO(text, newline=""), strict=True), 1
    try:
        for values in rows:
            if any(value.strip() for value in values):
                yield number, values
            number = rows.line_num + 1
    except csv.Error as problem:
        raise ValueError(f"line {number}: {problem}.") from None


def columns(header):
    names = [name.strip() for name in header]
    if len(names) == 1 and ";" in names[0]:
        raise ValueError("line 1: the columns are separated by semicolons; they must be separated by commas.")
    if names.count("id") != 1:
        raise ValueError(
            f"line 1: one column must be named id, as in {','.join(COLUMNS)}; here is {','.join(names)!r}."
        )
    return names


def row(names, values, line):
    if len(values) > len(names):
        raise ValueError(
            f"line {line}: {len(values)} values for {len(names)} columns; a comma in a value needs quotes."
        )
    values = [value.strip() for value in values] + [""] * (len(names) - len(values))
    student = {name: value or None for name, value in zip(names, values, strict=True) if name in COLUMNS}
    if reason := "is not there" if student["id"] is None else unfit(student["id"]):
        raise ValueError(f"line {line}: the id {student['id'] or ''!r} {reason}.")
    return student
