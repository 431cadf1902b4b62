"""The judge of the course: what an exercise is, how an answer is judged, how nbgrader is served."""

from importlib import import_module

HOMES = {"check": ".checking", "judge": ".judging"}
__all__ = ["check", "exercises", "judge"]


def __getattr__(name):
    """Each export is imported when it is first asked for, so that `doctor` answers where torch is missing or broken."""
    if name == "exercises":  # a package that can be called
        return import_module(".exercises", __name__)
    if name in HOMES:
        return getattr(import_module(HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
