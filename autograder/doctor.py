"""What this machine can do for the course, and the sentence that mends each thing it cannot.

Only the standard library is imported here, so that the question can be asked where nothing is installed yet.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import textwrap
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDENT = " " * 17
INSTALL = "Run `make course` once, and then Python from .venv: .venv/bin/python -m autograder doctor."


@dataclass(frozen=True)
class Finding:
    """One ability: what it is for, what was seen, and how to mend it (empty when there is nothing to mend)."""

    name: str
    purpose: str
    seen: str
    mend: str = ""
    required: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.seen}. {self.mend}" if self.mend else f"{self.name}: {self.seen}"


def python() -> Finding:
    version = platform.python_version()
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    mend = "" if supported else "Install Python 3.11, 3.12 or 3.13 and name it: make course PYTHON=python3.12."
    return Finding("Python", "everything", version, mend, required=True)


def torch() -> Finding:
    purpose = "exercises, judge and book"
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError and others besides ImportError
        return Finding("torch", purpose, _sentence(error), INSTALL, required=True)
    return Finding("torch", purpose, torch.__version__, required=True)


def triton() -> Finding:
    purpose = "the kernel chapters"
    if version := _version("triton"):
        return Finding("triton", purpose, version)
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
        return Finding("triton", purpose, "not installed", INSTALL)
    here = f"{platform.system()} on {platform.machine()}"
    mend = "Work on the kernel chapters on Linux (on Windows: in WSL); all other chapters work here."
    return Finding("triton", purpose, f"no wheels for {here}", mend)


def gpu() -> Finding:
    purpose = "speed, and the checks that only a GPU can decide"
    try:
        import torch
    except Exception:
        return Finding("CUDA GPU", purpose, "not looked for, since torch is missing", INSTALL)
    with warnings.catch_warnings(record=True) as caught:  # torch explains an old driver in a warning
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if available:
        return Finding("CUDA GPU", purpose, torch.cuda.get_device_name())
    if caught:
        return Finding(
            "CUDA GPU", purpose, _sentence(caught[0].message), "Install the NVIDIA driver that torch asks for."
        )
    if shutil.which("nvidia-smi") and torch.version.cuda is None:
        mend = "Reinstall torch from PyPI: .venv/bin/python -m pip install --force-reinstall -c constraints.txt torch."
        return Finding("CUDA GPU", purpose, f"torch {torch.__version__} is built without CUDA", mend)
    mend = "Use a machine with an NVIDIA GPU and its driver; without one those checks stay pending and the rest works."
    return Finding("CUDA GPU", purpose, "none", mend)


def chromium() -> Finding:
    purpose = "testing the built book in a browser"
    path = find_chromium()
    if path is None:
        mend = "Install it: sudo apt-get install chromium (Debian, Ubuntu), brew install --cask chromium (macOS)."
        return Finding("Chromium", purpose, "not found", mend)
    status, said = _run(path, "--version")
    if status != 0:
        return Finding("Chromium", purpose, f"{path} does not start: {said}", f"Mend or replace {path}.")
    return Finding("Chromium", purpose, said)


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    applications = [Path(f"/Applications/{name}.app/Contents/MacOS/{name}") for name in ("Chromium", "Google Chrome")]
    return next(filter(None, map(shutil.which, (*names, *map(str, applications)))), None)


def bubblewrap() -> Finding:
    purpose = "running students' code in a sandbox"
    if sys.platform != "linux":
        return Finding("bubblewrap", purpose, f"not made for {platform.system()}", "Grade submissions on Linux.")
    if shutil.which("bwrap") is None:
        return Finding("bubblewrap", purpose, "not found", "Install it: sudo apt-get install bubblewrap.")
    from .box import probe  # which asks here what to say when there is none

    status, said = _run(*probe())
    if status != 0:
        mend = (
            "It must be 0.8 or newer, and be allowed user namespaces with their capabilities: on Ubuntu 24.04 by an "
            "AppArmor profile `profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }`; in Docker start the "
            "container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined."
        )
        return Finding("bubblewrap", purpose, f"starts, but not as it has to ({said})", mend)
    return Finding("bubblewrap", purpose, _run("bwrap", "--version")[1])


def nbgrader() -> Finding:
    purpose = "releasing, collecting and grading problem sets"
    version = _version("nbgrader")
    return Finding("nbgrader", purpose, version or "not installed", "" if version else INSTALL)


def disk() -> Finding:
    """Can the class's data be written, or its folder be made?"""
    purpose = "notebooks, the built book and the class's data"
    folder = Path(os.environ.get("COURSE_DATA") or ROOT / "class").absolute()
    existing = next(place for place in (folder, *folder.parents) if os.path.exists(place))
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        mend = f"Make {existing} a folder that you may write to, or name another one in COURSE_DATA."
        return Finding("disk", purpose, f"cannot write to {existing} ({error.strerror})", mend, required=True)
    free = shutil.disk_usage(existing).free / 1e9
    return Finding("disk", purpose, f"{folder} is writable, {free:.0f} GB free", required=True)


PROBES = (python, torch, triton, gpu, chromium, bubblewrap, nbgrader, disk)


def findings() -> list[Finding]:
    return [probe() for probe in PROBES]


def shortfalls() -> list[Finding]:
    """What this machine cannot do; `.mend` of each says what to do about it."""
    return [finding for finding in findings() if finding.mend]


def main() -> int:
    """Print what this machine can do; 1 when the course cannot run on it at all."""
    found = findings()
    for finding in found:
        print(f"{'no ' if finding.mend else 'yes'}  {finding.name:<11} {finding.seen}")
        if finding.mend:
            print(
                textwrap.fill(
                    f"For {finding.purpose}. {finding.mend}", 100, initial_indent=INDENT, subsequent_indent=INDENT
                )
            )
    return int(any(finding.mend and finding.required for finding in found))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _run(*command: str) -> tuple[int, str]:
    """Exit status and last line of output of a short command."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, _sentence(error)
    said = done.stdout.strip() or done.stderr.strip() or f"exit status {done.returncode}"
    return done.returncode, said.splitlines()[-1].strip()


def _sentence(error: object) -> str:
    """The first line of a message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
