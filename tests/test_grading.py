"""From a folder of submissions to marks: both front ends, what waits for a person, what an instructor gets wrong."""

import contextlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from nbgrader.apps.api import NbGraderAPI

from autograder import box, cohort, demo, gradebook, lock, store, tables
from autograder import marks as earned
from autograder.__main__ import main
from autograder.demo import typed
from autograder.errors import BadInput
from autograder.exercises import get

pytestmark = pytest.mark.filterwarnings("ignore:Object of type")  # pytest undoes what gradebook.py says about them
ASSIGNMENT = demo.ASSIGNMENT
CLASS = ("ada", "gauss", "kurt", "lise", "thales", "tycho", "zeno")


def hand_in(data, student, content=None, name=f"{ASSIGNMENT}.ipynb"):
    """Put `content` (bytes; Ada's notebook by default) where `student` hands in."""
    folder = data / "submitted" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(json.dumps(typed.notebook("ada")).encode() if content is None else content)
    return folder


def run(data, *command):
    """A command as an instructor types it, from the repository's root."""
    paths = os.pathsep.join([str(cohort.ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "COURSE_DATA": str(data), "PYTHONPATH": paths}
    program = [sys.executable, "-m", *command]
    return subprocess.run(program, cwd=cohort.ROOT, env=environment, capture_output=True, text=True, timeout=400)


def here(data, *command):
    """The same in this process, which has imported nbgrader already: the exit status and what is printed."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as shown:
        patch.setenv("COURSE_DATA", str(data))
        return main(list(command)), shown.getvalue()


def marks(data):
    """Points and verdicts as `grades --json` shows them."""
    status, shown = here(data, "grades", "--json")
    assert status == 0
    return {row["student"]: row for row in json.loads(shown)}


# --- a class, through both front ends ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours(bubblewrap, tmp_path_factory):
    """A part of the demonstration class and the solutions, by `python -m autograder grade`."""
    data = tmp_path_factory.mktemp("ours")
    demo.hand_in(data, CLASS)
    assert main(["notebooks"]) == 0
    source = cohort.ROOT / "_build" / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    hand_in(data, "solutions", source.read_bytes())
    return data, run(data, "autograder", "grade", ASSIGNMENT, "--jobs", "2")


@pytest.fixture(scope="module")
def stock(ours, tmp_path_factory):
    """The same submissions by nbgrader's own commands."""
    data = tmp_path_factory.mktemp("stock")
    demo.hand_in(data, CLASS)
    hand_in(data, "solutions", next((ours[0] / "received" / "solutions").rglob("*.ipynb")).read_bytes())
    release = f"--CourseDirectory.release_directory={data / 'release'}"
    commands = [
        ("generate_assignment", ASSIGNMENT, release),
        ("autograde", ASSIGNMENT),
        ("generate_feedback", ASSIGNMENT),
        ("export", "--to", str(data / "grades.csv")),
    ]
    return data, [run(data, "nbgrader", *command) for command in commands]


def test_every_student_has_one_row_and_one_reason(ours):
    data, graded = ours
    assert graded.returncode == 0, graded.stderr
    assert demo.differences(list(marks(data).values()), CLASS) == []
    for student, row in marks(data).items():
        [line] = [line for line in graded.stdout.splitlines() if line.startswith(f"{student} ")]
        assert f" {row['points']:g} of 16 " in line and f"  {row['verdict']}  " in line and row["reason"]
    assert graded.stdout.splitlines()[-1] == "8 students: 5 graded, 2 missing, 1 unreadable."


def test_the_solutions_get_every_point(ours):
    row = marks(ours[0])["solutions"]
    assert (row["points"], row["verdict"], row["reason"]) == (16, "graded", "all right")


def test_progress_is_shown_and_nothing_else_is_said(ours):
    _, graded = ours
    assert f"Grading {ASSIGNMENT}: 7 of 7" in graded.stderr
    assert all(line.startswith("Grading") for line in graded.stderr.splitlines()), graded.stderr


def test_nbgraders_commands_work_and_give_equal_marks(ours, stock):
    data, done = stock
    assert [one.returncode for one in done] == [0] * 4, "\n".join(one.stderr[-2000:] for one in done)
    ours_, theirs = marks(ours[0]), marks(data)
    assert ours_.pop("thales")["verdict"] == "missing"  # of whom nbgrader does not know
    assert theirs == ours_
    exported = (data / "grades.csv").read_text()
    for student, row in theirs.items():
        assert f",{student},,,,{row['points']:.1f},0.0,{row['points']:.1f},16.0" in exported


def test_no_option_of_the_course_is_unknown_to_nbgrader(stock):
    said = "\n".join(one.stderr for one in stock[1])
    assert "not recognized" not in said, said


def test_the_student_notebook_is_what_nbgrader_makes(stock):
    made = (stock[0] / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()
    assert made == (cohort.RELEASED / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()


def sentence(mistake):
    [found] = [m.sentence for m in get("ch02/scaled_dot_product_attention").mistakes if m.name == mistake]
    return found


def test_feedback_shows_the_report_and_the_reason(stock):
    page = lambda student: next((stock[0] / "feedback" / student).rglob("*.html")).read_text("utf-8")  # noqa: E731
    lise = page("lise")
    assert "Score: 13.0 / 16.0" in lise and html.escape(sentence("empty_row_nan")) in lise
    assert "my copy &lt;b&gt;.ipynb was taken as" in page("tycho") and "copy <b>" not in page("tycho")


def test_feedback_of_a_class_is_the_same_from_both(ours, stock, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(ours[0]))
    gradebook.feedback(ASSIGNMENT)
    pages = [
        sorted(path.relative_to(data) for path in data.glob("feedback/*/*/*.html")) for data in (ours[0], stock[0])
    ]
    assert pages[0] == pages[1] and len(pages[0]) == 7


def test_graded_cells_hold_one_mark_and_no_error(ours):
    for path in (ours[0] / "autograded").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        graded = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]
        assert len(graded) == 4
        for cell in graded:
            [output] = cell["outputs"]
            assert output["output_type"] == "execute_result" and float("".join(output["data"]["text/plain"])) >= 0
        others = [output for cell in cells if cell not in graded for output in cell.get("outputs", [])]
        assert {output["output_type"] for output in others} <= {"stream", "display_data"}


def test_validate_tells_right_from_wrong(tmp_path):
    paths = [tmp_path / f"{student}.ipynb" for student in ("ada", "lise")]
    for path in paths:
        path.write_text(json.dumps(typed.notebook(path.stem)))
    said = " ".join(run(tmp_path, "nbgrader", "validate", *map(str, paths)).stdout.split())
    assert said.startswith("Success!") and "FAILED ON 1 CELL" in said and sentence("empty_row_nan") in said


# --- in this process, with an examination that finds what it is told --------------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The folder of a class that has not begun."""
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "class"))
    monkeypatch.setattr(box, "require", lambda: None)
    return tmp_path / "class"


class Examination:
    """Stands for `examine`: full marks, but for what `of` says of a student: changes to checks by function, an
    exception, or changes to the whole. Who was examined is in `asked`."""

    def __init__(self):
        self.of, self.asked = {}, []

    def __call__(self, notebook, student, secret, boxed):
        self.asked.append(student)
        told = self.of.get(student, {})
        if isinstance(told, Exception):
            raise told
        cells = [(n, cell) for n, cell in enumerate(notebook["cells"]) if store.graded(cell)[0]]
        checks = [self.check(number, cell, told) for number, cell in cells]
        outputs = {check["number"]: [mark(check)] for check in checks}
        found = {"outputs": outputs, "checks": checks, "stopped": None, "lasting": True}
        return found | {name: told[name] for name in found if name in told}

    def check(self, number, cell, told):
        worth, function = cell["metadata"]["nbgrader"]["points"], cell["id"].removeprefix("check-")
        found = {"function": function, "number": number, "points": worth, "max_points": worth, "said": "wrong"}
        return {**found, "pending_points": 0, "doubt": "", **told.get(function, {})}


def mark(check):
    data = {"text/plain": repr(float(check["points"]))}
    return {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}


@pytest.fixture
def examination(monkeypatch):
    found = Examination()
    monkeypatch.setattr("autograder.examine.examine", found)
    return found


@pytest.fixture(scope="module")
def empty_gradebook(tmp_path_factory):
    """To make one takes nbgrader a second."""
    data = tmp_path_factory.mktemp("empty")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_DATA", str(data))
        with gradebook.course() as course:
            assert course.gradebook.students == []
    return data / "gradebook.db"


@pytest.fixture
def begun(data, examination, empty_gradebook):
    """A class with an empty gradebook, whose submissions are examined as `examination` says."""
    data.mkdir()
    shutil.copy(empty_gradebook, data)
    return data


def press(data, student):
    """The formgrader's button: what nbgrader's server does for it."""
    with gradebook.course() as course:
        return NbGraderAPI(course.app.coursedir, parent=course.app).autograde(ASSIGNMENT, student)


@contextlib.contextmanager
def book():
    with gradebook.course() as course:
        found = course.gradebook
        yield found
        found.db.commit()


def grades_of(student):
    with book() as found:
        return {grade.name: grade.to_dict() for grade in earned.grades(found.find_submission(ASSIGNMENT, student))}


def fails(capsys, *command):
    """The one sentence with which a command is refused."""
    assert main(list(command)) == 2
    said = capsys.readouterr()
    assert len(said.err.strip().splitlines()) == 1 and not said.out
    return said.err


WITHHELD = {"points": 5, "pending_points": 3, "doubt": "a person has to look at memory: the notebook uses gc"}


@pytest.mark.parametrize("way", ["grade", "press"])
def test_points_that_wait_for_a_person_are_marked_so_in_the_gradebook(begun, examination, way):
    examination.of["ada"] = {"scaled_dot_product_attention": WITHHELD}
    hand_in(begun, "ada")
    if way == "grade":
        assert "ada      13 of 13, 3 pending  graded" in here(begun, "grade", ASSIGNMENT)[1]
    else:
        assert press(begun, "ada")["success"]
    row = marks(begun)["ada"]
    assert (row["points"], row["max_points"], row["pending_points"]) == (13, 16, 3)
    assert row["reason"] == f"scaled_dot_product_attention: 3 pending, {WITHHELD['doubt']}"
    grade = grades_of("ada")["check-scaled_dot_product_attention"]
    assert (grade["auto_score"], grade["needs_manual_grade"]) == (5, True)
    with book() as found:
        place = "scaled_dot_product_attention", ASSIGNMENT, ASSIGNMENT, "ada"
        assert found.find_comment(*place).auto_comment == f"3 points pending: {WITHHELD['doubt']}"
    assert "# scaled_dot_product_attention: 3 points pending" in autograded(begun, "ada")[0]["source"]


def autograded(data, student):
    path = data / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    return [{**cell, "source": "".join(cell["source"])} for cell in json.loads(path.read_text("utf-8"))["cells"]]


def test_what_a_person_decides_no_longer_waits_and_is_not_graded_away(begun, examination):
    examination.of["ada"] = {"scaled_dot_product_attention": WITHHELD}
    hand_in(begun, "ada")
    here(begun, "grade", ASSIGNMENT)
    with book() as found:
        grade = found.find_grade("check-scaled_dot_product_attention", ASSIGNMENT, ASSIGNMENT, "ada")
        grade.manual_score, grade.needs_manual_grade = 8, False
    assert (marks(begun)["ada"]["points"], marks(begun)["ada"]["pending_points"]) == (16, 0)
    assert "16 of 16  graded" in here(begun, "grade", ASSIGNMENT)[1]
    assert grades_of("ada")["check-scaled_dot_product_attention"]["needs_manual_grade"] is False


def test_a_check_of_which_nothing_is_decided_has_no_score(begun, examination):
    examination.of["ada"] = {"attention_backward": {"points": 0, "pending_points": 4, "doubt": "needs a GPU"}}
    hand_in(begun, "ada")
    assert "12 of 12, 4 pending  graded   attention_backward: 4 pending, needs" in here(begun, "grade", ASSIGNMENT)[1]
    assert grades_of("ada")["check-attention_backward"]["auto_score"] is None


@pytest.mark.parametrize("way", ["grade", "press"])
@pytest.mark.parametrize("where", ["while it is examined", "while marks are saved", "before nbgrader reads it"])
def test_a_failure_of_the_grader_is_not_the_students(begun, examination, monkeypatch, way, where):
    """No mark and a reason; old marks withdrawn, the others graded; exit status 1."""
    for student in ("ada", "bob"):
        hand_in(begun, student)
    assert here(begun, "grade", ASSIGNMENT)[0] == 0
    hand_in(begun, "ada", json.dumps(typed.notebook("kurt")).encode())
    fire = RuntimeError("the machine is on fire")
    if where == "while it is examined":
        examination.of["ada"] = fire
    else:
        step = {"while": "nbgrader.preprocessors.SaveAutoGrades.preprocess"}
        broken(monkeypatch, step.get(where[:5], "nbgrader.converters.Autograde.init_assignment"), fire)
    if way == "grade":
        status, shown = here(begun, "grade", ASSIGNMENT)
        assert status == 1 and re.search(r"^ada +- +failed", shown, re.MULTILINE)
    else:
        assert press(begun, "ada")["success"] is False
    row = marks(begun)["ada"]
    assert (row["verdict"], row["points"], row["pending_points"]) == ("failed", 0, 16)
    told = "the grader failed: RuntimeError: the machine is on fire"
    assert row["reason"] == (gradebook.BEGUN if (way, where[:6]) == ("press", "before") else told)
    assert {grade["auto_score"] for grade in grades_of("ada").values()} == {None}
    assert (marks(begun)["bob"]["verdict"], marks(begun)["bob"]["points"]) == ("graded", 16)
    monkeypatch.undo()


def broken(monkeypatch, name, problem):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr(name, fail)


def test_what_was_withdrawn_is_had_again(begun, examination):
    hand_in(begun, "ada")
    examination.of["ada"] = RuntimeError("the machine is on fire")
    here(begun, "grade", ASSIGNMENT)
    del examination.of["ada"]
    assert "16 of 16" in here(begun, "grade", ASSIGNMENT)[1]


def test_a_student_who_sent_nothing_has_a_row_and_no_marks_of_earlier(begun):
    for student in ("ada", "bob"):
        hand_in(begun, student)
    (begun / "roster.csv").write_text("id,first_name,last_name\nada,Ada,Lovelace\nzoe,Zoe,Zuse\n")
    assert here(begun, "grade", ASSIGNMENT)[0] == 0
    shutil.rmtree(begun / "submitted" / "ada")
    shutil.rmtree(begun / "received" / "ada")
    assert "3 students: 2 missing, 1 graded." in here(begun, "grade", ASSIGNMENT)[1]
    for student in ("ada", "zoe"):
        row = marks(begun)[student]
        assert (row["points"], row["max_points"], row["pending_points"], row["verdict"]) == (0, 16, 0, "missing")
        assert row["reason"] == "nothing was handed in"
    assert not (begun / "autograded" / "ada" / ASSIGNMENT).exists()
    assert {grade["auto_score"] for grade in grades_of("ada").values()} == {0}
    with book() as found:
        assert found.find_student("zoe").last_name == "Zuse"
    assert "zoe      0 of 16  missing  nothing" in here(begun, "grade", ASSIGNMENT, "--student", "zoe")[1]


def soil(data):
    (data / "verdicts" / ASSIGNMENT / "ada.json").write_text("{}")


def lose_the_notebook(data):
    shutil.rmtree(data / "autograded" / "ada")


def change_a_mark(data):
    with book() as found:
        found.find_grade("check-project_qkv", ASSIGNMENT, ASSIGNMENT, "ada").auto_score = 1


def lose_the_gradebook(data):
    (data / "gradebook.db").unlink()


def test_what_is_unchanged_is_not_graded_again(begun, examination, monkeypatch):
    for student in ("ada", "bob"):
        hand_in(begun, student)
    first = here(begun, "grade", ASSIGNMENT)
    broken(monkeypatch, "nbgrader.converters.Autograde.start", RuntimeError("it is graded again"))
    assert here(begun, "grade", ASSIGNMENT) == first and examination.asked == ["ada", "bob"]


@pytest.mark.parametrize("spoil", [soil, lose_the_notebook, change_a_mark, lose_the_gradebook])
def test_what_is_no_longer_as_it_was_recorded_is_recorded_again(begun, examination, spoil):
    hand_in(begun, "ada")
    here(begun, "grade", ASSIGNMENT)
    before = marks(begun)
    spoil(begun)
    here(begun, "grade", ASSIGNMENT)
    assert marks(begun) == before and grades_of("ada")["check-project_qkv"]["auto_score"] == 2
    assert autograded(begun, "ada") and examination.asked == ["ada"]  # the result was kept


def test_what_is_new_or_would_not_come_out_again_is_examined_again(begun, examination):
    for student in ("ada", "bob"):
        hand_in(begun, student)
    examination.of["bob"] = {"lasting": False}
    here(begun, "grade", ASSIGNMENT)
    hand_in(begun, "ada", json.dumps(typed.notebook("lise")).encode())
    here(begun, "grade", ASSIGNMENT)
    assert examination.asked == ["ada", "bob", "ada", "bob"]


def test_what_lies_in_a_wrong_place_is_said(begun):
    hand_in(begun, "ada")
    (begun / "submitted" / "ben").mkdir()
    (begun / "submitted" / "ben" / f"{ASSIGNMENT}.ipynb").write_text("{}")
    (begun / "submitted" / "notes.txt").write_text("")
    status, shown = here(begun, "grade", ASSIGNMENT)
    assert status == 0 and "submitted/notes.txt is a file" in shown and "2 students: 1 graded, 1 missing." in shown
    assert marks(begun)["ben"]["reason"].startswith(f"the notebook belongs into submitted/ben/{ASSIGNMENT}")


def test_who_came_late_is_told(begun):
    for student in ("ada", "bob"):
        (hand_in(begun, student) / "timestamp.txt").write_text("2031-03-04 12:30:00 UTC")
    with book() as found:
        found.update_or_create_assignment(ASSIGNMENT, duedate="2031-03-02 09:00:00 UTC")
    here(begun, "grade", ASSIGNMENT)
    assert marks(begun)["ada"]["reason"] == "handed in 2 days, 3 hours late"
    assert "# handed in 2 days, 3 hours late" in autograded(begun, "ada")[0]["source"]
    hand_in(begun, "bob", json.dumps(typed.notebook("lise")).encode())
    (begun / "submitted" / "bob" / ASSIGNMENT / "timestamp.txt").unlink()
    here(begun, "grade", ASSIGNMENT)
    assert marks(begun)["bob"]["reason"] == "all right"
    with book() as found:
        assert found.find_submission(ASSIGNMENT, "bob").timestamp is None
        found.update_or_create_assignment(ASSIGNMENT, duedate="2031-03-05 09:00:00 UTC")
    here(begun, "grade", ASSIGNMENT)
    assert marks(begun)["ada"]["reason"] == "all right"


def test_the_button_waits_for_another_grader_and_then_says_so(begun, monkeypatch):
    monkeypatch.setattr(gradebook, "WAIT", 0.2)
    hand_in(begun, "ada")
    with open(begun / "lock", "w") as other:
        assert lock.taken(other)
        pressed = press(begun, "ada")
        assert not pressed["success"] and "Another grader is at work" in pressed["log"]
        assert not (begun / "received").exists() and not (begun / "verdicts").exists()
    assert press(begun, "ada")["success"]


@pytest.mark.parametrize("way", ["grade", "press"])
def test_without_a_sandbox_nothing_is_begun_unless_asked_by_name(begun, monkeypatch, capsys, way):
    broken(monkeypatch, "autograder.box.require", BadInput("Submissions are graded in a sandbox, and there is none."))
    hand_in(begun, "ada")
    if way == "grade":
        assert "there is none." in fails(capsys, "grade", ASSIGNMENT)
    else:
        pressed = press(begun, "ada")
        assert not pressed["success"] and "there is none." in pressed["log"]
    assert {path.name for path in begun.iterdir()} <= {"submitted", "gradebook.db", "lock"}
    assert "16 of 16" in here(begun, "grade", ASSIGNMENT, "--unboxed")[1]


def test_unboxed_is_a_setting_of_nbgraders_too(tmp_path):
    demo.hand_in(tmp_path, ["kurt"])
    done = run(tmp_path, "nbgrader", "autograde", ASSIGNMENT, "--Judge.unboxed=True")
    assert done.returncode == 0 and "nrecognized" not in done.stderr, done.stderr
    [result] = (tmp_path / "results").glob("*/*.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_DATA", str(tmp_path))
        arguments = cohort.released(ASSIGNMENT), "kurt", cohort.secret()
    assert result.stem == store.key(*arguments, False) != store.key(*arguments, True)


# --- what an instructor gets wrong ------------------------------------------------------------------------------------


def test_an_unknown_assignment_is_named_with_those_there_are(data, capsys):
    said = fails(capsys, "grade", "02_typo")
    assert "'02_typo'" in said and ASSIGNMENT in said


def test_no_submissions_says_where_they_belong(data, capsys, monkeypatch):
    monkeypatch.chdir(data.parent)
    assert f" class/submitted/STUDENT/{ASSIGNMENT}." in fails(capsys, "grade", ASSIGNMENT)
    assert "There is no submission of 'nobody'" in fails(capsys, "grade", ASSIGNMENT, "--student", "nobody")
    assert [path.name for path in data.iterdir()] == ["lock"]


def test_a_roster_that_cannot_be_read_stops_everything_at_once(begun, capsys):
    hand_in(begun, "ada")
    (begun / "roster.csv").write_text("name\nAda\n")
    assert "roster.csv, line 1" in fails(capsys, "grade", ASSIGNMENT)
    assert not (begun / "autograded").exists() and not (begun / "verdicts").exists()


def test_a_folder_of_submissions_that_cannot_be_opened_is_not_empty(begun, capsys, monkeypatch):
    hand_in(begun, "ada")
    (begun / "submitted").chmod(0)
    if os.access(begun / "submitted", os.R_OK):  # the administrator may open everything
        broken(monkeypatch, "autograder.grading.os.listdir", PermissionError(13, "Permission denied", "submitted"))
    assert fails(capsys, "grade", ASSIGNMENT).endswith("submitted: Permission denied.\n")


def test_a_gradebook_that_cannot_be_written_stops_everything_at_once(data, capsys):
    hand_in(data, "ada")
    (data / "gradebook.db").write_bytes(b"this is no database, and long enough to be sure of it" * 99)
    assert "gradebook.db cannot be written" in fails(capsys, "grade", ASSIGNMENT)
    assert not (data / "autograded").exists() and not list(data.rglob("*.json"))


def test_a_folder_that_cannot_be_made_is_named(begun, capsys):
    hand_in(begun, "ada")
    (begun / "verdicts").write_text("in the way")
    assert f"{begun / 'verdicts'}" in fails(capsys, "grade", ASSIGNMENT)


def test_the_class_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="cannot be made"):
        here(tmp_path / "file" / "class", "grade", ASSIGNMENT, "--unboxed")
    failed = run(tmp_path / "file" / "class", "nbgrader", "autograde", ASSIGNMENT)
    assert failed.returncode != 0 and "cannot be made" in failed.stderr and "Traceback" not in failed.stderr


