"""nbgrader's checksum of a released cell, by which its Validate and this course know that somebody changed it."""

import hashlib


def checksum(cell):
    grader = cell["metadata"]["nbgrader"]
    flags = (grader["grade"], grader["solution"], grader["locked"])
    points = [float(grader["points"])] if grader["grade"] else []
    parts = (cell["source"], cell["cell_type"], *flags, grader["grade_id"], *points)
    return hashlib.md5("".join(map(str, parts)).encode()).hexdigest()


def stored(cell):
    """The checksum that the cell was released with; None for scratch paper and cells that were added."""
    return cell["metadata"].get("nbgrader", {}).get("checksum")


def edited(cell):
    return stored(cell) is not None and stored(cell) != checksum(cell)
