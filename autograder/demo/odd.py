"""Students whose file, folder or notebook is odd. Each is a function that fills the folder in which they hand in."""

import json
import os

from .typed import ASSIGNMENT, is_solution
from .typed import notebook as typed


def put(student, folder, name=None, assignment=ASSIGNMENT):
    """Hand in what `student` typed."""
    write(folder, typed(student, assignment), name or f"{assignment}.ipynb")


def write(folder, notebook, name=f"{ASSIGNMENT}.ipynb", encoding="utf-8"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(json.dumps(notebook, indent=1, ensure_ascii=False).encode(encoding, "replace"))


def find(notebook, name):
    """A cell, and its place."""
    return next((cell, i) for i, cell in enumerate(notebook["cells"]) if cell["id"] == name)


def remark(notebook, words):
    """A comment at the top of the first answer."""
    solution = next(cell for cell in notebook["cells"] if is_solution(cell))
    solution["source"] = f"# {words}\n{solution['source']}"
    return notebook


# --- honest -----------------------------------------------------------------------------------------------------------


def euler(folder):
    """Right, but the cell of the second answer was deleted."""
    notebook = typed("ada")
    notebook["cells"].remove(find(notebook, "dot_product_variance")[0])
    write(folder, notebook)


def barbara(folder):
    """Right; she copied an answer and a check to try something, and the copies, with their ids, stayed."""
    notebook = typed("ada")
    for name in ("check-scaled_dot_product_attention", "scaled_dot_product_attention"):
        cell, place = find(notebook, name)
        notebook["cells"].insert(place + 1, {**cell, "source": cell["source"].replace("math.sqrt(q.shape[-1])", "8")})
    write(folder, notebook)


def tycho(folder):
    """Right, under a name of his own, with letters that mean something to HTML."""
    put("ada", folder, "my copy <b>.ipynb")


def rene(folder):
    """Right, saved as Latin-1 by an old editor."""
    write(folder, remark(typed("ada"), "déjà vu"), encoding="latin-1")


def blaise(folder):
    """Right, saved as UTF-16 by another."""
    write(folder, remark(typed("ada"), "pensées"), encoding="utf-16")


def gauss(folder):
    """Right, but the upload broke off: few, but ripe."""
    put("ada", folder)
    path = folder / f"{ASSIGNMENT}.ipynb"
    path.write_bytes(path.read_bytes()[:6000])


def zeno(folder):
    """The notebook never arrived: the folder is empty."""
    folder.mkdir(parents=True)


def thales(folder):
    """On the roster, and handed in nothing."""


def edwin(folder):
    """Right, with everything else that lay about: data, a module of a known name, a folder, an editor's backup."""
    put("ada", folder)
    (folder / "redshifts.csv").write_text("km/s,Mpc\n170,0.032\n290,0.034\n")
    (folder / "torch.py").write_text("raise SystemExit('not that torch')\n")
    (folder / f"{ASSIGNMENT}.ipynb~").write_text("{}")
    write(folder / ".ipynb_checkpoints", typed("kurt"), f"{ASSIGNMENT}-checkpoint.ipynb")


def harrison(folder):
    """Right, with a time that no clock shows."""
    put("ada", folder)
    (folder / "timestamp.txt").write_text("yesterday evening, about nine\n")


# --- hostile ----------------------------------------------------------------------------------------------------------


def galen(folder):
    """Zeros; tags, and what else the tools around notebooks obey, ask that locked cells be skipped, hidden or kept."""
    notebook = typed("trofim")
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("locked"):
            cell["metadata"] |= {
                "tags": ["skip-execution", "raises-exception", "remove_cell", "solution", "frozen"],
                "deletable": True,
                "editable": True,
                "frozen": True,
                "init_cell": False,
            }
    notebook["metadata"] |= {"execution": {"allow_errors": True, "timeout": -1}, "celltoolbar": "None"}
    write(folder, notebook)


def charles(folder):
    """Zeros; outputs, points, ids and settings of the checks are forged, and so is what the grader would note down."""
    notebook = typed("trofim")
    shown = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": "16.0"}}
    for cell in list(notebook["cells"]):
        about = cell["metadata"].get("nbgrader", {})
        if about.get("grade"):
            cell["metadata"]["nbgrader"] = {**about, "points": 1000, "checksum": "0" * 32, "schema_version": 99}
            cell |= {"source": "16.0", "outputs": [shown], "execution_count": 1}
            notebook["cells"].append({**cell, "metadata": {"nbgrader": {**about, "grade": False, "solution": True}}})
            notebook["cells"].append({**cell, "id": "extra-credit", "metadata": {"nbgrader": {**about, "points": 16}}})
    examined = {"outputs": {}, "checks": [], "stopped": None, "lasting": True}
    notebook["metadata"] |= {
        "autograder": {"cells": [], "notes": ["all right"], "verdict": "graded", "examined": examined, "points": 16},
        "kernelspec": {"name": "no-such-kernel", "display_name": "Python 3", "language": "python"},
        "nbgrader": {"extra_credit": 100},
    }
    write(folder, notebook)


def giovanni(folder):
    """Links and a pipe in place of files: Ada's notebook as his own, the class's secret, the machine's users."""
    folder.mkdir(parents=True)
    class_ = folder.parents[2]
    (folder / f"{ASSIGNMENT}.ipynb").symlink_to(f"../../ada/{ASSIGNMENT}/{ASSIGNMENT}.ipynb")
    (folder / "timestamp.txt").symlink_to(class_ / "secret")
    (folder / "passwd").symlink_to("/etc/passwd")
    (folder / "notes").symlink_to(class_)
    os.mkfifo(folder / "data")
