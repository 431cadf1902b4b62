"""Which of the files that a student handed in is the notebook."""

import re
from pathlib import Path

from .regular import kind
from .submitted import entries, printable

NOTEBOOK = re.compile(r"(?!\.).*\.ipynb(\.txt|\.json)?", re.IGNORECASE | re.DOTALL)  # browsers add the second ending
BESIDE = ("__MACOSX", ".ipynb_checkpoints")  # what unpacking on a Mac and Jupyter leave
DEEP, MANY = 4, 1000  # folders in folders, and folders in all, that are looked through


class Missing(Exception):
    """There is no notebook to take; the message says why."""


def notebook(folder: Path, name: str, ours=lambda path: False):
    """The notebook `name`, or the only one there is, and notes. `ours` tells a file that the grader itself wrote: it
    counts where there is no other."""
    if kind(folder) != "a folder":
        raise Missing(f"{kind(folder)} was handed in where a folder with the notebook belongs")
    found = notebooks(folder)
    theirs = [path for path in found if not ours(path)]
    inside = [] if theirs else [path for inner in folders(folder) for path in notebooks(inner)]
    found = theirs or (found if len(inside) != 1 else [])
    exact = [path for path in found if path.name == name]
    if exact:
        return exact[0], beside([path for path in found if path not in exact])
    if len(found) > 1:
        raise Missing(f"there are {len(found)} notebooks in the folder, none of them {name}: {shown(found)}")
    if found:
        return found[0], [f"{printable(found[0].name)} was taken as {name}"]
    return nested(folder, inside, name)


def notebooks(folder):
    return [folder / name for name in entries(folder) if NOTEBOOK.fullmatch(name) and kind(folder / name) == "a file"]


def beside(others):
    if not others:
        return []
    were = "another notebook was" if len(others) == 1 else f"{len(others)} other notebooks were"
    return [f"{were} in the folder and not looked at: {shown(others)}"]


def nested(folder, found, name):
    """Where the folder itself holds none: the one that lies in a folder inside."""
    found = [path for path in found if path.name == name] or found
    if len(found) == 1:
        where = printable(str(found[0].relative_to(folder)))
        return found[0], [f"{where}, in a folder of its own, was taken as {name}"]
    if found:
        raise Missing(
            f"there are {len(found)} notebooks in folders inside the folder: it is not clear which one counts"
        )
    raise Missing(f"there is no notebook in the folder{instead(folder, name)}")


def folders(top):
    """The folders inside, nearest first. Links are not followed."""
    queue = [(top, 0)]
    for count, (folder, depth) in enumerate(queue):
        if depth:
            yield folder
        if depth < DEEP and count < MANY:
            inner = [folder / name for name in entries(folder) if name not in BESIDE]
            queue += [(path, depth + 1) for path in inner if kind(path) == "a folder"]


def instead(folder, name):
    """What is there, for whoever wonders."""
    names = [one for one in entries(folder) if not one.startswith(".") and one not in BESIDE]
    if name in names:
        return f": {name} is {kind(folder / name)}, not a file"
    if ".ipynb_checkpoints" in entries(folder) and not names:
        return ", only Jupyter's checkpoint of one"
    return f", only {shown([Path(one) for one in names])}" if names else ""


def shown(paths):
    """Three names at most."""
    names = [printable(path.name) for path in paths]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
