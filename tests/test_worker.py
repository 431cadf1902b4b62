"""The worker: it runs cells and answers the judge; whatever its code does, the judge gets a Seen and a reason."""

import contextlib
import sys
import time

import pytest
import torch

from autograder import boxed, demo, judge, worker
from autograder.box import Box, BoxFailed
from autograder.boxed import Boxed, Worker
from autograder.observe import Look


@pytest.fixture(scope="module")
def shared():
    """A worker for tests that leave it as it was."""
    with contextlib.closing(Box()) as box, Worker(box) as made:
        yield made


@pytest.fixture
def own(box):
    """A worker to be ruined."""
    with Worker(box) as made:
        yield made


def test_cells_run_one_after_another(shared):
    assert shared.run("x = 20\nprint('x is', x)")[:2] == ("x is 20\n", None)
    assert shared.run("x + 1")[:2] == ("21\n", None)
    assert shared.run("%matplotlib inline\nx = None\nx")[:2] == ("", None)


def test_an_exception_costs_its_cell(shared):
    text, error, _ = shared.run("print('before')\n1 / 0")
    assert text.startswith("before\n") and "ZeroDivisionError: division by zero" in text
    assert error == ("ZeroDivisionError", "division by zero")
    assert shared.run("def broken(:\n    pass")[1][0] == "SyntaxError"
    assert shared.run("import sys; sys.exit('enough')")[1][0] == "SystemExit"
    assert shared.run("input()")[1][0] == "EOFError"
    assert shared.run("'still here'")[:2] == ("'still here'\n", None)


def test_text_is_cut_and_harmless(shared):
    text, _, _ = shared.run("for i in range(10**6): print('line', i)")
    assert len(text) < worker.TEXT + 100 and "left out" in text
    assert shared.run("print('\\x1b[31mred\\x1b[0m', '\\x07', '\\ud800', '√D')")[0] == "red  ? √D\n"


def test_a_cell_that_takes_too_long_is_stopped_and_the_next_one_runs(shared):
    start = time.monotonic()
    assert shared.run("while True: pass", seconds=0.3)[1][0] == "OutOfTime"
    shared.run("while True:\n    try:\n        while True: pass\n    except BaseException: pass", seconds=0.3)
    assert time.monotonic() - start < 5 and shared.died is None
    assert shared.run("1")[:2] == ("1\n", None)


def test_source_can_be_read(shared):
    assert (
        shared.run("def f():\n    return 7\nimport inspect\nprint(inspect.getsource(f))")[0]
        == "def f():\n    return 7\n\n"
    )


def test_a_triton_kernel_runs_in_the_interpreter(shared):
    pytest.importorskip("triton")
    cell = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def doubled(x):
    y = torch.empty_like(x)
    double[(1,)](x, y, x.numel(), BLOCK=16)
    return y
