"""Derive nbgrader's source and the student's notebook from a problem set.

solutions/NAME.py -> _build/source/NAME/NAME.ipynb -> notebooks/NAME/NAME.ipynb

A problem set is py:percent text. A cell's tag says what it is:

    solution   one function or class, its body between the lines ### BEGIN SOLUTION and ### END SOLUTION
    check      one call, check("chNN/NAME", NAME): nbgrader grades it, for the points of that exercise
    try        the student's scratch paper: nbgrader leaves it alone

A cell without a tag is read-only. Its prose may hold

    {{introduction}}     solutions/introduction.md, with which every problem set begins
    {{ch02/NAME}}        that exercise's points, and a link to the section it rests on
    {{PAGE#SECTION}}     a link to a section of the book (at $COURSE_BOOK, as in a report)

Ids come from names, so the same source gives the same bytes and an edit
changes one section only. The student's notebook is, byte for byte, what `nbgrader generate_assignment` makes.
"""

import ast
import itertools
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_notebook

from .checksum import checksum, edited, stored
from .exercises import get
from .report import address
from .words import count

ROOT = Path(__file__).resolve().parent.parent
STUB = "raise NotImplementedError  # your code here"  # also nbgrader_config.py's code_stub
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
REGION = re.compile(rf"^([ \t]*)[^\n]*{BEGIN}[^\n]*\n(.*?)[^\n]*{END}[^\n]*", re.DOTALL | re.MULTILINE)
PLACEHOLDER = re.compile(r"\{\{([\w/#-]+)\}\}")
NEVER_SHOWN = (BEGIN, END, "BEGIN HIDDEN TESTS", "BEGIN MARK SCHEME")
TELLING = 24  # a shorter line of a solution, as `return output`, may well stand elsewhere too


class Malformed(ValueError):
    """A problem set breaks a rule; the sentence says where, which, and how to mend it."""


@dataclass
class Cell:
    place: str  # "solutions/02_queries_keys_values.py, line 57"
    tag: str  # solution, check, try or "" for read-only
    node: nbformat.NotebookNode

    @property
    def source(self):
        return self.node.source

    def wrong(self, sentence):
        return Malformed(f"{self.place}: {sentence}")


@dataclass
class ProblemSet:
    name: str
    master: str  # the nbgrader source, as text
    student: str
    secrets: list  # lines that only the master may hold


def main(check: bool, root: Path = ROOT) -> int:
    """Write the notebooks that changed, or `check`: write none, name those that are stale or leak. The exit status."""
    try:
        sets = [problem_set(source) for source in sources(root)]
        return faults(sets, root) if check else write(sets, root)
    except Malformed as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; the notebooks need to be read and written there.", file=sys.stderr)
    return 1


def sources(root):
    found = sorted((root / "solutions").glob("*.py"))
    if not found:
        raise Malformed(f"{root / 'solutions'} holds no problem set (*.py), so there is no notebook to make.")
    return found


def write(sets, root):
    for one in sets:
        for folder, text in (("_build/source", one.master), ("notebooks", one.student)):
            path = root / folder / one.name / f"{one.name}.ipynb"
            fresh = path.exists() and path.read_bytes() == text.encode()
            if not fresh:
                if folder == "notebooks":
                    keep(path, root, text)
                replace(path, text)
            print("fresh" if fresh else "wrote", path.relative_to(root).as_posix())
    return 0


def keep(path, root, fresh):
    """Move a notebook out of the way in which somebody has worked: an answer is never written over."""
    if path.exists() and worked_in(path, fresh):
        # Not beside it: nbgrader releases what lies there.
        free = (path.parent.with_name(f"{path.stem}-yours-{n}.ipynb") for n in itertools.count(1))
        kept = next(one for one in free if not one.exists())
        path.rename(kept)
        print(f"kept  {kept.relative_to(root).as_posix()}, which holds your answers; move it back to go on")


def worked_in(path, fresh):
    """Whether there is an answer, a note, an output, or what cannot be read."""
    ours = {cell.source for cell in nbformat.reads(fresh, 4).cells}
    try:
        found = nbformat.reads(path.read_text("utf8"), 4).cells
        return any(cell.get("outputs") or changed(cell, ours) for cell in found)
    except Exception:  # whatever it is, it is none of ours
        return True


