"""The repository's own rules: formatted, pinned, licensed, and free of the machine it was written on."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = re.compile(r"(?<![\w.])[/]work/|\.\./shared\b")  # places that a clone does not have


def package(requirement: str) -> str:
    """A requirement's package name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {package(line): line.partition("==")[2] for line in lines}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def written_files() -> list[Path]:
    """Every file that is, or would be, in git."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of the repository's files")
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=" ".join)
def test_ruff_finds_nothing(command):
    ruff = [sys.executable, "-m", "ruff", *command, "--output-format=concise"]
    done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_constraint_is_one_exact_version():
    loose = [
        name for name, version in pins().items() if not re.fullmatch(r"[\w.]+", version)
    ]  # "+cpu" is one machine's
    assert loose == []


def test_every_dependency_is_pinned():
    wanted = project()["project"]["dependencies"] + project()["project"]["optional-dependencies"]["test"]
    assert [name for name in map(package, wanted) if name not in pins()] == []


def test_pre_commit_runs_the_pinned_ruff():
    versions = re.findall(r"ruff==([\w.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert len(versions) == 2
    assert set(versions) == {pins()["ruff"]}


@pytest.mark.parametrize(
    ("name", "words"), [("LICENSE", "MIT License"), ("LICENSE-TEXT", "creativecommons.org/licenses/by/4.0/legalcode")]
)
def test_licences(name, words):
    assert words in (ROOT / name).read_text()
    assert name in project()["project"]["license-files"]


def test_ci_runs_the_test_command_of_the_readme():
    assert "make test" in (ROOT / "README.md").read_text()
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert "make test" in lines and "set -euo pipefail" in lines  # so that a failure of it ends the script


def test_no_file_names_a_place_outside_the_clone():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in written_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if ELSEWHERE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("line", ["see /" + "work/main/x.py", "in .." + "/shared/facts", "(/" + "work/)"])
def test_such_a_place_would_be_found(line):
    assert ELSEWHERE.search(line)


@pytest.mark.parametrize("line", ["homework/ch02", "./work/", "shared/", "https://host.org/framework/"])
def test_other_places_would_not(line):
    assert not ELSEWHERE.search(line)
