"""Stock nbgrader, pointed at the course's folders and its judge. Every nbgrader command reads this file."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from autograder.errors import BadInput
from autograder.lock import alone
from autograder.received import repair

c = get_config()  # nbgrader supplies it

# Where things are. One cohort's data lies below class/, or wherever $COURSE_DATA says.
root = Path(__file__).resolve().parent
data = Path(os.environ.get("COURSE_DATA") or root / "class").resolve()
if unserved := sorted(set("%?*[") & set(str(data))):
    raise SystemExit(f"nbgrader cannot serve {data}, for the {unserved[0]} in it; set COURSE_DATA to another folder.")
try:
    data.mkdir(parents=True, exist_ok=True)
except OSError as error:
    raise SystemExit(f"{data} cannot be made ({error.strerror}); set COURSE_DATA to a folder you may write.") from None
os.environ["COURSE_DATA"] = str(data)  # whatever folder nbgrader changes to
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

# How submissions are graded. Stock nbgrader runs the tests in the student's process; here a submission is taken in
# whatever it holds, rebuilt from the released notebook, run in a sandbox and judged from outside.
c.Autograde.exporter_class = "autograder.gradebook.Reader"
c.Autograde.pre_convert_hook = "autograder.gradebook.begin"
c.Autograde.sanitize_preprocessors = ["nbgrader.preprocessors.OverwriteCells"]
c.Autograde.autograde_preprocessors = [
    "autograder.gradebook.Judge",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "autograder.gradebook.Record",
]

c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    "autograder.gradebook.Returned",
]

# What an earlier run left half done is finished before anything reads submissions, unless a grader is at work.
try:
    with suppress(BadInput), alone():
        repair()
except OSError as error:  # nbgrader would go on without this file
    raise SystemExit(
        f"{error.filename or data}: {error.strerror}; the class's folder must be yours to write."
    ) from None