@pytest.mark.parametrize("name", ["50%", "really?", "a*", "[2031]"])
def test_a_class_folder_that_nbgrader_would_misread_is_refused(tmp_path, name):
    with pytest.raises(SystemExit, match="set COURSE_DATA to another folder"):
        here(tmp_path / name, "grades")
    assert not list(tmp_path.iterdir())


def test_the_class_folder_may_be_named_from_where_one_stands(begun, monkeypatch):
    hand_in(begun, "ada")
    monkeypatch.chdir(begun)
    assert "16 of 16" in here(".", "grade", ASSIGNMENT)[1]
    assert marks(".")["ada"]["points"] == 16


def test_grades_of_nothing(data):
    assert here(data, "grades") == (0, "Nothing has been handed in.\n")
    assert here(data, "grades", "--json") == (0, "[]\n")


def test_what_was_never_graded_has_a_row_and_no_points(begun):
    hand_in(begun, "ada")
    assert re.search("^ada +- +ungraded +not graded yet$", here(begun, "grades")[1], re.MULTILINE)
    assert marks(begun)["ada"]["pending_points"] == 0


def test_jobs_is_at_least_one(begun, capsys):
    hand_in(begun, "ada")
    assert "--jobs is 0" in fails(capsys, "grade", ASSIGNMENT, "--jobs", "0")


