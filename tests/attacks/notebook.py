"""Attacks by what is handed in: cells, metadata, files and folders, and unlucky ones that are no attack at all."""

import json
import os
import socket

from .attack import ASSIGNMENT, FILE, POINTS, RIGHT, WRONG, code, folder, notebook


def named(handed_in, name):
    [found] = [one for one in handed_in["cells"] if grader(one).get("grade_id") == name]
    return found


def grader(cell):
    return cell["metadata"].get("nbgrader", {})


def checks(handed_in):
    return [one for one in handed_in["cells"] if grader(one).get("grade")]


# --- cells and their metadata -----------------------------------------------------------------------------------------


@notebook(gets=0, answers=WRONG, stock=True)
def skips_checks(handed_in):
    """The tag skip-execution, and others that tools obey, on every cell that the student does not own."""
    for one in handed_in["cells"]:
        one["metadata"]["tags"] = ["skip-execution", "raises-exception", "remove-cell", "remove-input"]
    return handed_in


@notebook(stock=True)
def edits_the_metadata(handed_in):
    """Right answers in a notebook in which every flag of nbgrader's is turned round and every checksum is gone."""
    for one in handed_in["cells"]:
        for flag in ("grade", "locked", "solution", "task"):
            one["metadata"].setdefault("nbgrader", {})[flag] = not grader(one).get(flag)
        grader(one).pop("checksum", None)
    return handed_in


@notebook(stock=True)
def another_schema(handed_in):
    """Versions of nbgrader's metadata from the future, from the past, and none."""
    for one, version in zip(checks(handed_in), (99, 0, None, "three"), strict=True):
        one["metadata"]["nbgrader"]["schema_version"] = version
    del handed_in["cells"][2]["metadata"]["nbgrader"]["schema_version"]
    return handed_in


@notebook(gets=0, answers=WRONG)
def replaces_the_checks(handed_in):
    """The text of every check is replaced by the full score, its id and checksum kept."""
    for one in checks(handed_in):
        one["source"] = str(float(grader(one)["points"]))
    return handed_in


@notebook(gets=0, answers=WRONG)
def brings_results(handed_in):
    """Checks that have run already, with the full score among their outputs."""
    for one in checks(handed_in):
        data = {"text/plain": "16.0", "text/html": "<b>16 of 16 points</b>"}
        result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
        one["outputs"], one["execution_count"] = [result] * 3, 1
    return handed_in


@notebook(gets=0, answers=WRONG, stock=True)
def imitates_the_grader(handed_in):
    """Metadata under every name that the grader uses itself."""
    full = {
        "points": 16.0,
        "max_points": 16.0,
        "verdict": "graded",
        "notes": [],
        "reason": "all right",
        "stopped": None,
    }
    known = {**full, "cells": [], "examined": {"outputs": {}, "checks": [], "stopped": None}, "key": "0" * 64}
    handed_in["metadata"] |= {"autograder": known, "nbgrader": known, "kernelspec": {"name": "16.0"}}
    for one in handed_in["cells"]:
        one["metadata"] |= {"autograder": known, "deletable": True, "editable": True, "collapsed": {"<b>": []}}
    return handed_in


@notebook(stock=True)
def without_checks(handed_in):
    """Every check, and every locked cell, is deleted."""
    handed_in["cells"] = [one for one in handed_in["cells"] if not grader(one).get("locked")]
    return handed_in


@notebook(gets=14, reason="deleted")
def without_an_answer(handed_in):
    """The cell of an answer is deleted."""
    handed_in["cells"].remove(named(handed_in, "project_qkv"))
    return handed_in


@notebook(reason="taken as code")
def an_answer_in_words(handed_in):
    """The cell of an answer has become text."""
    named(handed_in, "project_qkv")["cell_type"] = "markdown"
    return handed_in


@notebook(reason="first changed copy", stock=True)
def copies_of_answers(handed_in):
    """Every answer is there twice, right and then wrong."""
    cells = []
    for one in handed_in["cells"]:
        name = grader(one).get("grade_id")
        if name in POINTS:
            cells += [{**one, "source": RIGHT[name]}, {**one, "source": f"def {name}(*_):\n    return 0"}]
        else:
            cells.append(one)
    return {**handed_in, "cells": cells}


@notebook(gets=0, answers=WRONG)
def answers_under_other_names(handed_in):
    """Right answers stand in cells that have the ids of checks and of text, wrong ones in their own."""
    for one in checks(handed_in):
        one["source"] = RIGHT[grader(one)["grade_id"].removeprefix("check-")]
    for i, one in enumerate(handed_in["cells"]):
        one["id"] = f"check-{i}"
    return handed_in


