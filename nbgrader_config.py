"""Stock nbgrader, pointed at the course's folders and its judge. Every nbgrader command reads this file."""

import os
import sys
from pathlib import Path

c = get_config()  # nbgrader supplies it

# Where things are. One cohort's data lies below class/, or wherever $COURSE_DATA says.
root = Path(__file__).resolve().parent
data = Path(os.environ.get("COURSE_DATA") or root / "class").resolve()
try:
    data.mkdir(parents=True, exist_ok=True)
except OSError as error:
    raise SystemExit(f"{data} cannot be made ({error.strerror}); set COURSE_DATA to a folder you may write.") from None
data_from_root = os.path.relpath(data, root)  # nbgrader takes an absolute path for one below its root

c.CourseDirectory.root = str(root)
c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "_build/source"  # `python -m autograder notebooks` makes it from solutions/
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = f"{data_from_root}/submitted"
c.CourseDirectory.autograded_directory = f"{data_from_root}/autograded"
c.CourseDirectory.feedback_directory = f"{data_from_root}/feedback"
c.CourseDirectory.db_url = f"sqlite:///{data / 'gradebook.db'}"

# nbgrader starts `alembic` by its bare name; found beside this Python, the environment need not be activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

# What students see in place of a solution; autograder/notebooks.py writes the same.
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError  # your code here"}

# How submissions are graded. Stock nbgrader runs the tests in the student's process; here a submission is read
# tolerantly, rebuilt from the released notebook, run in a process of its own and judged from outside.
c.Autograde.pre_convert_hook = "autograder.gradebook.expect_released_notebooks"
c.Autograde.exporter_class = "autograder.gradebook.TolerantExporter"
c.Autograde.sanitize_preprocessors = [
    "autograder.gradebook.Rebuild",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "autograder.gradebook.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
    "autograder.gradebook.Record",
]
