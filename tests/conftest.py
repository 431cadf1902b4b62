"""What this machine cannot do never goes by in silence.

A test that needs Chromium, bubblewrap or a GPU asks for the fixture of that name and is skipped where it is missing.
The end of every run lists what is missing, with the sentence that mends it; under CI=true a missing Chromium or
bubblewrap fails the run.
"""

import contextlib
import os
from functools import cache

import pytest
from building import build
from filelock import FileLock

from autograder import cohort, doctor
from autograder.box import Box

LONG = ("test_attacks.py", "test_selftest.py", "test_demo.py")
REQUIRED_IN_CI = ("Chromium", "bubblewrap")

shortfalls = cache(doctor.shortfalls)


def lacking_in_ci() -> list[str]:
    if os.environ.get("CI") != "true":
        return []
    return [finding.name for finding in shortfalls() if finding.name in REQUIRED_IN_CI]


def require(probe):
    finding = probe()
    if finding.mend:
        pytest.skip(str(finding))


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium that starts."""
    require(doctor.chromium)
    return doctor.find_chromium()


@pytest.fixture(scope="session")
def bubblewrap():
    """Sandboxes can be made."""
    require(doctor.bubblewrap)


@pytest.fixture(scope="session")
def book(tmp_path_factory, worker_id):
    """The folder of the book's pages, built once for all the processes of a run.

    Slow (30 s on two cores): Sphinx starts, and every cell of every page is run.
    """
    ours = tmp_path_factory.getbasetemp()
    out = (ours if worker_id == "master" else ours.parent) / "book"
    log, pages = out / "log", out / "_build/html/book"
    with FileLock(f"{out}.lock"):
        if not log.exists():
            out.mkdir(exist_ok=True)
            done = build(cohort.ROOT, out)
            log.write_text(f"{done.returncode}\n{done.stdout}", "utf8")
    said = log.read_text("utf8")
    assert said.startswith("0\n"), said
    return pages


@pytest.fixture
def figures(monkeypatch):
    """book/figures.py."""
    monkeypatch.syspath_prepend(cohort.ROOT / "book")
    import figures

    return figures


@pytest.fixture(scope="session")
def gpu():
    """torch sees a CUDA GPU."""
    require(doctor.gpu)


def pytest_collection_modifyitems(items):
    """The longest files first: with a file to a process, they would else end alone."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == 0 and lacking_in_ci():
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    if not shortfalls():
        return
    terminalreporter.section("what this machine cannot do")
    for finding in shortfalls():
        terminalreporter.line(str(finding))
    if lacking := lacking_in_ci():
        terminalreporter.line(f"The run fails: CI=true, and {' and '.join(lacking)} must be there.", red=True)


@pytest.fixture(scope="session")
def box():
    """The sandbox; one worker at a time."""
    with contextlib.closing(Box()) as made:
        yield made