"""
    assert shared.run(cell, seconds=60)[1] is None
    seen = shared.observe("doubled", {"x": torch.arange(5.0)}, Look(seconds=30, launches=True))
    assert (seen.outputs[0].tolist(), seen.launches) == ([0, 2, 4, 6, 8], 1)


def test_nothing_of_the_course_is_there_but_a_stub(shared):
    assert shared.run("from autograder import check\ncheck('ch02/project_qkv', len)")[0] == (
        "ch02/project_qkv: the grader will answer.\n"
    )
    for line in (
        "import autograder.judging",
        "from autograder import judge",
        "import autograder.exercises",
        "import tests",
    ):
        assert shared.run(line)[1][0] in ("ModuleNotFoundError", "ImportError"), line


def test_the_environment_holds_no_secret(monkeypatch):
    monkeypatch.setenv("LMS_TOKEN", "s3cret")
    monkeypatch.setenv("COURSE_DATA", "/tmp/elsewhere")
    with contextlib.closing(Box()) as box, Worker(box) as fresh:
        text = fresh.run("import os\nprint(dict(os.environ), os.getcwd(), os.path.expanduser('~'), sep='\\n')")[0]
    variables, folder, home = text.splitlines()
    assert "s3cret" not in variables and "elsewhere" not in variables and folder == home == "/tmp/work"


def test_pictures_are_taken_and_other_kinds_are_not(shared):
    text, error, pictures = shared.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")
    assert (text, error, len(pictures)) == ("", None, 1) and pictures[0].startswith(b"\x89PNG")
    html = "from IPython.display import HTML, display\ndisplay(HTML('<script>alert(1)</script>'))"
    assert shared.run(html) == ("<IPython.core.display.HTML object>\n", None, [])
    flood = "for i in range(99): display({'image/png': b'x'}, raw=True)"
    assert len(shared.run(flood)[2]) == boxed.PICTURES


def test_standard_streams_are_not_the_wire(shared):
    shared.run("import os\nos.write(1, b'junk' * 9)\nos.write(2, b'junk')\nprint(os.read(0, 9))")
    assert shared.run("1")[0] == "1\n" and shared.died is None


def test_it_is_observed_as_in_the_notebook(shared):
    shared.run(
        "import torch\ndef wrong(x): raise ValueError('no')\n"
        "def double(x):\n    print('noise')\n    return 2 * x, x.sum()"
    )
    seen = shared.observe("double", {"x": torch.ones(2, dtype=torch.bfloat16)}, Look())
    assert [t.tolist() for t in seen.outputs] == [[2, 2], 2] and seen.kinds == ("bfloat16", "bfloat16")
    assert shared.observe("double", {"x": torch.ones(2)}, Look(gradient=("x",))).outputs[0].shape == (2,)
    assert shared.observe("wrong", {"x": 1}, Look()).error == ("ValueError", "no")
    assert shared.observe("absent", {"x": 1}, Look()).error == ("NameError", "`absent` is not defined in the notebook")


def test_a_planted_function_runs_here_and_a_callback_there(shared):
    shared.run("def probe(f):\n    return f(lambda x: x + 1) + f(lambda x: 2 * x)")
    seen = shared.observe("probe", {"f": lambda callback: callback(torch.tensor(10.0)) * 100}, Look())
    assert seen.outputs[0].item() == 3100
    shared.run(
        "def fails(f):\n    try:\n        f()\n    except KeyError as problem:\n        return len(str(problem))"
    )
    assert shared.observe("fails", {"f": lambda: {}["key"]}, Look()).outputs[0].item() > 0


def test_a_driver_uses_a_class_and_helpers_are_lent(shared):
    shared.run(
        "class Sum:\n    def __init__(self): self.total = 0\n    def add(self, x): self.total += x; return self.total"
    )
    drive = "def drive(answer, x):\n    made = answer()\n    return [made.add(x) for _ in range(3)]"
    assert [t.item() for t in shared.observe("Sum", {"x": 2.0}, Look(drive=drive)).outputs] == [2, 4, 6]
    shared.run("def helper(x): return 0 * x\ndef uses(x): return helper(x) + 1")
    assert shared.observe("uses", {"x": 1.0}, Look(), {"helper": lambda x: 41 * x}).outputs[0].item() == 42
    assert shared.observe("uses", {"x": 1.0}, Look()).outputs[0].item() == 1


def test_an_answer_that_never_ends_is_late_and_the_worker_lives(shared):
    shared.run("def loop(x):\n    while True: pass\ndef calls(f):\n    while True: f(1)")
    assert shared.observe("loop", {"x": 1}, Look(seconds=0.3)).late
    assert shared.observe("calls", {"f": lambda x: torch.ones(99)}, Look(seconds=0.3)).error[0] in (
        "OutOfTime",
        "RecursionError",
    )
    assert shared.run("1")[:2] == ("1\n", None)


def test_an_answer_too_large_to_be_looked_at_is_an_error(shared):
    shared.run("def huge(x): return [torch.zeros(1 << 20, dtype=torch.int8)] * 3")
    seen = shared.observe("huge", {"x": 1}, Look())
    assert seen.error == ("", "returned 3145728 elements, far too many")
    assert shared.run("1")[:2] == ("1\n", None)


FORGE = """
import sys
class Forged:
    def __init__(self):
        self.outputs, self.error, self.after = ["no tuple"], None, {}
        self.largest = self.kept = self.launches = 0
        self.late = False

