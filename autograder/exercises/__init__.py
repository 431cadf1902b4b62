"""Every exercise of the course, one file each: `chNN/NAME.py`.

`autograder.exercises()` lists them, `get(name)` imports one. A package that can be called, since the course's name for
the list is also the folder's.
"""

import difflib
import os
import pkgutil
import re
import sys
from functools import cache
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

from ..errors import BadInput
from ..exercise import complaints

# Kernels are judged in Triton's interpreter. Triton reads this when it is imported, which torch may do at any time.
os.environ.setdefault("TRITON_INTERPRET", "1")

HERE = Path(__file__).parent
PROBLEM_SETS = HERE.parent.parent / "solutions"
NO_TRITON = (
    "{} needs Triton, which is not installed here; it has builds for Linux (on Windows: WSL2): pip install triton"
)


class Course(ModuleType):
    def __call__(self):
        """Every Exercise, in course order, less those that need a package which this machine lacks."""
        return [get(name) for name in names() if not missing(name)]


sys.modules[__name__].__class__ = Course


def get(name):
    """The Exercise called `name`, as "ch02/scaled_dot_product_attention"; BadInput when there is none."""
    if name not in names():
        near = difflib.get_close_matches(str(name), names(), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}."
        raise BadInput(f"name is {name!r}, which is no exercise; {hint}")
    if missing(name):
        raise BadInput(NO_TRITON.format(name))
    return imported(name)


@cache
def imported(name):
    exercise = getattr(import_module(f"{__name__}.{name.replace('/', '.')}"), name.partition("/")[2], None)
    where = f"autograder/exercises/{name}.py"
    if getattr(exercise, "name", None) != name:
        raise BadInput(f"{where}: the reference must be called as the file is, and its chapter as the folder")
    for complaint in complaints(exercise):
        raise BadInput(f"{where}: {complaint}")
    return exercise


@cache
def names():
    """By chapter; within it as in the problem sets, then by name."""
    chapters = sorted(HERE.glob("ch[0-9][0-9]"))
    found = [f"{chapter.name}/{module.name}" for chapter in chapters for module in pkgutil.iter_modules([chapter])]
    sources = "".join(path.read_text("utf8") for path in sorted(PROBLEM_SETS.glob("*.py")))
    asked = re.findall(r'^check\("([^"]+)"', sources, re.MULTILINE)
    return sorted(found, key=lambda name: (name[:4], asked.index(name) if name in asked else len(asked), name))


@cache
def missing(name):
    """Whether the exercise's file needs Triton (it says so by importing it) and the machine has none."""
    source = (HERE / f"{name}.py").read_text("utf8")
    return "\nimport triton" in source and util.find_spec("triton") is None
