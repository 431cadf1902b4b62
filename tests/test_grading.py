"""From a folder of submissions to marks: both front ends, odd submissions, and bad input of the instructor's."""

import contextlib
import html
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import cohort, demo, intake
from autograder.__main__ import main
from autograder.exercises import get
from autograder.rebuild import rebuild

pytestmark = pytest.mark.filterwarnings("ignore:Object of type")  # pytest undoes what gradebook.py says about them
ASSIGNMENT = demo.ASSIGNMENT
EXPECTED = json.loads((demo.STUDENTS / "expected.json").read_text("utf-8"))
PERFECT = demo.STUDENTS / "ada.py"


def notebook(student=PERFECT):
    return demo.completed(cohort.released(ASSIGNMENT), student.read_text("utf-8"))


def hand_in(data, student, content, name=f"{ASSIGNMENT}.ipynb"):
    """Put `content` (a notebook, bytes, or None for an empty folder) where `student` hands in."""
    folder = data / "submitted" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


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


def sentence(mistake):
    [found] = [m.sentence for m in get("ch02/scaled_dot_product_attention").mistakes if m.name == mistake]
    return found


# --- the demonstration class, through both front ends -----------------------------------------------------------------


@pytest.fixture(scope="session")
def ours(tmp_path_factory):
    """The demonstration class, and four whose files are odd, by `python -m autograder grade`."""
    data = tmp_path_factory.mktemp("ours")
    demo.hand_in(data)
    latin = json.dumps(with_comment(notebook(), "déjà vu"), ensure_ascii=False).encode("latin-1", "replace")
    hand_in(data, "odd-latin", latin)
    hand_in(data, "odd-name", notebook(), name="my copy <b>.ipynb")
    hand_in(data, "odd-broken", json.dumps(notebook()).encode()[:3000])
    hand_in(data, "odd-empty", None)
    assert main(["notebooks"]) == 0
    source = cohort.ROOT / "_build" / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    hand_in(data, "solutions", source.read_bytes())
    return data, run(data, "autograder", "grade", ASSIGNMENT, "--jobs", "2")


@pytest.fixture(scope="session")
def stock(ours, tmp_path_factory):
    """The same submissions by nbgrader's own commands."""
    data = tmp_path_factory.mktemp("stock")
    for kept in ("submitted", "secret"):
        copy = shutil.copytree if (ours[0] / kept).is_dir() else shutil.copy
        copy(ours[0] / kept, data / kept)
    release = f"--CourseDirectory.release_directory={data / 'release'}"
    commands = [
        ("generate_assignment", ASSIGNMENT, release),
        ("autograde", ASSIGNMENT),
        ("generate_feedback", ASSIGNMENT),
        ("export", "--to", str(data / "grades.csv")),
    ]
    return data, [run(data, "nbgrader", *command) for command in commands]


def with_comment(made, words):
    solution = next(cell for cell in made["cells"] if cell["metadata"].get("nbgrader", {}).get("solution"))
    solution["source"] = f"# {words}\n" + solution["source"]
    return made


def test_the_class_gets_the_marks_written_down_before(ours):
    data, graded = ours
    assert graded.returncode == 0, graded.stderr
    assert demo.differences(list(marks(data).values())) == []
    for student, want in EXPECTED.items():
        line = next(line for line in graded.stdout.splitlines() if line.startswith(f"{student} "))
        assert f"{want['points']} of 16" in line


def test_progress_is_shown_and_nothing_else_is_said(ours):
    _, graded = ours
    assert f"Grading {ASSIGNMENT}: 13 of 13" in graded.stderr
    assert all(line.startswith("Grading") for line in graded.stderr.splitlines()), graded.stderr


@pytest.mark.parametrize(
    ("student", "points", "verdict", "reason"),
    [
        ("solutions", 16, "graded", "all right"),
        ("odd-latin", 16, "graded", "not in UTF-8"),
        ("odd-name", 16, "graded", "my copy <b>.ipynb was taken as"),
        ("odd-broken", 0, "unreadable", "the released one was graded"),
        ("odd-empty", 0, "missing", "no notebook in the folder"),
    ],
)
def test_odd_submissions_have_a_defined_end(ours, student, points, verdict, reason):
    row = marks(ours[0])[student]
    assert (row["points"], row["max_points"], row["verdict"]) == (points, 16, verdict) and reason in row["reason"]


