"""The notebook that is graded: the released one with the student's text in the solution cells, and cells they added.

Everything else, the checks, the set-up, tags, points and order, comes from the release, whatever the submission says.
A submitted cell is known by its name, by its text or, where an editor has lost both, by the function that it defines.
The student's text cells are shown as they were typed: no HTML, link or picture of theirs becomes part of a page.
"""

import copy
import re
import textwrap

WIDTH = 120
WRAP = textwrap.TextWrapper(WIDTH, replace_whitespace=False, break_on_hyphens=False)
DELETED = "This cell was deleted from the submission."


def rebuild(master: dict, submitted: list | None) -> tuple[dict, list]:
    """A notebook made of `master` and the submitted cells, as intake gives them, and notes for the student."""
    notebook = copy.deepcopy(master)
    if submitted is None:
        return notebook, []
    cells, notes = placed(master["cells"], submitted)
    made = new_cells(added(cells, -1), 0)
    for number, cell in enumerate(master["cells"]):
        copies, more = elsewhere(master["cells"], cells, number)
        notes += more or remarks(cell, at(cells, number))
        fill(notebook["cells"][number], at(cells, number))
        made += [notebook["cells"][number], *new_cells(copies + added(cells, number), len(made) + 1)]
    notes += overwritten(master["cells"], cells)
    if not notes and [text(cell) for cell in made] == [text(cell) for cell in master["cells"]]:
        notes.append("nothing was changed in the released notebook")
    return {**notebook, "cells": made}, notes


# --- where each submitted cell belongs --------------------------------------------------------------------------------


def placed(master, submitted):
    """The submitted cells, each with its `place` in the master, or None, and the place that it runs `after`; notes."""
    places, notes = recognised(master, submitted, known(master, submitted))
    places = parts(master, submitted, places)
    cells, last, seen = [], -1, {None}
    for cell, place in zip(submitted, places, strict=True):
        if place not in seen:  # a copy does not take along what follows it
            last = place
            seen.add(place)
        cells.append({**cell, "place": place, "after": last})
    return cells, notes


def known(master, submitted):
    """Places by name, else by text."""
    named = {name(cell): number for number, cell in enumerate(master)}
    texts = {text(cell): number for number, cell in enumerate(master)}
    found = [next((named[one] for one in cell["names"] if one in named), texts.get(text(cell))) for cell in submitted]
    return [
        None if place is not None and turned(master[place], cell) else place
        for place, cell in zip(found, submitted, strict=True)
    ]


def turned(cell, submitted):
    """Whether scratch paper was made a cell of another kind: the student's own, then."""
    return scratch(cell) and kind(cell) != submitted["kind"]


def recognised(master, submitted, places):
    """Also solution cells without a name, where one cell alone defines the function that belongs into a missing one."""
    places, functions = list(places), []
    for number, cell in enumerate(master):
        if number in places or not function(cell):
            continue
        found = [i for i, one in enumerate(submitted) if places[i] is None and defines(one, function(cell))]
        if len(found) == 1:
            places[found[0]] = number
            functions.append(function(cell))
    lost = f"cells had lost their names and were found by their functions: {', '.join(functions)}"
    return places, [lost] if functions else []


def parts(master, submitted, places):
    """Of copies that were changed, and of the parts of a split cell, one is the answer; others without the function are
    cells that the student added."""
    places = list(places)
    for number in {place for place in places if place is not None and theirs(master[place])}:
        changed = [
            i for i, place in enumerate(places) if place == number and text(submitted[i]) != text(master[number])
        ]
        defining = [i for i in changed if defines(submitted[i], function(master[number]))]
        for i in set(changed) - set(defining or changed[:1]):
            places[i] = None
    return places


def at(cells, number):
    return [cell for cell in cells if cell["place"] == number]


def added(cells, number):
    """The cells with something in them that the student put behind a place."""
    return [cell for cell in cells if cell["place"] is None and cell["after"] == number and text(cell)]