def test_a_worth_that_has_changed_is_not_graded_silently(begun, examination):
    examination.of["ada"] = {"project_qkv": {"max_points": 99}}
    hand_in(begun, "ada")
    assert here(begun, "grade", ASSIGNMENT)[0] == 1
    assert "generate_assignment" in marks(begun)["ada"]["reason"]


def work_in_the_released(tmp_path, monkeypatch):
    """An instructor has tried the problem set in notebooks/, where what students were given lies."""
    path = shutil.copytree(cohort.RELEASED, tmp_path / "notebooks") / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    path.write_text(
        path.read_text("utf8").replace("raise NotImplementedError  # your code", "return 1  # my code", 1), "utf8"
    )
    monkeypatch.setattr(cohort, "RELEASED", tmp_path / "notebooks")


def test_answers_in_the_released_notebook_are_not_graded_against(begun, examination, tmp_path, monkeypatch, capsys):
    hand_in(begun, "ada")
    work_in_the_released(tmp_path, monkeypatch)
    assert "its cell project_qkv was changed" in fails(capsys, "grade", ASSIGNMENT)
    assert not examination.asked and not (begun / "verdicts").exists()


def test_nor_by_the_button(begun, examination, tmp_path, monkeypatch):
    hand_in(begun, "ada")
    work_in_the_released(tmp_path, monkeypatch)
    pressed = press(begun, "ada")
    assert not pressed["success"] and "its cell project_qkv was changed" in pressed["log"] and not examination.asked


