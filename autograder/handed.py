"""What a student handed in, as it is graded: taken in, and rebuilt from the released notebook."""

import hashlib
import json
from dataclasses import dataclass

from . import cohort, received
from .rebuild import rebuild

UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


@dataclass
class Handed:
    notebook: dict  # the released one, with the student's answers
    verdict: str  # "graded", "missing" or "unreadable"
    notes: list  # how the files were taken, for the student
    late: float  # seconds

    def mark(self, key):
        """Equal when grading would record the same; `key`: of what examining the notebook depends on."""
        configuration = (cohort.ROOT / "nbgrader_config.py").read_text("utf-8")  # penalties are set there
        parts = [key, self.verdict, self.notes, self.late, configuration]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read(assignment, student, lateness) -> Handed:
    """`lateness`: called once the files are in their place, how many seconds after the due date they came."""
    taken = received.take(assignment, student)
    notebook, notes = rebuild(cohort.released(assignment), taken.cells)
    late = lateness()
    notes = [*taken.notes, *notes, *([f"handed in {duration(late)} late"] if late else [])]
    return Handed(notebook, taken.verdict, notes, late)


def duration(seconds):
    """In words, its two largest units."""
    parts, left = [], max(1, int(seconds))
    for name, size in UNITS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {name}{'s' if number > 1 else ''}")
    return ", ".join(parts[:2])