def elsewhere(master, cells, number):
    """Where the solution cell at `number` is as it was released, or deleted: a copy of the one other cell that has its
    function, unless that cell runs in time for the check anyway. And a note."""
    wanted, own = function(master[number]), at(cells, number)
    if not wanted or any(text(cell) != text(master[number]) and mentions(cell, wanted) for cell in own):
        return [], []
    others = [cell for cell in cells if cell["place"] is None or theirs(master[cell["place"]])]
    found = {cell["source"]: cell for cell in others if cell["place"] != number and defines(cell, wanted)}
    first = number if own else -1
    if any(first <= cell["after"] < check(master, number) for cell in found.values()):
        return [], [f"{wanted} was written in a cell of its own; the last one before the check counts"]
    if len(found) == 1:
        return list(found.values()), [f"{wanted} was written in another cell and taken from there"]
    return [], [f"{wanted} was written in {len(found)} other cells, and none of them counts"] if found else []


def check(master, number):
    """The place of the next check."""
    graded = [i for i, cell in enumerate(master) if cell["metadata"].get("nbgrader", {}).get("grade")]
    return min((i for i in graded if i > number), default=len(master))


# --- what becomes of it -----------------------------------------------------------------------------------------------


def fill(cell, submitted):
    """Put the student's text into a cell of the notebook."""
    if not theirs(cell):
        return
    changed = [one for one in submitted if text(one) != text(cell)]
    if changed:
        cell["source"] = changed[0]["source"] if kind(cell) == "code" else plain(changed[0]["source"])
    elif not submitted and not scratch(cell):
        cell["source"] = f"# {DELETED}" if kind(cell) == "code" else DELETED


def remarks(cell, submitted):
    """What the student should know about how a solution cell was taken."""
    if scratch(cell) or not theirs(cell):
        return []
    if not submitted:
        return [f"the cell {name(cell)} was deleted"]
    changed = [one for one in submitted if text(one) != text(cell)]
    notes = []
    if len(changed) > 1:
        notes.append(f"{name(cell)} was there {len(submitted)} times: the first changed copy counts")
    if changed and kind(cell) == "code" != changed[0]["kind"]:
        notes.append(f"{name(cell)} was not a code cell; its text was taken as code")
    return notes


def overwritten(master, cells):
    """Code that was typed where it does not count."""
    places = {cell["place"] for cell in cells if cell["place"] is not None and cell["kind"] == "code"}
    fixed = [i for i in sorted(places) if not theirs(master[i])]
    changed = [name(master[i]) for i in fixed if all(text(cell) != text(master[i]) for cell in at(cells, i))]
    return [f"what was changed in {', '.join(changed)} does not count: such cells stay as released"] if changed else []


def new_cells(cells, first):
    """Cells that the student added, named by their place."""
    made = []
    for number, cell in enumerate(cells, first):
        if cell["kind"] == "code":
            what = {"cell_type": "code", "source": cell["source"], "outputs": [], "execution_count": None}
        else:
            what = {"cell_type": "markdown", "source": plain(cell["source"])}
        made.append({**what, "id": f"added-{number}", "metadata": {}})
    return made


def plain(source):
    """Markdown that shows a text as it was typed: between fences longer than any in it.

    Long lines are broken, to be read without scrolling; and nbconvert takes minutes over one of a hundred thousand [.
    """
    lines = [part for line in source.split("\n") for part in (WRAP.wrap(line) if len(line) > WIDTH else [line])]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", source)), default=0))
    return "\n".join([fence, *lines, fence])


# --- cells ------------------------------------------------------------------------------------------------------------


def function(cell):
    """The function or class that a solution cell of the master asks for, or None."""
    if scratch(cell) or not theirs(cell) or kind(cell) != "code":
        return None
    found = re.search(r"^(?:def|class) (\w+)", cell["source"], re.MULTILINE)
    return found and found[1]


def defines(cell, wanted):
    pattern = rf"^(?:async[ \t]+def|def|class)[ \t]+{wanted}\b"
    return bool(wanted) and cell["kind"] == "code" and bool(re.search(pattern, cell["source"], re.MULTILINE))


def mentions(cell, wanted):
    return bool(re.search(rf"\b{wanted}\b", cell["source"]))


def theirs(cell):
    """Whether the student may write in this cell of the master: a solution, or scratch paper."""
    return cell["metadata"].get("nbgrader", {"solution": True}).get("solution", False)


def scratch(cell):
    return "nbgrader" not in cell["metadata"]


def kind(cell):
    return cell["cell_type"]


def name(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", cell.get("id"))


def text(cell):
    return cell["source"].strip()
