"""The judge of the course: what an exercise is, how an answer is judged, how nbgrader is served."""

from . import exercises
from .check import check
from .judge import judge

__all__ = ["check", "exercises", "judge"]