@notebook()
def odd_cells(handed_in):
    """Cells that are no cells, sources that are no text, ids that are no names, attachments that are no pictures."""
    odd = [None, 7, [], {}, {"cell_type": "raw", "source": "x"}, {"cell_type": "code"}]
    odd += [{"cell_type": "code", "source": {"a": 1}, "metadata": []}, {"cell_type": "code", "source": [[1], None]}]
    odd += [{"cell_type": "code", "source": "", "metadata": {"nbgrader": 3}, "id": {"a": []}}]
    odd += [
        {"cell_type": "markdown", "source": "![x](attachment:a.png)", "attachments": {"a.png": {"image/png": "AAAA"}}}
    ]
    odd += [{"cell_type": "code", "source": "\ud800 \x00 \x1b[2J", "metadata": {"nbgrader": {"grade_id": "\x00/../x"}}}]
    handed_in["cells"] += odd
    return handed_in


@notebook()
def many_cells(handed_in):
    """A quarter of a million cells after the last."""
    handed_in["cells"] += [{"cell_type": "code", "source": "1"}] * 250_000
    return handed_in


@notebook(gets=0, verdicts=("unreadable",))
def a_million_cells(handed_in):
    """A million cells: more than a notebook may weigh."""
    handed_in["cells"] += [{"cell_type": "code", "source": ""}] * 1_000_000
    return handed_in


# --- files ------------------------------------------------------------------------------------------------------------


@notebook(gets=0, verdicts=("unreadable",), stock=True)
def cut_short(handed_in):
    """The file was cut while it was copied."""
    return json.dumps(handed_in).encode()[:9000]


@notebook()
def in_latin_1(handed_in):
    """An accent, in the encoding of old Windows machines."""
    handed_in["cells"].append(code("# déjà vu"))
    return json.dumps(handed_in, ensure_ascii=False).encode("latin-1", "replace")


@folder(gets=0, verdicts=("missing", "unreadable"), stock=True)
def a_link_to_the_solution(place, right):
    """The notebook is a link to the instructor's own version."""
    from autograder import cohort

    place.mkdir()
    (place / FILE).symlink_to(cohort.ROOT / "_build" / "source" / ASSIGNMENT / FILE)


@folder(gets=0, verdicts=("missing", "unreadable"))
def a_folder_that_is_a_link(place, right):
    """The folder is a link to another's."""
    place.symlink_to(f"../notebook_a_folder_as_notebook/{ASSIGNMENT}")


@folder(gets=0, verdicts=("missing", "unreadable"), stock=True)
def a_pipe(place, right):
    """The notebook is a pipe: who opens it waits for ever."""
    place.mkdir()
    os.mkfifo(place / FILE)


@folder(gets=0, verdicts=("missing", "unreadable"))
def a_socket(place, right):
    """The notebook is a socket, and beside it lies a device that never ends."""
    place.mkdir()
    here = os.getcwd()
    os.chdir(place)  # the path would be too long
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(FILE)
    os.chdir(here)
    (place / "other.ipynb").symlink_to("/dev/zero")


@folder()
def a_folder_as_notebook(place, right):
    """The notebook is a folder, with the notebook in it."""
    (place / FILE).mkdir(parents=True)
    (place / FILE / "inner.ipynb").write_bytes(right)


@folder(gets=0, verdicts=("unreadable",), stock=True)
def a_terabyte(place, right):
    """A notebook that says to be a terabyte long, and takes no room."""
    place.mkdir()
    with open(place / FILE, "wb") as file:
        file.truncate(1 << 40)


@folder()
def files_beside(place, right):
    """Beside the notebook lie modules with the names of those that it imports, links to secrets, hooks and folders."""
    place.mkdir()
    (place / FILE).write_bytes(right)
    for name in ("torch.py", "autograder.py", "math.py", "sitecustomize.py", "nbgrader_config.py", "conftest.py"):
        (place / name).write_text("raise SystemExit('16.0')\n")
    for name, target in {"secret.txt": "../../../secret", "root": "/", "loop": ".", "passwords": "/etc/shadow"}.items():
        (place / name).symlink_to(target)
    (place / ".git" / "hooks").mkdir(parents=True)
    (place / "\udcff\n<b>").write_text("a name that is no text")
    os.mkfifo(place / "pipe")
    with open(place / "large", "wb") as file:
        file.truncate(1 << 40)


@folder()
def thousands_of_files(place, right):
    """Three thousand files, in folders forty deep."""
    deep = place / "/".join(["d"] * 40)
    deep.mkdir(parents=True)
    (place / FILE).write_bytes(right)
    for i in range(1500):
        (place / f"{i}.txt").touch()
        (deep / f"{i}.txt").touch()


@folder()
def a_timestamp_that_is_none(place, right):
    """timestamp.txt holds no time."""
    place.mkdir()
    (place / FILE).write_bytes(right)
    (place / "timestamp.txt").write_text("<script>yesterday\x00" * 100_000)


@folder()
def a_timestamp_that_is_a_link(place, right):
    """timestamp.txt is a link to the class's secret."""
    place.mkdir()
    (place / FILE).write_bytes(right)
    (place / "timestamp.txt").symlink_to("../../../secret")
