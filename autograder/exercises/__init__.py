"""Every exercise of the course, one file each: `chNN/NAME.py`. `autograder.exercises()` lists them; `get(name)` imports one.

A package that can be called, because the course's name for the list is also the folder's.
"""

import difflib
import pkgutil
import sys
from functools import cache
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

from ..exercise import Exercise

HERE = Path(__file__).parent


class Course(ModuleType):
    def __call__(self):
        """Every Exercise, by chapter and name. What needs a package that this machine cannot have is left out."""
        return [get(name) for name in names() if not missing(name)]


sys.modules[__name__].__class__ = Course


@cache
def names():
    chapters = sorted(folder for folder in HERE.glob("ch[0-9][0-9]"))
    return [f"{chapter.name}/{module.name}" for chapter in chapters for module in pkgutil.iter_modules([chapter])]


def get(name):
    """The Exercise called `name`, as "ch02/scaled_dot_product_attention"; ValueError when there is none."""
    if name not in names():
        near = difflib.get_close_matches(str(name), names(), n=1, cutoff=0.5)
        raise ValueError(f"name is {name!r}, which is no exercise; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}."))
    if missing(name):
        raise ValueError(f"{name} needs Triton, which is not installed here; it has builds for Linux (on Windows: WSL2): pip install triton")
    import_module(f"{__name__}.{name.replace('/', '.')}")
    return Exercise.registry[name]


@cache
def missing(name):
    """Whether the exercise's file needs Triton (it says so by importing it) and the machine has none."""
    source = (HERE / f"{name}.py").read_text("utf8")
    return "\nimport triton" in source and util.find_spec("triton") is None
