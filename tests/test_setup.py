"""The two commands: what they say where Python is not as it should be, what they spare, how a long step is shown."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def make(tmp_path):
    """make in a folder that holds nothing but what the installation reads."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)

    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(["make", *arguments], cwd=tmp_path, capture_output=True, text=True, env=alone, timeout=60)

    return run


@pytest.fixture
def pretend_python(tmp_path):
    """A python3 that answers as one of another version, or without a module, would."""

    def write(version: str, refuses: str) -> str:
        script = tmp_path / "python-pretended"
        script.write_text(
            f'#!/bin/sh\n[ "$1" = -V ] && echo "Python {version}"\ncase "$2" in *{refuses}*) exit 1;; esac\n'
        )
        script.chmod(0o755)
        return str(script)

    return write


def test_help_lists_every_command(make):
    listed = make().stdout
    phony = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:"))
    for target in phony.split()[1:]:
        assert f"make {target} " in listed


@pytest.mark.parametrize("command", ["course", "test"])
def test_no_python(make, tmp_path, command):
    done = make(command, "PYTHON=no-such-python")
    assert done.returncode != 0
    assert done.stdout.startswith("There is no no-such-python here: install Python 3.11")
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("version", ["3.9.1", "3.14.0"])
def test_a_python_that_is_too_old_or_too_new(make, pretend_python, version):
    done = make("course", f"PYTHON={pretend_python(version, refuses='version_info')}")
    assert done.returncode != 0
    assert done.stdout.startswith("The course needs Python 3.11, 3.12 or 3.13, and ")
    assert f"is Python {version}:" in done.stdout


def test_a_python_without_venv(make, pretend_python):
    done = make("course", f"PYTHON={pretend_python('3.11.2', refuses='ensurepip')}")
    assert done.returncode != 0
    assert "sudo apt-get install python3-venv" in done.stdout


def test_clean_removes_what_was_built_and_leaves_the_class(make, tmp_path):
    kept = [tmp_path / "class/gradebook.db", tmp_path / "class/__pycache__/kept", tmp_path / ".venv/made"]
    gone = [tmp_path / "_build/html/index.html", tmp_path / "autograder/__pycache__/judge.pyc"]
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert make("clean").returncode == 0
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in gone)


def step(log: Path, code: str) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "tools/step.py", "Counting", log, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_a_step_keeps_what_was_printed_in_its_log(tmp_path):
    done = step(tmp_path / "new/log", "import sys; print('one'); print('two', file=sys.stderr)")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["Counting …", "  0:00  done"]
    assert sorted((tmp_path / "new/log").read_text().split()) == ["one", "two"]


def test_a_step_that_fails_shows_the_end_of_its_log(tmp_path):
    done = step(tmp_path / "log", "print(*range(100), sep='\\n'); raise SystemExit(3)")
    assert done.returncode == 3
    assert done.stdout.splitlines()[-2] == "99"
    assert (
        done.stdout.splitlines()[-1] == f"Counting failed after 0:00: above are the last lines of {tmp_path / 'log'}."
    )
    assert "59\n" not in done.stdout


def test_installing_does_not_follow_a_link_to_everything_in_a_submission(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "autograder").mkdir()
    (tmp_path / "autograder/__init__.py").touch()
    (tmp_path / "class/received/eve").mkdir(parents=True)
    (tmp_path / "class/received/eve/root").symlink_to("/")
    find = (
        "from setuptools.config.pyprojecttoml import read_configuration as read; print(read('pyproject.toml')['tool'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", find], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert "'packages': ['autograder']" in done.stdout, done.stderr