def forge(account):
    frame = sys._getframe()
    while "Notebook" not in frame.f_globals:
        frame = frame.f_back
    frame.f_globals["act"] = account
    raise SystemExit
"""
DEADLY = {
    "exits": ("import os\ndef f(x): os._exit(3)", "exit status 3"),
    "is killed": ("import os\ndef f(x): os.kill(os.getpid(), 9)", "SIGKILL"),
    "crashes": ("import ctypes\ndef f(x): ctypes.string_at(0)", "SIGSEGV"),
    "writes junk to every descriptor": (
        "import os, contextlib\ndef f(x):\n    for n in range(3, 30):\n"
        "        with contextlib.suppress(OSError): os.write(n, b'\\xff' * 99)",
        "it sent a header",
    ),
    "closes every descriptor": ("import os\ndef f(x): os.closerange(3, 30)", "ended"),
    "forges an account": (FORGE + "def f(x): forge(lambda *a: type('Raw', (), {})())", "what no worker sends"),
    "forges an output": (FORGE + "def f(x): forge(lambda *a: Forged())", "what no worker sends"),
}


@pytest.mark.parametrize(("cell", "reason"), DEADLY.values(), ids=DEADLY)
def test_a_lost_worker_gives_a_reason_from_then_on(own, cell, reason):
    assert own.run(cell)[1] is None
    own.observe("f", {"x": torch.ones(1)}, Look(seconds=2))
    for seen in (own.observe("f", {"x": torch.ones(1)}, Look(seconds=2)), own.observe("f", {"x": 1}, Look())):
        assert reason in seen.error[1] and not seen.outputs
    assert own.run("1")[1] == ("Stopped", own.died)


def test_what_cannot_be_interrupted_is_killed(own, monkeypatch):
    monkeypatch.setattr(boxed, "GRACE_SECONDS", 0.3)
    own.run("import signal, time\ndef f(x):\n    signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: pass")
    start = time.monotonic()
    seen = own.observe("f", {"x": 1}, Look(seconds=0.3))
    assert seen.late and "more than 0.3 s" in seen.error[1] and time.monotonic() - start < 5
    assert own.observe("f", {"x": 1}, Look()).late


def test_a_submission_has_so_much_time_in_all(box):
    with Worker(box, total_seconds=0.5) as short:
        assert short.run("import time; time.sleep(0.4)", seconds=9)[1] is None
        assert "0.5 s in all" in short.run("time.sleep(9)", seconds=9)[1][1]


def test_a_box_that_does_not_start_is_the_machines_fault(monkeypatch):
    monkeypatch.setattr("autograder.box.START", "raise SystemExit('no torch here')")
    with contextlib.closing(Box()) as broken, pytest.raises(BoxFailed, match="no torch here"):
        Worker(broken)


def test_without_ipython_cells_run_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(worker, "shell", lambda notebook: None)
    plain = worker.Notebook(str(tmp_path / "cells"))
    assert plain.run("x = 2\nx + 1", 5) == {"text": "3\n", "error": None, "pictures": []}
    assert plain.run("x = 2; None", 5)["text"] == ""
    assert plain.run("x / 0", 5)["error"] == ("ZeroDivisionError", "division by zero")
    assert plain.run("def (", 5)["error"][0] == "SyntaxError"
    assert plain.run("def f(): return 1\nimport inspect\ninspect.getsource(f)", 5)["text"] == "'def f(): return 1\\n'\n"
    assert plain.run("while True: pass", 0.2)["error"][0] == "OutOfTime"


@pytest.mark.parametrize("student", ["ada", "emmy", "alan", "lise"])
def test_boxed_or_in_the_notebook_the_report_is_the_same(own, student):
    source = (demo.STUDENTS / demo.ASSIGNMENT / f"{student}.py").read_text("utf-8")
    namespace = {}
    exec(source, namespace)
    own.run(source)
    for name in ("ch02/project_qkv", "ch02/scaled_dot_product_attention", "ch02/attention_backward"):
        function = name.split("/")[1]
        assert str(judge(name, Boxed(own, function))) == str(judge(name, namespace[function]))
