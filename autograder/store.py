"""Results of examined submissions, kept under a hash of all that they depend on: what is unchanged is not run again.

results/ab/abcdef….json is one result. Any file there may be removed; it is then made again when it is asked for.
"""

import hashlib
import json
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from . import cohort

COURSE = ("autograder", "kernels", "models")  # folders whose code a result depends on
PACKAGES = ("ipython", "numpy", "torch", "triton")

ahead = {}  # what other processes have examined and nobody has asked for yet: a key -> a finished future


def key(notebook: dict, student: str, secret: bytes, boxed: bool) -> str:
    """Equal when `examine` would do the same."""
    cells = [(cell["cell_type"], cell["source"], *graded(cell)) for cell in notebook["cells"]]
    parts = [course(), environment(), cells, student, secret.hex(), boxed]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def graded(cell):
    grader = cell["metadata"].get("nbgrader", {})
    return [grader.get(name) for name in ("grade", "solution", "points")]


@cache
def course():
    """A hash of the course's own code."""
    found = hashlib.sha256()
    for folder in COURSE:
        for path in sorted((cohort.ROOT / folder).rglob("*.py")):
            if path.is_relative_to(cohort.ROOT / "autograder" / "demo"):
                continue  # no result depends on it
            content = path.read_bytes()
            found.update(f"{path.relative_to(cohort.ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()


@cache
def environment():
    return [platform.python_version(), *(f"{name} {installed(name)}" for name in PACKAGES)]


def installed(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def examined(notebook: dict, student: str, secret: bytes, boxed: bool) -> dict:
    """What `examine` finds, or has found. A result in which a time limit had a part is not kept."""
    name = key(notebook, student, secret, boxed)
    if name in ahead:
        return ahead.pop(name).result()
    found = kept(name)
    if found is None:
        from .examine import examine  # with torch, which a process that only keeps marks does without

        found = examine(notebook, student, secret, boxed)
        if found["lasting"]:
            keep(name, found)
    return found


def place(name):
    return cohort.data() / "results" / name[:2] / f"{name}.json"


def kept(name):
    """The result of that key; None where there is none that can be read."""
    try:
        found = json.loads(place(name).read_text("utf-8"))
        return {**found, "outputs": {int(number): outputs for number, outputs in found["outputs"].items()}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def keep(name, found):
    place(name).parent.mkdir(parents=True, exist_ok=True)
    cohort.whole(place(name), json.dumps(found).encode())
