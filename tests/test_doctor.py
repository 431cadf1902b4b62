"""The doctor sees what is missing and says how to mend it, even where nothing is installed; so does every test run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import doctor

ROOT = Path(__file__).resolve().parent.parent
linux = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap exists on Linux only")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Makes the programs on PATH: programs(name="shell script") and nothing else is found there."""

    def make(**scripts: str):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return make


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=os.environ | environment, timeout=60
    )


def test_importing_it_imports_nothing_heavy():
    heavy = "{'torch', 'numpy', 'triton', 'nbgrader', 'rich'}"
    done = python(f"import sys, autograder.doctor; print({heavy} & set(sys.modules))")
    assert done.stdout.strip() == "set()", done.stdout + done.stderr


def test_without_torch_it_says_how_to_install():
    done = python("import sys; sys.modules['torch'] = None; from autograder import doctor; sys.exit(doctor.main())")
    assert done.returncode == 1
    assert "no   torch" in done.stdout
    assert "make course" in done.stdout
    assert done.stderr == ""


def test_a_broken_torch_is_a_shortfall(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open shared object file')")
    done = python("from autograder import doctor; print(doctor.torch())", PYTHONPATH=str(tmp_path))
    assert done.stdout.startswith("torch: libcudart.so.13: cannot open shared object file. Run `make course`")


def test_every_finding_is_printed_and_every_shortfall_ends_in_a_sentence(capsys):
    assert doctor.main() == 0
    printed = " ".join(capsys.readouterr().out.split())
    for finding in doctor.findings():
        assert f"{'no' if finding.mend else 'yes'} {finding.name} {finding.seen.split(',')[0]}" in printed
        assert finding.mend in printed
    assert all(finding.mend.endswith(".") for finding in doctor.shortfalls())


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    assert "PYTHON=python3.12" in doctor.python().mend


@pytest.mark.skipif(sys.platform == "darwin", reason="browsers are found outside PATH there")
def test_no_chromium(programs):
    programs()
    assert doctor.find_chromium() is None
    assert "apt-get install chromium" in doctor.chromium().mend


def test_a_chromium_that_does_not_start(programs):
    programs(chromium="echo 'libnss3.so: cannot open shared object file' >&2; exit 127")
    assert "libnss3.so" in doctor.chromium().seen
    assert doctor.chromium().mend


def test_a_chromium_that_starts(programs):
    programs(chromium="echo noise >&2; echo Chromium 1.2.3")
    assert (doctor.chromium().seen, doctor.chromium().mend) == ("Chromium 1.2.3", "")


@linux
def test_no_bubblewrap(programs):
    programs()
    assert "apt-get install bubblewrap" in doctor.bubblewrap().mend


@linux
def test_a_bubblewrap_that_may_not_make_a_sandbox(programs):
    programs(bwrap="echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    finding = doctor.bubblewrap()
    assert "setting up uid map: Permission denied" in finding.seen
    assert "AppArmor" in finding.mend


def test_data_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "file" / "class"))
    assert "COURSE_DATA" in doctor.disk().mend


def test_looking_at_the_disk_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "new" / "class"))
    assert not doctor.disk().mend
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run_of_tests(tmp_path):
    """Runs one passing test beside a copy of our conftest and what it imports."""

    def run(**environment: str) -> subprocess.CompletedProcess:
        folder = tmp_path / "suite"
        folder.mkdir()
        for name in ("conftest.py", "building.py"):
            shutil.copy(ROOT / "tests" / name, folder)
        (folder / "test_one.py").write_text("def test_chromium(chromium): ...\ndef test_nothing(): ...\n")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--rootdir", folder, folder],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env=os.environ | environment,
            timeout=120,
        )

    return run


@linux
def test_a_run_lists_what_is_missing_and_passes(programs, run_of_tests):
    programs()
    done = run_of_tests(CI="")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert "bubblewrap: not found. Install it: sudo apt-get install bubblewrap." in done.stdout


@linux
def test_in_ci_a_missing_browser_fails_the_run(programs, run_of_tests):
    programs(bwrap="echo bubblewrap 1.0")
    done = run_of_tests(CI="true")
    assert done.returncode == 1
    assert "sudo apt-get install chromium" in done.stdout
    assert "The run fails: CI=true, and Chromium must be there." in done.stdout


@linux
def test_in_ci_a_missing_gpu_does_not(programs, run_of_tests):
    programs(bwrap="echo bubblewrap 1.0", chromium="echo Chromium 1.2.3")
    done = run_of_tests(CI="true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