def changed(cell, ours):
    """By its own checksum, which an older notebook's cells have too; scratch paper has none, and is compared."""
    return edited(cell) if stored(cell) else cell.source not in ours


def replace(path, text):
    """Write `path` whole or not at all: a kill in between leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.parent.with_name(f".{path.name}.new")  # not beside the notebook: nbgrader releases what lies there
    half.write_bytes(text.encode())
    os.replace(half, path)


def faults(sets, root):
    found = []
    for one in sets:
        path = root / "notebooks" / one.name / f"{one.name}.ipynb"
        text = path.read_text("utf8", errors="replace") if path.exists() else ""
        if text != one.student:
            found.append(f"stale {path.relative_to(root).as_posix()}: run `python -m autograder notebooks`")
        if leak := leaked(text.replace('\\"', '"').replace("\\\\", "\\"), one.secrets):  # JSON's escapes undone
            found.append(f"leak {path.relative_to(root).as_posix()}: it holds {leak!r}")
    known = {one.name for one in sets}
    for path in sorted((root / "notebooks").glob("*/*.ipynb")):
        if path.parent.name not in known or path.stem not in known:
            found.append(f"orphan {path.relative_to(root).as_posix()}: no file in solutions/ makes it; delete it")
    print("".join(f"{line}\n" for line in found), end="")
    return int(bool(found))


def problem_set(source):
    """The notebooks of one problem set; Malformed, with one sentence, where the source breaks a rule."""
    cells = read(source)
    for cell in cells:
        fill(cell, source.parent)
    refuse_uneven_pairs(cells)
    for cell, name in zip(cells, ids(cells), strict=True):
        cell.node.id = name
        cell.node.metadata = metadata(cell, name)
    secrets = [line for cell in cells if cell.tag == "solution" for line in between_markers(cell)]
    master = as_text(cells)
    for cell in cells:
        release(cell)
        if leak := leaked(cell.source, secrets):
            raise cell.wrong(f"students would read {leak!r}, which belongs to a solution; take it out.")
    return ProblemSet(source.stem, master, as_text(cells), secrets)


def read(source):
    name = f"{source.parent.name}/{source.name}"
    try:
        text = source.read_text("utf8")
    except UnicodeDecodeError as error:
        raise Malformed(f"{name}, byte {error.start}: this is no UTF-8; save the file as UTF-8.") from None
    lines = [i for i, line in enumerate(text.splitlines(), 1) if line == "# %%" or line.startswith("# %% ")]
    nodes = jupytext.reads(text, fmt="py:percent").cells
    if len(lines) != len(nodes):
        raise Malformed(f"{name}, line 1: text stands before the first cell; begin the file with a line `# %%`.")
    return [tagged(f"{name}, line {line}", node) for line, node in zip(lines, nodes, strict=True)]


def tagged(place, node):
    tags = node.metadata.get("tags", [])
    cell = Cell(place, tags[0] if tags else "", node)
    if len(tags) > 1 or cell.tag not in ("solution", "check", "try", ""):
        raise cell.wrong(f"the tags are {tags}; a cell has one of solution, check and try, or none.")
    if cell.tag and node.cell_type != "code":
        raise cell.wrong(f"a {node.cell_type} cell is tagged {cell.tag!r}; only code cells carry tags.")
    return cell


def fill(cell, folder):
    """Put its meaning in the place of each {{ }} in prose."""
    if cell.node.cell_type == "markdown":
        cell.node.source = PLACEHOLDER.sub(lambda found: meaning(cell, found[1], folder), cell.source)


def meaning(cell, name, folder):
    if name == "introduction":
        return (folder / "introduction.md").read_text("utf8").strip()
    if "#" in name:
        return link(name)
    exercise = known(cell, name)
    return f"**{count(exercise.max_points, 'point')}** · {link(exercise.see)}"


def link(see):
    return f"[{see}]({address(see)})"


def known(cell, name):
    try:
        return get(name)
    except ValueError as error:
        raise cell.wrong(str(error)) from None


def ids(cells):
    """A name for each cell: what it defines, checks or is headed by; cells that follow it are counted from it."""
    named, last, followers = {}, "cell", 1
    for cell in cells:
        if own := own_name(cell):
            last, followers = own, 1
        else:
            followers += 1
        name = own or f"{last}-{followers}"
        if name in named:
            raise cell.wrong(f"the id {name!r} is taken by {named[name].place}; change the name or heading of one.")
        named[name] = cell
    return list(named)


def own_name(cell):
    if cell.tag == "solution":
        return defined(cell)
    if cell.tag == "check":
        return f"check-{checked(cell)[1]}"
    heading = re.search(r"^#+ (.+)$", cell.source, re.MULTILINE) if cell.node.cell_type == "markdown" else None
    return re.sub(r"[^a-z0-9]+", "-", heading[1].lower()).strip("-")[:48] if heading else ""


def defined(cell):
    """The name of the function or class in a solution cell."""
    match statements(cell):
        case [ast.FunctionDef(name) | ast.ClassDef(name)]:
            return name
    raise cell.wrong("a solution cell defines one function or class and holds nothing else.")


def checked(cell):
    """The exercise and the function in a check cell."""
    match statements(cell):
        case [ast.Expr(ast.Call(ast.Name("check"), [ast.Constant(str(exercise)), ast.Name(function)], []))]:
            return exercise, function
    raise cell.wrong('a check cell is one call, as check("ch02/project_qkv", project_qkv).')


def statements(cell):
    try:
        return ast.parse(cell.source).body
    except SyntaxError as error:
        raise cell.wrong(f"this is no Python ({error.msg}, line {error.lineno} of the cell).") from None


def refuse_uneven_pairs(cells):
    """Each solution is followed by its one check."""
    waiting, done = {}, set()
    for cell in cells:
        if cell.tag == "solution":
            waiting[defined(cell)] = cell
        elif cell.tag == "check":
            function = checked(cell)[1]
            if function in done:
                raise cell.wrong(f"{function} is checked twice; keep one of the checks.")
            if not waiting.pop(function, None):
                raise cell.wrong(f"{function} is checked, but no solution cell above defines it.")
            done.add(function)
    for function, cell in waiting.items():
        raise cell.wrong(f"{function} is never checked; add a cell tagged check after it.")


def metadata(cell, name):
    """nbgrader's: it grades check cells, leaves solution cells to the student, and restores read-only cells."""
    if cell.tag == "try":
        return {"tags": ["raises-exception"]}  # an exercise not yet done does not stop Run All
    graded, solution = cell.tag == "check", cell.tag == "solution"
    points = {"points": max_points(cell)} if graded else {}
    kind = {"grade": graded, "grade_id": name, "locked": not solution, "solution": solution, "task": False}
    return {"nbgrader": {**kind, **points, "schema_version": 3}}


