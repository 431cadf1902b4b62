"""What a notebook calls under each answer."""

import os
import sys

from .judging import judge
from .report import shell


class PointsMissing(AssertionError):
    """The report as an exception: nbgrader's Validate shows nothing else."""

    def _render_traceback_(self):
        return str(self).split("\n")


def check(name, answer):
    """Judge your `answer` as the exercise `name`, on its public cases; a notebook shows the Report.

    The grader judges the same properties later, on other inputs.
    """
    report = judge(name, answer)
    if os.environ.get("NBGRADER_VALIDATING") and report.points < report.max_points:
        raise PointsMissing(str(report))
    if not shell() and not hasattr(sys, "ps1"):  # a plain script shows no value by itself
        print(report)
    return report