def test_the_secret_is_the_owners_alone(data):
    data.mkdir()
    made = cohort.secret()
    assert len(made) == 32 and cohort.secret() == made and (data / "secret").stat().st_mode & 0o777 == 0o600
    from autograder.examine import seed

    seeds = {seed(made, "a", "ch02/x"), seed(made, "b", "ch02/x"), seed(made, "a", "ch02/y"), seed(b"0" * 32, "a", "y")}
    assert len(seeds) == 4


# --- words ------------------------------------------------------------------------------------------------------------


def examined(*checks, stopped=None):
    whole = {"function": "f", "points": 0, "max_points": 2, "pending_points": 0, "said": "zeros", "doubt": ""}
    return {"checks": [{**whole, **check} for check in checks], "stopped": stopped}


def test_a_reason_is_given_once_and_whole():
    same = examined({}, {"function": "g"}, {"function": "h", "said": "ones"})
    assert cohort.conclusion("graded", ["taken as x", "taken as x"], same) == (
        "graded",
        "taken as x; f, g: zeros; h: ones",
    )
    many = examined(*({"function": f"f{n}", "said": f"{n} " + "word " * 30} for n in range(9)))
    reason = cohort.conclusion("graded", [], many)[1]
    assert len(reason) < 550 and reason.endswith("word ; and 6 more")


