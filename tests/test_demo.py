"""The demonstration class gets the marks that were written down before, by both front ends; and no hostile submission
changes anything but its own marks."""

import contextlib
import csv
import hashlib
import html
import io
import json
import os
import re
import shutil
import signal
import socketserver
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder import cohort, demo, received
from autograder.examine import examine
from autograder.rebuild import rebuild

pytestmark = pytest.mark.filterwarnings("ignore:Object of type")  # pytest undoes what gradebook.py says about them
ASSIGNMENT = demo.ASSIGNMENT
EXPECTED = {assignment: demo.expected(assignment) for assignment in demo.ASSIGNMENTS}
HOSTILE = [(assignment, name) for assignment, wanted in EXPECTED.items() for name in wanted if wanted[name]["hostile"]]
POINTS = {assignment: cohort.worth(assignment) for assignment in EXPECTED}
NOT_SERVED = ("thales", "zeno")  # nbgrader passes over a folder without a notebook, and over who has none
TOKEN = "token-of-the-teacher-1564"
COURSE = ("autograder", "solutions", "notebooks", "book", "nbgrader_config.py", "Makefile")
every_assignment = pytest.mark.parametrize("assignment", EXPECTED)


def start(data, *command):
    """A command as an instructor types it, from the repository's root; at once, not waited for."""
    environment = {**os.environ, "COURSE_DATA": str(data), "COURSE_TOKEN": TOKEN}
    program = [sys.executable, "-m", *command]
    return subprocess.Popen(
        program, cwd=cohort.ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(data, *command):
    return ended(start(data, *command))


def ended(process, seconds=500):
    out, err = process.communicate(timeout=seconds)
    return SimpleNamespace(status=process.returncode, out=out, err=err)


def contents(folder, root=None):
    """What lies below a folder, or at a path: for each name the file's digest, the link's target, or the kind."""
    folder, root = Path(folder), Path(root or folder)
    return {
        str(path.relative_to(root)): content(path)
        for path in [folder, *walked(folder)]
        if "__pycache__" not in path.parts
    }


def walked(folder):
    for where, folders, files in os.walk(folder):
        yield from (Path(where) / name for name in folders + files)


def content(path):
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {path.readlink()}"
    return hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else stat.filemode(mode)


def of_the_course():
    return {name: contents(cohort.ROOT / name, cohort.ROOT) for name in COURSE if (cohort.ROOT / name).exists()}


@pytest.fixture(scope="module")
def classes(bubblewrap, tmp_path_factory):
    """The class graded twice at the same time: `ours` by the course's command, `stock` by nbgrader's."""
    course = of_the_course()
    ours, stock = (tmp_path_factory.mktemp(name) for name in ("ours", "stock"))
    tables, originals, done = {}, {}, []
    for assignment in EXPECTED:
        for data in (ours, stock):
            demo.hand_in(data, assignment=assignment)
        originals = contents(ours / "submitted") | originals  # what was graded already is as it was before
        began = (
            start(ours, "autograder", "grade", assignment, "--jobs", "2"),
            start(stock, "nbgrader", "autograde", assignment),
        )
        done += [ended(process) for process in began]
        tables[assignment] = done[-2].out
        done += [run(ours, "nbgrader", "generate_feedback", assignment)]
    done += [run(data, "nbgrader", "export", "--to", str(data / "grades.csv")) for data in (ours, stock)]
    for one in done:
        assert one.status == 0, one.err[-3000:]
    return SimpleNamespace(ours=ours, stock=stock, originals=originals, course=course, tables=tables)


def verdicts(data, assignment):
    rows = json.loads(run(data, "autograder", "grades", "--json").out)
    return {row["student"]: row for row in rows if row["assignment"] == assignment}


def exported(data, assignment):
    """Student -> points and maximum, in the gradebook, as nbgrader writes them out; of those who hand this one in."""
    with open(data / "grades.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == assignment]
    marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows}
    return {student: marks[student] for student in marks if student in EXPECTED[assignment]}


def autograded(data, student, assignment=ASSIGNMENT):
    return json.loads((data / "autograded" / student / assignment / f"{assignment}.ipynb").read_text("utf-8"))


def shown(data, student):
    """The text that a submission's own cells put out."""
    outputs = [output for cell in autograded(data, student)["cells"] for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", "")) for output in outputs)


def pages(data, assignment=ASSIGNMENT):
    return {path.parts[-3]: path.read_text("utf-8") for path in (data / "feedback").rglob(f"{assignment}.html")}


# --- marks ------------------------------------------------------------------------------------------------------------


def test_the_class_is_as_large_and_as_bad_as_is_said():
    assert len(EXPECTED[ASSIGNMENT]) >= 26 and len(HOSTILE) >= 15
    for assignment, wanted in EXPECTED.items():
        assert set(demo.students(assignment)) == set(wanted)
        assert all(set(want) == {"points", "verdict", "reason", "hostile"} for want in wanted.values())


def test_the_class_grows():
    """A smaller class afterwards would be one in which most hand in nothing."""
    for before, after in pairwise(EXPECTED.values()):
        assert {name: want["hostile"] for name, want in before.items()} == {
            name: after[name]["hostile"] for name in before
        }


@every_assignment
def test_every_student_gets_what_was_written_down_before(classes, assignment):
    rows = verdicts(classes.ours, assignment)
    assert demo.differences(list(rows.values()), assignment=assignment) == []
    assert set(rows) == set(EXPECTED[assignment])
    assert {row["max_points"] for row in rows.values()} == {POINTS[assignment]}


@every_assignment
def test_the_gradebook_says_the_same(classes, assignment):
    wanted = {student: (want["points"], POINTS[assignment]) for student, want in EXPECTED[assignment].items()}
    assert exported(classes.ours, assignment) == wanted


@every_assignment
def test_the_table_names_everybody_once(classes, assignment):
    wanted = EXPECTED[assignment]
    named = [line.split()[0] for line in classes.tables[assignment].splitlines() if not line.startswith(" ")]
    assert [name for name in named if name in wanted] == sorted(wanted)


@every_assignment
def test_nbgraders_own_command_gives_the_same(classes, assignment):
    ours, stock = verdicts(classes.ours, assignment), verdicts(classes.stock, assignment)
    for student in NOT_SERVED:
        ours.pop(student, None)
        stock.pop(student, None)
    assert stock == ours
    marks = exported(classes.stock, assignment)
    wanted = {name: (EXPECTED[assignment][name]["points"], POINTS[assignment]) for name in stock}
    assert {name: marks[name] for name in stock} == wanted


# --- nothing else changed ---------------------------------------------------------------------------------------------


@every_assignment
def test_what_was_handed_in_lies_as_it_came(classes, assignment):
    for student in set(EXPECTED[assignment]) - {"thales"}:
        place = f"{student}/{assignment}"
        before = {
            name: what for name, what in classes.originals.items() if name == place or name.startswith(f"{place}/")
        }
        after = contents(classes.ours / "received" / place / "001")
        assert {name.replace(place, ".", 1).replace("./", ""): what for name, what in before.items()} == after


def test_the_course_is_as_it_was(classes):
    assert of_the_course() == classes.course


@pytest.mark.parametrize("name", ["ours", "stock"])
def test_the_gradebook_holds_marks_of_ours_only(classes, name):
    with contextlib.closing(sqlite3.connect(getattr(classes, name) / "gradebook.db")) as book:
        assert book.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall() == []
        assert book.execute(
            "SELECT count(*) FROM grade WHERE extra_credit != 0 OR manual_score IS NOT NULL"
        ).fetchone() == (0,)


def test_nobody_lives_on(classes):
    assert survivors() == [] and not list(classes.ours.glob("nicolas*")) + list(classes.stock.glob("nicolas*"))


def survivors():
    """Processes of Nicolas's and Leonardo's."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, command = (process / "comm").read_text().strip(), (process / "cmdline").read_bytes()
            if name in ("nicolas", "leonardo") or b"181.25" in command:
                found.append(int(process.name))
    return found


def test_nothing_secret_is_shown(classes):
    """Denis and Johann print what they find."""
    secret = [demo.SECRET.decode(), demo.SECRET.hex(), TOKEN, "copied: /", "found: def", "read: "]
    for student in ("denis", "johann"):
        assert [word for word in secret if word in shown(classes.ours, student)] == []
    for student, page in pages(classes.ours).items():
        assert [word for word in secret[:3] if word in page or html.escape(word) in page] == [], student


class Active(HTMLParser):
    """What a browser would run, load or obey, of what Heinrich wrote."""

    theirs = re.compile(r"alert.{0,9}heinrich|heinrich \*/")

    def __init__(self, page):
        super().__init__()
        self.found, self.inside = [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside = tag if tag in ("script", "style", "iframe") else None
        self.found += [(tag, name) for name, value in attributes if self.theirs.search(value or "")]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside and self.theirs.search(text):
            self.found.append((self.inside, text))

    handle_comment = handle_data


def test_their_html_is_text(classes):
    found = pages(classes.ours)
    assert [(student, Active(page).found) for student, page in found.items() if Active(page).found] == []
    assert "alert('heinrich')" in html.unescape(found["heinrich"])


@pytest.mark.parametrize(
    "html_",
    [
        '<script>alert("heinrich")</script>',
        '<img src="x" onerror="alert(\'heinrich\')">',
        "<style>/* heinrich */</style>",
    ],
)
def test_html_would_be_seen(html_):
    assert Active(f"<p>{html_}</p>").found and not Active(f"<p>{html.escape(html_)}</p>").found


@pytest.mark.parametrize(("assignment", "student"), HOSTILE)
def test_an_autograded_notebook_holds_text_and_pictures(classes, assignment, student):
    for cell in autograded(classes.ours, student, assignment)["cells"]:
        graded = cell["metadata"].get("nbgrader", {}).get("grade")
        kinds = {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}
        assert kinds <= ({"text/plain", "text/html"} if graded else {"image/png"})


# --- that they would, if they could -----------------------------------------------------------------------------------


@pytest.fixture
def unprotected(tmp_path, monkeypatch):
    """Some of the class, and what comes of a submission that runs without a sandbox."""
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    demo.hand_in(tmp_path, ["ada", "daniel", "denis", "isaac", "johann", "nicolas"])

    def examined(student, assignment=ASSIGNMENT):
        cells = received.take(assignment, student).cells
        notebook, _ = rebuild(cohort.released(assignment), cells)
        found = examine(notebook, student, demo.SECRET, boxed=False)
        return sum(check["points"] for check in found["checks"])

    return SimpleNamespace(data=tmp_path, examined=examined)


@pytest.mark.parametrize("student", ["johann", "denis"])
def test_without_a_sandbox_thieves_get_full_marks(unprotected, student):
    shutil.copytree(unprotected.data / "submitted" / "ada", unprotected.data / "received" / "ada")
    assert unprotected.examined(student) == 16


@pytest.fixture
def friend(tmp_path):
    """Who answers Denis, with what Ada would have answered."""
    answers, (assignment, _) = {"torch": torch}, demo.ASSIGNMENTS
    exec((demo.STUDENTS / assignment / "ada.py").read_text("utf-8"), answers)

    class Answer(socketserver.StreamRequestHandler):
        def handle(self):
            name, *inputs = torch.load(io.BytesIO(self.rfile.read()))
            torch.save(answers[name](*inputs), self.wfile)

    with socketserver.UnixStreamServer("\0friend-of-denis", Answer) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield assignment
        server.shutdown()


def test_without_a_sandbox_a_friend_answers(unprotected, friend):
    demo.hand_in(unprotected.data, ["denis"], friend)
    gradients_asked_for = 2  # they do not come back through a socket
    assert unprotected.examined("denis", friend) == POINTS[friend] - gradients_asked_for


def test_without_a_sandbox_a_neighbours_work_is_spoilt(unprotected):
    [ada] = (unprotected.data / "submitted" / "ada").rglob("*.ipynb")
    unprotected.examined("isaac")
    assert json.loads(ada.read_text())["cells"] == []


def test_without_a_sandbox_marks_are_changed(unprotected):
    with contextlib.closing(sqlite3.connect(unprotected.data / "gradebook.db")) as book:
        book.execute("CREATE TABLE grade (id, auto_score, manual_score, extra_credit)")
        book.execute("INSERT INTO grade VALUES (1, 0, NULL, 0)")
        book.commit()
    unprotected.examined("daniel")
    with contextlib.closing(sqlite3.connect(unprotected.data / "gradebook.db")) as book:
        assert book.execute("SELECT * FROM grade").fetchall() == [(1, 16, 16, 100)]
        book.execute("UPDATE grade SET extra_credit = 0")
        assert book.execute("SELECT extra_credit FROM grade").fetchall() == [(100,)]


def test_without_a_sandbox_children_outlive_the_grading(unprotected):
    try:
        unprotected.examined("nicolas")
        time.sleep(1)
        assert survivors() and (unprotected.data / "nicolas-lives").exists()
    finally:
        for process in survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


# --- the command ------------------------------------------------------------------------------------------------------


def few(monkeypatch, tmp_path, **wanted):
    """A class of a few."""

    def expected(assignment=ASSIGNMENT):
        known = EXPECTED[assignment]
        return {name: {**known[name], **more} for name, more in wanted.items() if name in known}

    monkeypatch.setattr(demo, "expected", expected)
    monkeypatch.setattr(demo, "DATA", tmp_path / "class")
    monkeypatch.setenv("COURSE_DATA", "")


def test_the_demonstration_says_where_feedback_lies_and_what_differs(tmp_path, monkeypatch, capsys, bubblewrap):
    few(monkeypatch, tmp_path, ada={}, kurt={"points": 3})
    assert demo.main() == 1
    said = capsys.readouterr().out
    first, second = demo.ASSIGNMENTS
    assert said.startswith(f"A demonstration class hands in {first} (1 student) and {second} (2 students);")
    assert "kurt should get 3" in said and "ada should" not in said
    for assignment in (first, second):
        page = tmp_path / "class" / "feedback" / "ada" / assignment / f"{assignment}.html"
        assert page.exists() and str(page).replace("/ada/", "/STUDENT/") in said


def test_where_there_is_no_sandbox_only_the_honest_are_graded(tmp_path, monkeypatch, capsys):
    from autograder import box

    few(monkeypatch, tmp_path, ada={}, johann={}, gerolamo={})
    monkeypatch.setattr(box, "available", lambda: "bubblewrap: not found. Install it.")
    assert demo.main() == 0
    said = capsys.readouterr().out
    assert "bubblewrap: not found. Install it.\nSo the 3 hostile submissions are left out" in said
    assert len(re.findall(r"^ada +(?:16|20)", said, re.MULTILINE)) == 2 and "johann" not in said


# --- how a student is written -----------------------------------------------------------------------------------------


TYPED = '''"""Who."""

from .ada import project_qkv


# %%
x = 1


# %%
def dot_product_variance(q, k):
    return 0


# %% [markdown]
# after


# %% place="attention_backward"
def backward(q, k, v, d_out):
    return 0
'''


def test_what_is_typed_stands_in_its_cells():
    made = demo.completed(cohort.released(ASSIGNMENT), TYPED)
    sources = [cell["source"] for cell in made["cells"]]
    ada = demo.completed(cohort.released(ASSIGNMENT), (demo.STUDENTS / ASSIGNMENT / "ada.py").read_text("utf-8"))
    assert sources[1].startswith("import math") and sources[2] == "x = 1"
    place = sources.index("def dot_product_variance(q, k):\n    return 0")
    assert made["cells"][place + 1]["cell_type"] == "markdown" and sources[place + 1] == "after"
    assert [cell["source"][:12] for cell in made["cells"] if cell["id"] == "attention_backward"] == ["def backward"]
    assert [s for s in sources if s.startswith("def project_qkv")] == [
        c["source"] for c in ada["cells"] if c["id"] == "project_qkv"
    ]


def test_hostile_students_are_told_where_the_class_lies(tmp_path):
    demo.hand_in(tmp_path, ["daniel"])
    written = (tmp_path / "submitted" / "daniel" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text("utf-8")
    assert str(tmp_path) in written and demo.CLASS not in written
