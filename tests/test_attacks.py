"""The promise to whoever grades: a hostile submission gets the mark it deserves, and changes nothing else.

All attackers are one class, each followed by an honest student. It is graded once by `python -m autograder grade`, and
a part of it by nbgrader's own commands; then each attack is looked at alone, and the machine as a whole.
"""

import importlib
import json
import pkgutil
import random
import re
import tempfile
import time
from html.parser import HTMLParser
from pathlib import Path

import attacks
import pytest
import torch
from attacks import attack, classroom, wire
from attacks.attack import ALL, ASSIGNMENT, FILE
from attacks.classroom import SECRET, TOKEN, Classroom, Listeners

from autograder import judge, policy
from autograder.__main__ import main
from autograder.box import available
from autograder.boxed import Boxed, Worker
from autograder.exercises import get

for family in pkgutil.iter_modules(attacks.__path__):
    importlib.import_module(f"attacks.{family.name}")
ATTACKS = sorted(attack.attacks, key=lambda one: one.name)
STOCK = [one for one in ATTACKS if one.stock]
PAGES = [one for one in ATTACKS if one.name.startswith("feedback_")]
GRADER = 1200 << 20  # bytes that a process of the grader's own may take
MACHINE = {"Shmem": 3 << 30, "PageTables": 5 << 30}  # bytes that two sandboxes of 2 GB may make the kernel keep
each = pytest.mark.parametrize("one", ATTACKS, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def begun():
    """What must be as it was before, when all is over."""
    if reason := available():
        pytest.fail(f"Attacks are run in a sandbox, and there is none here: {reason}", pytrace=False)
    assert main(["notebooks"]) == 0
    with Listeners() as listeners:
        yield {"listeners": listeners, "machine": classroom.machine()}


@pytest.fixture(scope="module")
def folder():
    """Not below /tmp: every submission has one of its own, and what it writes there would look like ours."""
    with tempfile.TemporaryDirectory(prefix="attention-attacks-", dir="/var/tmp", ignore_cleanup_errors=True) as made:
        yield Path(made)


@pytest.fixture(scope="module")
def room(begun, folder):
    """The whole class, graded."""
    made = Classroom(folder / "class", ATTACKS)
    made.hand_in(begun["listeners"].port)
    made.handed_in = made.originals(made.folder)
    made.done = made.run("autograder", "grade", ASSIGNMENT, "--jobs", "2")
    made.marks = made.rows()
    made.pages = made.run("nbgrader", "generate_feedback", ASSIGNMENT, "--student=feedback_*")
    return made


@pytest.fixture(scope="module")
def stock(begun, folder):
    """A part of it, graded by nbgrader's own command."""
    made = Classroom(folder / "stock", STOCK)
    made.hand_in(begun["listeners"].port)
    made.done = made.run("nbgrader", "autograde", ASSIGNMENT)
    made.marks = made.rows()
    return made


@pytest.fixture(scope="module")
def private():
    """What must be in nothing that a student or a reader sees."""
    lines = classroom.solution_lines()
    assert len(lines) > 3
    return [TOKEN.encode(), SECRET, SECRET.hex().encode(), *(json.dumps(line)[1:-1].encode() for line in lines)]


# --- each attack ------------------------------------------------------------------------------------------------------


@each
def test_it_gets_what_it_deserves(room, one):
    deserved(room, one)


@each
def test_the_next_student_is_untouched(room, one):
    [row] = room.marks[room.next[one.name]]
    assert (row["points"], row["pending_points"], row["verdict"], row["reason"]) == (ALL, 0, "graded", "all right")


@each
def test_it_reaches_nothing(room, private, one):
    unreached(room, private, one)


@pytest.mark.parametrize("one", STOCK, ids=lambda one: one.name)
def test_nbgraders_own_command_treats_it_alike(stock, private, one):
    if one.name in stock.marks:  # nbgrader passes over what is no folder with a notebook
        deserved(stock, one)
        unreached(stock, private, one)
    [row] = stock.marks[stock.next[one.name]]
    assert (row["points"], row["verdict"]) == (ALL, "graded")


def deserved(room, one):
    [row] = room.marks[one.name]
    assert row["max_points"] == ALL and row["verdict"] in one.verdicts and row["reason"], row
    assert 0 <= row["points"] <= ALL if one.gets is None else row["points"] == one.gets, row
    assert one.reason in row["reason"]


def unreached(room, private, one):
    shown = json.dumps(room.shown(one.name), ensure_ascii=False)
    assert not re.findall(r"(?:^|\\n|[^f\"])BREACH: [^{\\]*", shown), "something succeeded that should have failed"
    assert not re.search(r"NameError: name '(?!project_qkv)", shown) or one.gets is None, "the attack itself is broken"
    for text in room.written(one.name):
        assert not [secret for secret in private if secret in text]


# --- what a reader sees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", PAGES, ids=lambda one: one.name)
def test_a_feedback_page_shows_and_does_nothing(room, one):
    page, plain = (seen(room, student) for student in (one.name, room.next[PAGES[0].name]))
    assert page.runs == plain.runs and not page.handlers
    assert page.addresses <= plain.addresses
    assert any(",safe" in address for address in page.addresses)  # MathJax, which then refuses links that run scripts


RUNS = {"script", "iframe", "object", "embed", "form", "base", "meta", "link", "style", "frame", "applet", "portal"}


def seen(room, student):
    parser = Page()
    parser.feed((room.data / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8"))
    return parser


class Page(HTMLParser):
    """What a browser would run or fetch of a page."""

    def __init__(self):
        super().__init__()
        self.runs, self.handlers, self.addresses = [], [], set()

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        if tag in RUNS:
            self.runs.append((tag, tuple(attributes)))
        self.handlers += [name for name in known if name.startswith("on") or name == "srcdoc"]
        for name in ("src", "href", "action", "data", "poster", "formaction", "xlink:href"):
            address = (known.get(name) or "").strip().lower()
            if address and not address.startswith(("#", "data:image/png;base64,", "../")):
                self.addresses.add(address)


def test_pictures_are_pixels_only(room):
    """Written anew: nothing behind the end, no text, no more than a page can show."""
    found = [png for one in ATTACKS for png in classroom.pictures(room.shown(one.name))]
    assert len(found) > 1
    for png in found:
        assert png.endswith(b"IEND\xaeB`\x82") and not re.search(rb"script|tEXt|zTXt|iTXt", png)
        width, height = (int.from_bytes(png[place : place + 4], "big") for place in (16, 20))
        assert 0 < width * height <= 4_000_000 and len(png) < 20 << 20


def test_a_plot_is_shown(room):
    assert len(classroom.pictures(room.shown("feedback_a_plot"))) == 1


def test_outputs_are_text_and_pictures_of_bounded_size(room):
    for one in ATTACKS:
        path = room.data / "autograded" / one.name / ASSIGNMENT / FILE
        assert not path.exists() or path.stat().st_size < 8 << 20
        for output in room.shown(one.name):
            assert set(output.get("data", {})) <= {"text/plain", "text/html", "image/png"}
            assert "text/html" not in output.get("data", {}) or output["output_type"] == "execute_result"


def test_nothing_that_is_shown_moves_a_terminal(room):
    moves = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
    texts = [room.done.stdout, *(row["reason"] for rows in room.marks.values() for row in rows)]
    texts += ["".join(output.get("text", "")) for one in ATTACKS for output in room.shown(one.name)]
    assert not [text for text in texts if moves.search(text)]


# --- the class, and the machine ---------------------------------------------------------------------------------------


def test_the_batch_ends_well(room, stock):
    """Exit status 0, progress and the table, one row for everybody on the roster or in the folder."""
    assert room.done.returncode == 0 and "Traceback" not in room.done.stderr, room.done.stderr[-3000:]
    assert set(room.marks) == room.students | {"zoe"} and all(len(rows) == 1 for rows in room.marks.values())
    assert room.marks["zoe"][0]["verdict"] == "missing"
    assert not {row["verdict"] for rows in room.marks.values() for row in rows} & {"failed", "ungraded"}
    assert stock.done.returncode == 0, stock.done.stderr[-3000:]
    assert room.pages.returncode == 0, room.pages.stderr[-3000:]


def test_the_gradebook_holds_marks_and_nothing_else(room, stock):
    assert not [*room.tampered(), *stock.tampered()]
    assert (room.data / "secret").read_bytes() == SECRET


def test_what_was_handed_in_is_kept_as_it_came(room):
    kept = room.originals(lambda student: room.data / "received" / student / ASSIGNMENT / "001")
    assert [student for student in kept if kept[student] != room.handed_in[student]] == []


def test_the_machine_is_as_it_was(room, stock, begun):
    before, now = begun["machine"], classroom.machine()
    assert {place for place in before | now if before.get(place) != now.get(place)} == set()
    assert classroom.left() == []
    assert [*room.scratch.iterdir(), *stock.scratch.iterdir()] == []


def test_no_process_is_left(room, stock):
    assert [done.orphans for done in (room.done, room.pages, stock.done)] == [[], [], []]
    assert classroom.marked() == []


def test_nobody_was_called(room, stock, begun):
    assert begun["listeners"].called() == []


def test_memory_is_bounded(room, stock):
    for done in (room.done, stock.done):
        assert done.memory.largest < GRADER, f"{done.memory.largest >> 20} MB in one process"
        assert not {name: most for name, most in done.memory.machine.items() if most > MACHINE[name]}


# --- against a single worker, where a class would be too coarse -------------------------------------------------------


@pytest.fixture
def worker(begun, box):
    with Worker(box) as made:
        yield made


def test_what_hears_no_alarm_is_killed(worker):
    began = time.monotonic()
    blocked = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\nwhile True: pass"
    _, error, _ = worker.run(blocked, seconds=0.2)
    assert error[0] == "Stopped" and worker.died and time.monotonic() - began < 10


def test_a_frame_that_comes_drop_by_drop_does_not_prolong_the_time(worker):
    began = time.monotonic()
    worker.run(f"{wire.TOOLS}\nimport time\nwhile True:\n    say(bytes(1))\n    time.sleep(0.1)", seconds=0.2)
    assert worker.died and time.monotonic() - began < 10


def test_the_next_worker_finds_nothing_of_the_last(begun, box):
    """One after the other in the same sandbox; in the class they may meet in two."""
    places = {"REPO": "", "DATA": "", "HOME": "", "MARK": classroom.MARK, "PORT": 0}
    leaves, looks = (one.source for one in ATTACKS if one.name.startswith("files_leaves"))
    for source in (leaves, looks, looks):
        with Worker(box) as worker:
            text, error, _ = worker.run(f"{attack.preface(places)}\n{source}")
            assert error is None, text


def test_a_lent_function_is_not_made_to_fill_the_graders_memory(worker):
    """A right helper that answers for a wrong one runs in the grader, on arguments that the answer chooses."""
    worker.run("""
import torch
def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError
def multi_head_attention(*inputs):
    q, k = torch.zeros(20, 1, 512, 1), torch.zeros(1, 20, 512, 1)
    return scaled_dot_product_attention(q, k, k)[0][0, 0]
""")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    judge("ch03/multi_head_attention", Boxed(worker, "multi_head_attention"), hidden=True, seed=1)
    assert classroom.peak("self") < GRADER


def test_a_forged_sight_waits_for_a_person(worker):
    """No Triton kernel runs, the count of kernels is raised, and no word of it stands in the cell."""
    code = "import gc\nfor x in gc.get_objects():\n    if type(x).__name__ == 'Launches': x.count += 1"
    source = "import torch\n\ndef row_softmax(x):\n"
    source += f"    exec(bytes.fromhex({code.encode().hex()!r}))\n    return torch.softmax(x, -1)\n"
    assert worker.run(source)[1] is None
    report = judge("ch10/row_softmax", Boxed(worker, "row_softmax"), hidden=True, seed=1)
    report, _ = policy.withheld(report, policy.reaches([{"cell_type": "code", "source": source}]))
    assert report.properties["kernel"][2] != "earned"


REPLIES = 400


def test_whatever_a_worker_answers_the_judge_makes_a_report():
    """Answers of odd kinds, shapes, dtypes and values; accounts in which anything may stand anywhere."""
    names = [f"ch02/{name}" for name in attack.POINTS] + ["ch03/multi_head_attention", "ch10/row_softmax"]
    for number in range(REPLIES):
        chance = random.Random(number)
        name = names[number % len(names)]
        report = judge(name, Boxed(Liar(chance), get(name).function), hidden=True, seed=number % 5)
        assert report.html() and (report.points == 0 or name.startswith("ch03"))  # there an error may be right


class Liar(Worker):
    """A worker that answers by chance."""

    def __init__(self, chance):
        self.chance, self.died, self.late = chance, None, False

    def kill(self, reason, ended=False):
        self.died = self.died or reason

    def ask(self, function, name, inputs, look, given, seconds):
        chance = self.chance
        error = chance.choice([None] * 6 + [("", "x"), ("ValueError", "<b>"), ("A" * 100, "y" * 3000)])
        outputs = () if error else tuple(self.value(inputs) for _ in range(chance.choice([0, 1, 1, 2, 2, 3, 3, 4, 64])))
        after = chance.choice([{}, dict(inputs), {key: self.value(inputs) for key in inputs}])
        reply = {"outputs": outputs, "error": error, "after": after, "late": chance.random() < 0.05}
        reply |= {count: chance.choice([0, 1, 2**62]) for count in ("largest", "kept", "launches")}
        if chance.random() < 0.05:
            reply[chance.choice(list(reply))] = chance.choice([None, "x", -1, [], (1, 2, 3), {}, True, 1.5, (None,)])
        return reply

    def value(self, inputs):
        chance = self.chance
        odd = [None, "x", 2**62, float("nan"), True, [], {}, {"a": torch.zeros(2)}, print]
        if chance.random() < 0.2:
            return chance.choice(odd)
        shape = list(chance.choice([x.shape for x in inputs.values() if torch.is_tensor(x)]))
        for _ in range(chance.choice([0, 0, 1, 2])):
            place = chance.randint(0, len(shape))
            shape[place : place + chance.randint(0, 1)] = [chance.choice([0, 1, 2, 7])] * chance.randint(0, 1)
        scale = chance.choice([0.0, 1.0, 1e-320, 1e308, float("inf"), float("nan")])
        dtype = chance.choice([torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32])
        made = torch.full(shape, 1.5, dtype=torch.float64) * scale
        return made.to(dtype) if dtype.is_floating_point else made.nan_to_num(0, 9, 0).clamp(0, 9).to(dtype)
