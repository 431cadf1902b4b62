"""The notebook that is graded: the released one with the student's text in the solution cells, and cells they added.

Everything else, the checks, the set-up, tags, points and order, comes from the release, whatever the submission says.
"""

import copy


def rebuild(master: dict, submitted: list | None) -> tuple[dict, list]:
    """A notebook made of `master` and the submitted cells, as intake gives them, and notes for the student."""
    notebook = copy.deepcopy(master)
    if submitted is None:
        return notebook, []
    places = {name(cell): i for i, cell in enumerate(master["cells"])}
    texts = {text(cell): i for i, cell in enumerate(master["cells"])}
    answers, added, notes, last = {}, {}, [], -1
    for cell in submitted:
        place = places.get(cell["id"], texts.get(cell["source"].strip()))
        if place is None:
            if cell["source"].strip():
                added.setdefault(last, []).append(cell)
            continue
        last = place
        if theirs(master["cells"][place]) and cell["kind"] == master["cells"][place]["cell_type"]:
            answers.setdefault(place, []).append(cell["source"])
    cells = new_cells(added.get(-1, []), 0)
    for place, cell in enumerate(notebook["cells"]):
        notes += answer(cell, answers.get(place, []))
        cells += [cell, *new_cells(added.get(place, []), len(cells) + 1)]
    if not added and all(text(a) == text(b) for a, b in zip(notebook["cells"], master["cells"], strict=True)):
        notes.append("nothing was changed in the released notebook")
    notebook["cells"] = cells
    return notebook, notes


def answer(cell, texts):
    """Put the student's text in its place; of several copies the first that was changed. Returns notes."""
    if not theirs(cell):
        return []
    changed = [source for source in texts if source.strip() != text(cell)]
    notes = []
    if len(changed) > 1:
        notes.append(f"{name(cell)} was there {len(texts)} times: the first changed copy counts")
    if not texts and "nbgrader" in cell["metadata"]:
        notes.append(f"the cell {name(cell)} was deleted")
        cell["source"] = "# This cell was deleted from the submission."
    elif changed:
        cell["source"] = changed[0]
    return notes


def theirs(cell):
    """Whether the student may write in this cell of the master: a solution, or scratch paper."""
    return cell["metadata"].get("nbgrader", {"solution": True}).get("solution", False)


def name(cell):
    return cell["metadata"].get("nbgrader", {}).get("grade_id", cell.get("id"))


def text(cell):
    return cell["source"].strip()


def new_cells(cells, first):
    """Cells that the student added, named by their place."""
    made = []
    for number, cell in enumerate(cells, first):
        code = {"outputs": [], "execution_count": None} if cell["kind"] == "code" else {}
        ours = {"cell_type": cell["kind"], "id": f"added-{number}", "metadata": {}}
        made.append({**ours, "source": cell["source"], **code})
    return made
