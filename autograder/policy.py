"""What cannot be proven from outside is left to a person, when a notebook reaches for what judges it.

The largest tensor made on the way, bytes kept and kernels started are seen inside the student's process, where code can
forge them. Nothing is concluded from the names below but this: points that rest on such a sight wait for a person.
"""

import ast
from dataclasses import replace

from .exercises import get

REACHES = {
    "GridExecutor", "JITFunction", "TorchDispatchMode", "__builtins__", "__closure__", "__code__", "__dict__",
    "__globals__", "__import__", "__subclasses__", "__torch_dispatch__", "_dispatch", "_getframe", "_python_dispatch",
    "builtins", "compile", "ctypes", "currentframe", "eval", "exec", "f_back", "f_globals", "f_locals", "gc",
    "get_objects", "get_referrers", "getattr", "globals", "importlib", "inspect", "marshal", "modules",
    "multiprocessing", "observe", "os", "pickle", "setattr", "setprofile", "settrace", "sys", "tb_frame", "threading",
    "vars", "watch", "worker",
}  # fmt: skip


def reaches(cells) -> list:
    """Names in the student's code by which the grader's own part of the process can be had, sorted."""
    return sorted(set().union(*(names(cell["source"]) for cell in cells if cell["cell_type"] == "code")) & REACHES)


def names(source):
    """Every identifier, attribute, imported name and text in a cell; of one that is no Python, its words."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(source.replace(".", " ").split())
    found = set()
    for node in ast.walk(tree):
        for part in (getattr(node, field, None) for field in ("id", "attr", "module", "name", "value")):
            found |= set(part.split(".")) if isinstance(part, str) else set()
    return found


def withheld(report, found):
    """The report with the points that rest on forgeable sights made pending, and why; "" when none are."""
    rests = {case.property for case in get(report.name).cases if case.largest or case.kept or case.launches}
    doubtful = {p for p, (_, _, state) in report.properties.items() if state == "earned" and p in rests}
    if not found or not doubtful:
        return report, ""
    why = f"a person has to look at {', '.join(sorted(doubtful))}: the notebook uses {', '.join(found)}"
    pending = {p: (0, worth, "pending") if p in doubtful else (points, worth, state)
               for p, (points, worth, state) in report.properties.items()}  # fmt: skip
    return replace(report, properties=pending, message=f"{report.message}\nPending: {why}."), why