def test_nbgraders_commands_work_and_give_equal_marks(ours, stock):
    data, done = stock
    assert [one.returncode for one in done] == [0] * 4, "\n".join(one.stderr[-2000:] for one in done)
    ours_, theirs = marks(ours[0]), marks(data)
    assert theirs.pop("odd-empty")["verdict"] == "ungraded"  # nbgrader passes over a folder without a notebook
    del ours_["odd-empty"]
    assert theirs == ours_
    exported = (data / "grades.csv").read_text()
    for student, row in theirs.items():
        assert f",{student},,,,{row['points']:.1f},0.0,{row['points']:.1f},16.0" in exported


def test_the_student_notebook_is_what_nbgrader_makes(stock):
    made = (stock[0] / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()
    assert made == (cohort.RELEASED / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_bytes()


def test_feedback_shows_the_report_and_the_reason(stock):
    page = lambda student: next((stock[0] / "feedback" / student).rglob("*.html")).read_text("utf-8")  # noqa: E731
    lise = page("lise")
    assert "Score: 13.0 / 16.0" in lise and html.escape(sentence("empty_row_nan")) in lise
    assert "my copy &lt;b&gt;.ipynb was taken as" in page("odd-name") and "copy <b>" not in page("odd-name")


def test_graded_cells_hold_one_mark_and_no_error(ours):
    for path in (ours[0] / "autograded").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        graded = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("grade")]
        assert len(graded) == 4
        for cell in graded:
            [output] = cell["outputs"]
            assert output["output_type"] == "execute_result" and float("".join(output["data"]["text/plain"])) >= 0
        others = [output for cell in cells if cell not in graded for output in cell.get("outputs", [])]
        assert {output["output_type"] for output in others} <= {"stream"}


def test_grading_again_gives_the_same_and_one_student_can_be_graded(ours):
    data, _ = ours
    before = marks(data)
    status, shown = here(data, "grade", ASSIGNMENT, "--student", "lise")
    assert status == 0 and len(shown.splitlines()) == 2
    assert marks(data) == before


def test_the_demonstration_says_where_feedback_lies_and_what_differs(tmp_path, monkeypatch, capsys):
    for name in ("ada.py", "kurt.py"):
        shutil.copy(demo.STUDENTS / name, tmp_path)
    (tmp_path / "expected.json").write_text(json.dumps({"ada": EXPECTED["ada"], "kurt": {"points": 3, "reason": ""}}))
    monkeypatch.setattr(demo, "STUDENTS", tmp_path)
    monkeypatch.setattr(demo, "DATA", tmp_path / "class")
    monkeypatch.setenv("COURSE_DATA", "")
    assert demo.main() == 1
    shown = capsys.readouterr().out
    assert "kurt should get 3" in shown and "ada should" not in shown
    page = tmp_path / "class" / "feedback" / "ada" / ASSIGNMENT / f"{ASSIGNMENT}.html"
    assert page.exists() and str(page).replace("/ada/", "/STUDENT/") in shown


def test_the_secret_is_the_owners_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    made = cohort.secret()
    assert len(made) == 32 and cohort.secret() == made and (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    from autograder.examine import seed

    seeds = {
        seed(made, "a", "ch02/x"),
        seed(made, "b", "ch02/x"),
        seed(made, "a", "ch02/y"),
        seed(b"0" * 32, "a", "ch02/x"),
    }
    assert len(seeds) == 4


def test_validate_tells_right_from_wrong(tmp_path):
    paths = [tmp_path / f"{student}.ipynb" for student in ("ada", "lise")]
    for path in paths:
        path.write_text(json.dumps(notebook(demo.STUDENTS / f"{path.stem}.py")))
    said = " ".join(run(tmp_path, "nbgrader", "validate", *map(str, paths)).stdout.split())
    assert said.startswith("Success!") and "FAILED ON 1 CELL" in said and sentence("empty_row_nan") in said


# --- in this process: what the instructor gets wrong, and what goes wrong ---------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "class"))
    return tmp_path / "class"


@pytest.fixture
def begun(data, ours):
    """A class with an empty gradebook; to make one takes nbgrader seconds."""
    from autograder import gradebook

    data.mkdir()
    shutil.copy(ours[0] / "gradebook.db", data)
    with gradebook.course() as app, gradebook.opened(app) as book:
        book.remove_assignment(ASSIGNMENT)
        for student in list(book.students):
            book.remove_student(student.id)
    return data


def fails(capsys, *command):
    """The one sentence with which a command is refused."""
    assert main(list(command)) == 2
    said = capsys.readouterr()
    assert len(said.err.strip().splitlines()) == 1 and not said.out
    return said.err


def test_an_unknown_assignment_is_named_with_those_there_are(data, capsys):
    said = fails(capsys, "grade", "02_typo")
    assert "'02_typo'" in said and ASSIGNMENT in said


def test_no_submissions_says_where_they_belong(data, capsys):
    assert str(data / "submitted" / "STUDENT" / ASSIGNMENT) in fails(capsys, "grade", ASSIGNMENT)
    assert "There is no submission of 'nobody'" in fails(capsys, "grade", ASSIGNMENT, "--student", "nobody")
    assert not list(data.glob("*"))


def test_a_gradebook_that_cannot_be_written_stops_everything_at_once(data, capsys):
    hand_in(data, "ada", None)
    (data / "gradebook.db").write_bytes(b"this is no database, and long enough to be sure of it" * 99)
    assert "gradebook.db cannot be written" in fails(capsys, "grade", ASSIGNMENT)
    assert not (data / "autograded").exists() and not list(data.rglob("*.json"))


def test_a_folder_that_cannot_be_made_is_named(data, capsys):
    hand_in(data, "ada", None)
    (data / "verdicts").write_text("in the way")
    assert f"{data / 'verdicts'}" in fails(capsys, "grade", ASSIGNMENT)


def test_the_class_folder_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="cannot be made"):
        here(tmp_path / "file" / "class", "grade", ASSIGNMENT)
    failed = run(tmp_path / "file" / "class", "nbgrader", "autograde", ASSIGNMENT)
    assert failed.returncode != 0 and "cannot be made" in failed.stderr and "Traceback" not in failed.stderr


def test_grades_of_nothing(data):
    assert here(data, "grades") == (0, "Nothing has been handed in.\n")
    assert here(data, "grades", "--json") == (0, "[]\n")
    assert not list(data.glob("*"))


def test_jobs_is_at_least_one(begun, capsys):
    hand_in(begun, "ada", None)
    assert "--jobs is 0" in fails(capsys, "grade", ASSIGNMENT, "--jobs", "0")


def test_a_failure_of_the_grader_is_not_the_students(begun, capsys, monkeypatch):
    """No mark, old ones withdrawn, the others graded, exit status 1."""
    from autograder import gradebook

    def examine(notebook, student, secret):
        if student in broken:
            raise RuntimeError("the machine is on fire")
        return {"outputs": {}, "checks": [], "stopped": None}

    broken = set()
    monkeypatch.setattr(gradebook, "examine", examine)
    for student in ("ada", "bob"):
        hand_in(begun, student, notebook())
    assert main(["grade", ASSIGNMENT]) == 0
    broken.add("ada")
    assert main(["grade", ASSIGNMENT]) == 1
    assert "failed" in capsys.readouterr().out
    main(["grades", "--json"])
    ada, bob = json.loads(capsys.readouterr().out)
    assert (ada["verdict"], ada["points"], ada["pending_points"]) == ("failed", 0, 16) and "on fire" in ada["reason"]
    assert (bob["verdict"], bob["points"]) == ("graded", 16)


def test_a_known_student_who_sent_nothing_has_a_row(begun, capsys, monkeypatch):
    from autograder import gradebook

    monkeypatch.setattr(gradebook, "examine", lambda *_: {"outputs": {}, "checks": [], "stopped": None})
    hand_in(begun, "ada", notebook())
    with gradebook.course() as app, gradebook.opened(app) as book:
        book.update_or_create_student("zoe")
    assert main(["grade", ASSIGNMENT]) == 0
    capsys.readouterr()
    main(["grades", "--json"])
    zoe = json.loads(capsys.readouterr().out)[1]
    assert (zoe["student"], zoe["points"], zoe["max_points"], zoe["verdict"]) == ("zoe", 0, 16, "missing")


def test_a_worth_that_has_changed_is_not_graded_silently():
    from autograder import gradebook

    made = gradebook.nbformat.from_dict(notebook())
    number = next(i for i, cell in enumerate(made.cells) if cell.metadata.get("nbgrader", {}).get("grade"))
    with pytest.raises(ValueError, match="generate_assignment"):
        gradebook.require_points({"function": "f", "number": number, "max_points": 99}, made)


# --- intake and rebuild -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"cells": 3}',
        b'{"cells": ' + b"[" * 100_000,
        b"\x00\xff" * 50,
        b'{"a": ' + b"9" * 9999 + b"}",
    ],
)
def test_what_is_no_notebook_is_said_to_be_none(tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content)
    found = intake.read(tmp_path, "a")
    assert found.cells is None and found.verdict == "unreadable" and "a.ipynb is not a notebook" in found.notes[0]