def test_why_a_process_was_lost_is_said_once():
    lost = examined({"said": "values (square): Stopped: it was killed."}, stopped="it was killed")
    assert cohort.conclusion("graded", [], lost) == ("stopped", "f: values (square): Stopped: it was killed")
    lost = examined({"said": "zeros."}, stopped="it was killed")
    assert cohort.conclusion("graded", ["a note"], lost) == ("stopped", "a note; it was killed; f: zeros")


def test_a_process_that_was_lost_is_a_verdict_unless_there_was_nothing_to_read():
    assert cohort.conclusion("graded", [], examined(stopped="it was killed"))[0] == "stopped"
    assert cohort.conclusion("unreadable", ["broken"], examined(stopped="it was killed"))[0] == "unreadable"


def test_points_are_told_of_those_that_can_be_given_today():
    row = {"verdict": "graded", "points": 9.0, "max_points": 16.0, "pending_points": 4.0}
    assert tables.points(row) == "9 of 12, 4 pending"
    assert tables.points({**row, "pending_points": 0.0}) == "9 of 16"
    assert tables.points({**row, "verdict": "failed"}) == "-"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "1 second"), (3600, "1 hour"), (2 * 86400 + 3 * 3600 + 59, "2 days, 3 hours"), (0.2, "1 second")],
)
def test_a_time_in_words(seconds, words):
    from autograder.handed import duration

    assert duration(seconds) == words


def test_what_a_terminal_cannot_show_or_does_not_want_is_no_error(begun, monkeypatch):
    hand_in(begun, "zoë")
    here(begun, "grade", ASSIGNMENT)
    environment = {**os.environ, "COURSE_DATA": str(begun), "PYTHONIOENCODING": "ascii"}
    program = [sys.executable, "-m", "autograder", "grades"]
    shown = subprocess.run(program, cwd=cohort.ROOT, env=environment, capture_output=True)
    assert b"\nzo?  " in shown.stdout and not shown.stderr and shown.returncode == 0
    with subprocess.Popen(
        program, cwd=cohort.ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as one:
        one.stdout.close()
        assert one.stderr.read() == b"" and one.wait() == 141