def max_points(cell):
    exercise, function = checked(cell)
    found = known(cell, exercise)
    if found.function != function:
        raise cell.wrong(f"{exercise} is about {found.function}, but the check hands over {function}.")
    return found.max_points


def between_markers(cell):
    """The telling lines of the solution."""
    marks = re.findall(rf"{BEGIN}|{END}", cell.source)
    if not marks or marks != [BEGIN, END] * (len(marks) // 2):
        raise cell.wrong(f"a solution stands between `### {BEGIN}` and `### {END}`; found {marks or 'neither'}.")
    lines = [line.strip() for region in REGION.finditer(cell.source) for line in region[2].splitlines()]
    return [line for line in lines if len(line) >= TELLING]


def leaked(text, secrets):
    """The first thing in `text` that students must not read, or None."""
    return next((secret for secret in (*NEVER_SHOWN, *secrets) if secret in text), None)


def release(cell):
    """Make of a master's cell the student's, as nbgrader does: the stub for the solution, locks, checksums."""
    node, grader = cell.node, cell.node.metadata.get("nbgrader")
    if grader is None:
        return
    if cell.tag == "solution":
        node.source = REGION.sub(rf"\1{STUB}", node.source)
        statements(cell)  # the student must be able to run what is left
    node.metadata["deletable"] = False
    if grader["locked"]:
        node.metadata["editable"] = False
    grader["cell_type"] = node.cell_type
    grader["checksum"] = checksum(node)


def as_text(cells):
    notebook = new_notebook(cells=[cell.node for cell in cells], metadata={"kernelspec": KERNEL})
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"
