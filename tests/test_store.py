"""What is unchanged is not run again; what was killed is not lost; who examines beside others costs only himself."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from autograder import cohort, several, store

ROOT = cohort.ROOT
ASSIGNMENT = "02_queries_keys_values"


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """Who was examined; and `asked.found`, what comes out."""

    made = Asked()
    made.found = {"outputs": {3: []}, "checks": [], "stopped": None, "lasting": True}
    monkeypatch.setattr("autograder.examine.examine", made)
    return made


class Asked(list):
    def __call__(self, notebook, student, secret, boxed):
        self.append(student)
        return self.found


def arguments(**changed):
    return {"notebook": notebook(), "student": "ada", "secret": b"s", "boxed": True, **changed}


def notebook():
    from autograder.demo import typed  # not at once: the processes of `several` read this file

    return typed.notebook("ada")


def test_a_result_is_made_once(data, asked):
    first, again = (store.examined(**arguments()) for _ in range(2))
    assert first == again == asked.found and list(asked) == ["ada"]
    [path] = (data / "results").rglob("*.json")
    assert path.stem == store.key(**arguments()) and path.parent.name == path.stem[:2]


def with_a_comment():
    made = notebook()
    made["cells"][7]["source"] += "\n# done"
    return made


def with_other_points():
    made = notebook()
    made["cells"][9]["metadata"]["nbgrader"]["points"] = 3
    return made


@pytest.mark.parametrize(
    "changed",
    [
        lambda: {"notebook": with_a_comment()},
        lambda: {"notebook": with_other_points()},
        lambda: {"student": "bob"},
        lambda: {"secret": b"t"},
        lambda: {"boxed": False},
    ],
)
def test_another_result_for_whatever_it_depends_on(changed):
    assert store.key(**arguments()) == store.key(**arguments()) != store.key(**arguments(**changed()))


def test_the_code_and_the_environment_belong_to_it(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "one.py").write_text("x = 1")
    monkeypatch.setattr(cohort, "ROOT", tmp_path)
    before = store.course.__wrapped__()
    (tmp_path / "kernels" / "one.py").write_text("x = 2")
    assert store.course.__wrapped__() != before
    assert [word.split()[0] for word in store.environment()[1:]] == ["ipython", "numpy", "torch", "triton"]


@pytest.mark.parametrize("spoilt", [b"", b"{", b"[]", b'{"outputs": 3}', b'{"outputs": {"a": []}}', b"\xff"])
def test_a_damaged_result_is_made_again(data, asked, spoilt):
    store.examined(**arguments())
    [path] = (data / "results").rglob("*.json")
    path.write_bytes(spoilt)
    assert store.examined(**arguments()) == asked.found and len(asked) == 2


def test_what_would_not_come_out_again_is_not_kept(data, asked):
    asked.found = {**asked.found, "lasting": False}
    store.examined(**arguments())
    assert not (data / "results").exists()


# --- several at the same time -----------------------------------------------------------------------------------------


def square(x):
    """x², after as many tenths of a second; below zero it kills its process, for "wait" it never ends."""
    if x == "wait":
        time.sleep(100)
    if x < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if x == 0:
        raise ZeroDivisionError("nothing to square")
    time.sleep(x / 10)
    return x * x


def test_results_come_as_they_end():
    tasks = ((name, (x,)) for name, x in [("slow", 9), ("fast", 1), ("none", 0)])
    found = dict(several.results(square, tasks, 2))
    assert set(found) == {"fast", "none", "slow"} and list(found)[-1] == "slow"
    assert found["slow"].result() == 81
    with pytest.raises(ZeroDivisionError):
        found["none"].result()


def test_a_process_that_is_killed_costs_its_own_task():
    found = dict(several.results(square, ((x, (x,)) for x in (1, -1, 2, 3, 4, 5)), 2))
    assert {x: future.result() for x, future in found.items() if x > 0} == {x: x * x for x in (1, 2, 3, 4, 5)}
    assert "terminated abruptly" in str(found[-1].exception())


def test_who_wants_no_more_waits_for_nobody():
    start = time.monotonic()
    results = several.results(square, ((x, (x,)) for x in (1, "wait", "wait")), 2)
    assert next(results)[0] == 1
    results.close()
    assert time.monotonic() - start < 60


# --- killed and interrupted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "jobs"), [("2", "1"), ("1", "2")])
def test_killed_at_any_moment_the_next_run_ends_the_same(rounds, jobs):
    """Marks, reasons, the gradebook and the originals; new submissions, and such as take the place of others."""
    soak = [sys.executable, "tools/soak.py", rounds, "--jobs", jobs, "--stub"]
    done = subprocess.run(soak, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "nothing was lost" in done.stdout, done.stdout + done.stderr


ENDLESS = """
import sys, time
from types import ModuleType

def examine(*_):
    print("examining", flush=True)
    time.sleep(100)

sys.modules["autograder.examine"] = ModuleType("autograder.examine")
sys.modules["autograder.examine"].examine = examine
if __name__ == "__main__":
    from autograder.__main__ import main
    sys.exit(main())
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_stops_all_and_says_so(tmp_path, bubblewrap, jobs):
    """As a terminal sends it: to the grader and to what it has started."""
    (tmp_path / "run.py").write_text(ENDLESS)
    for student in ("ada", "bob"):
        folder = tmp_path / "submitted" / student / ASSIGNMENT
        folder.mkdir(parents=True)
        (folder / f"{ASSIGNMENT}.ipynb").write_text(json.dumps(notebook()))
    command = [sys.executable, str(tmp_path / "run.py"), "grade", ASSIGNMENT, "--jobs", jobs]
    environment = {**os.environ, "COURSE_DATA": str(tmp_path), "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as grader:
        assert grader.stdout.readline() == "examining\n"
        os.killpg(grader.pid, signal.SIGINT)
        said = grader.stderr.read()
        assert grader.wait(30) == 130
    assert said.strip().splitlines()[-1] == "stopped; what was finished is kept" and "Traceback" not in said, said