def test_odd_cells_are_passed_over(tmp_path):
    odd = [
        None,
        3,
        {},
        {"cell_type": "raw", "source": "x"},
        {"cell_type": "code", "source": ["a", 1], "metadata": 7, "id": "i"},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": odd}))
    assert intake.read(tmp_path, "a").cells == [{"kind": "code", "source": "a1", "id": "i"}]


def test_format_3_is_read(tmp_path):
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\n", "y"]}]}], "nbformat": 3}
    (tmp_path / "a.ipynb").write_text(json.dumps(old))
    assert intake.read(tmp_path, "a").cells == [{"kind": "code", "source": "x = 1\ny", "id": None}]


def test_a_name_is_shown_without_what_moves_a_terminal(tmp_path):
    (tmp_path / "x\x1b[2Jy.ipynb").write_text(json.dumps({"cells": []}))
    assert intake.read(tmp_path, "a").notes == ["x?[2Jy.ipynb was taken as a.ipynb"]


def test_of_several_notebooks_none_is_guessed(tmp_path):
    for name in "bc":
        (tmp_path / f"{name}.ipynb").write_text(json.dumps({"cells": []}))
    found = intake.read(tmp_path, "a")
    assert found.verdict == "missing" and "2 notebooks in the folder, none of them a.ipynb" in found.notes[0]


def test_a_link_is_no_notebook(tmp_path):
    (tmp_path / "elsewhere").write_text(json.dumps({"cells": []}))
    (tmp_path / "a.ipynb").symlink_to(tmp_path / "elsewhere")
    assert intake.read(tmp_path, "a").verdict == "missing"


def master():
    """Set-up, an answer, its check, scratch paper."""
    locked = {"grade": False, "locked": True, "solution": False}
    cells = [
        ("set-up", "import torch", {"nbgrader": {"grade_id": "set-up", **locked}}),
        ("f", "def f(): raise", {"nbgrader": {"grade_id": "f", "grade": False, "solution": True, "locked": False}}),
        ("check-f", "check('x', f)", {"nbgrader": {"grade_id": "check-f", **locked, "grade": True, "points": 2}}),
        ("try", "f()", {}),
    ]
    return {
        "cells": [{"cell_type": "code", "id": i, "source": s, "metadata": m, "outputs": []} for i, s, m in cells],
        "metadata": {},
    }


def code(source, id=None):
    return {"kind": "code", "source": source, "id": id}


def rebuilt(*submitted):
    made, notes = rebuild(master(), list(submitted))
    return [cell["source"] for cell in made["cells"]], notes


def test_only_answers_and_added_cells_are_taken():
    sources, notes = rebuilt(
        code("import os", "set-up"),
        code("helper = 1"),
        code("def f(): 1", "f"),
        code("print(16)", "check-f"),
        code("f(2)", "try"),
    )
    assert sources == ["import torch", "helper = 1", "def f(): 1", "check('x', f)", "f(2)"] and not notes


def test_the_first_changed_copy_counts():
    sources, notes = rebuilt(code("def f(): raise", "f"), code("def f(): 1", "f"), code("def f(): 2", "f"))
    assert sources[1] == "def f(): 1" and "3 times" in notes[0]


def test_a_deleted_answer_does_not_hide_one_in_a_cell_of_its_own():
    sources, notes = rebuilt(code("import torch", "set-up"), code("def f(): 1"))
    assert sources[:3] == ["import torch", "def f(): 1", "# This cell was deleted from the submission."]
    assert notes == ["the cell f was deleted"]


def test_stripped_ids_leave_cells_in_their_places():
    sources, _ = rebuilt(code("import torch"), code("def f(): 1"), code("check('x', f)"), code("f()"))
    assert sources == [
        "import torch", "def f(): 1", "# This cell was deleted from the submission.", "check('x', f)", "f()",
    ]  # fmt: skip


def test_the_master_alone():
    made, notes = rebuild(master(), None)
    assert made == master() and notes == []
    assert rebuilt(*(code(cell["source"], cell["id"]) for cell in master()["cells"]))[1] == [
        "nothing was changed in the released notebook"
    ]


def test_added_cells_get_ids_of_their_own():
    made, _ = rebuild(
        master(), [code("a"), code("b", "set-up"), code("c"), {"kind": "markdown", "source": "d", "id": "f"}]
    )
    ids = [cell["id"] for cell in made["cells"]]
    assert len(set(ids)) == len(ids) and Path(ids[0]).name == "added-0"
