"""From what a student hands in to the notebook that is graded: every odd submission has its end, and its sentence."""

import contextlib
import json
import os
import socket
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import cohort, intake, received, roster, submitted, timestamp
from autograder.errors import BadInput
from autograder.intake import Taken
from autograder.rebuild import plain, rebuild
from autograder.regular import Refused

ASSIGNMENT = "02_queries_keys_values"
NOTEBOOK = f"{ASSIGNMENT}.ipynb"
KEYS = st.sampled_from(
    ["cells", "cell_type", "source", "input", "id", "metadata", "nbgrader", "grade_id", "worksheets"]
)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "class"))
    return tmp_path / "class"


def cells(*sources):
    return {"cells": [{"cell_type": "code", "source": source} for source in sources]}


def answered(**texts):
    """The released notebook with other texts in cells of these names."""
    notebook = cohort.released(ASSIGNMENT)
    for cell in notebook["cells"]:
        cell["source"] = texts.get(cell["id"], cell["source"])
    return notebook


def write(folder, content, name=NOTEBOOK):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def read(folder, content, name="a.ipynb"):
    write(folder, content, name)
    return intake.read(folder, "a")


def sources(taken):
    return [cell["source"] for cell in taken.cells]


# --- the bytes of a notebook ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\0" * 4096, "holds nothing but zeros"),
        (b"{", "breaks off in line 1"),
        (json.dumps(cells("x = 1", "y = 2"), indent=1).encode()[:80], "breaks off in line"),
        (b'{"cells": [}', "is damaged in line 1"),
        (b"\x00\xff" * 50, "is damaged in line 1"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"PK\x03\x04 \x00 notebook", "is a zip archive"),
        (b"%PDF-1.7", "is a PDF file"),
        (b'{"cells": [\n<<<<<<< HEAD\n]}', "holds the marks of a merge"),
        (b"[]", "holds no cells"),
        (b"null", "holds no cells"),
        (b'{"cells": 3}', "holds no cells"),
        (b'{"worksheets": 3}', "holds no cells"),
        (b'{"cells": ' + b"[" * 100_000, "holds lists in lists without end"),
        (b'{"cells": ' * 100_000, "holds lists in lists without end"),
        (b'{"cells": ' + b"9" * 9999 + b"}", "holds a number that is too long"),
        (b" " * (intake.FILE_BYTES + 1), "is larger than 20 MB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_notebook_is_unreadable_for_a_reason(tmp_path, content, reason):
    found = read(tmp_path, content)
    assert (found.cells, found.verdict) == (None, "unreadable")
    [note] = found.notes
    assert note.startswith("a.ipynb is not a notebook that can be read: it ") and f" it {reason}" in note
    assert note.endswith("; the released one was graded")


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", "is in UTF-16, not in UTF-8"),
        ("utf-16-le", "is in UTF-16, not in UTF-8"),
        ("utf-16-be", "is in UTF-16, not in UTF-8"),
        ("utf-32", "is in UTF-32, not in UTF-8"),
        ("latin-1", "is not in UTF-8; it was read as Windows-1252"),
        ("cp1252", "is not in UTF-8; it was read as Windows-1252"),
    ],
)
def test_an_editors_encoding_costs_nothing(tmp_path, encoding, note):
    found = read(tmp_path, json.dumps(cells("# déjà vu"), ensure_ascii=False).encode(encoding))
    assert sources(found) == ["# déjà vu"]
    assert len(found.notes) == bool(note) and all(f"a.ipynb {note}" in one for one in found.notes)


def test_a_bad_byte_in_utf_8_does_not_spoil_the_rest(tmp_path):
    found = read(tmp_path, json.dumps(cells("α = 1  # µ √ X"), ensure_ascii=False).encode().replace(b"X", b"\xe9"))
    assert sources(found) == ["α = 1  # µ √ \ufffd"] and "is damaged in places" in found.notes[0]


@pytest.mark.parametrize(
    ("content", "source"),
    [
        (b'{"cells": [], "cells": [{"cell_type": "code", "source": "last"}]}', "last"),  # as Jupyter reads it
        (rb'{"cells": [{"cell_type": "code", "source": "\ud83d half"}]}', "? half"),
        (rb'{"cells": [{"cell_type": "code", "source": "\ud83d\ude00"}]}', "😀"),
        (rb'{"cells": [{"cell_type": "code", "source": "zero\u0000"}]}', "zero\ufffd"),
        (b'{"cells": [{"cell_type": "code", "source": "a\n\tb"}]}', "a\n\tb"),  # line ends as they are
        (b'{"cells": [{"cell_type": "code", "source": 3}]}', "3"),
        (b'{"cells": [{"cell_type": "code", "source": ["a", 1, null]}]}', "a1None"),
        (b'{"cells": [{"cell_type": "code"}]}', ""),
        (b'{"cells": [{"cell_type": "code", "source": "5"}], "nbformat": 5, "quantum": {}}', "5"),
        (b'{"cells": [{"cell_type": "code", "source": "n"}], "nbformat": "four", "metadata": NaN}', "n"),
        (
            b'{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1\\n", "y"]}]}, 7], "nbformat": 3}',
            "x = 1\ny",
        ),
        (b'{"worksheets": [{"cells": [{"cell_type": "code", "input": "x"}]}], "nbformat": 2}', "x"),
    ],
)
def test_odd_json_that_still_is_a_notebook_is_read(tmp_path, content, source):
    found = read(tmp_path, content)
    assert sources(found) == [source] and found.notes == [] and found.verdict == "graded"


def test_odd_cells_are_passed_over_and_metadata_of_any_kind_is_borne(tmp_path):
    odd = [
        None,
        3,
        {},
        {"cell_type": "quantum"},
        {"cell_type": ["code"]},
        {"cell_type": "code", "metadata": 7, "id": "i"},
    ]
    found = read(tmp_path, {"cells": [*odd, {"cell_type": "heading", "source": "h", "metadata": {"nbgrader": [1]}}]})
    assert found.cells == [
        {"kind": "code", "source": "", "names": [None, "i", None]},
        {"kind": "markdown", "source": "h", "names": [None, None, None]},
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.sampled_from(["code", "f", "def f(): 1"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=40,
)


@given(st.dictionaries(KEYS, JSON), st.lists(st.dictionaries(KEYS, JSON)))
def test_no_json_is_too_odd(whole, cells):
    """Whatever stands where: cells that can be rebuilt, and that are the same when read again; or a refusal."""
    for odd in (whole, {**whole, "cells": cells}, {"worksheets": [whole, {"cells": cells}]}):
        with contextlib.suppress(Refused):
            found = intake.cells(json.loads(json.dumps(odd)))
            again = intake.cells(json.loads(intake.notebook(found)))
            assert [cell["source"] for cell in again] == [cell["source"] for cell in found]
            assert intake.notebook(again) == intake.notebook(found)
            nbformat.validate(json.loads(intake.notebook(found)))
            rebuild(master(), found)


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (cells(*["x"] * 3000), 2000),
        (cells("y" * 200_000), 1),
        (cells(*["z" * 90_000] * 9), 9),
    ],
)
def test_more_than_any_notebook_needs_is_cut(tmp_path, made, kept):
    found = read(tmp_path, made)
    assert len(found.cells) == kept and sum(map(len, sources(found))) <= intake.CHARACTERS
    assert "what was over was cut off" in found.notes[0]


# --- which file it is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my copy <b>.ipynb", "A.IPYNB", "a (1).ipynb", "a.ipynb.txt", "a.ipynb.json"])
def test_one_notebook_is_taken_whatever_its_name(tmp_path, name):
    found = read(tmp_path, cells("x"), name)
    assert sources(found) == ["x"] and found.notes == [f"{name} was taken as a.ipynb"]


def test_a_name_is_shown_without_what_moves_a_terminal_and_not_without_end(tmp_path):
    found = read(tmp_path / "1", cells(), "x\x1b[2Jy\n<i>.ipynb")
    assert found.notes == ["x?[2Jy?<i>.ipynb was taken as a.ipynb"]
    found = read(tmp_path / "2", cells(), os.fsdecode(b"\xff\xfe" + b"z" * 200 + b".ipynb"))
    assert found.notes == [f"??{'z' * 77}… was taken as a.ipynb"]


def test_of_several_notebooks_the_name_decides_and_none_is_guessed(tmp_path):
    for name in "bcde":
        write(tmp_path, cells(name), f"{name}.ipynb")
    found = intake.read(tmp_path, "a")
    assert found.verdict == "missing"
    assert "4 notebooks in the folder, none of them a.ipynb: b.ipynb, c.ipynb, d.ipynb and 1 more" in found.notes[0]
    found = read(tmp_path, cells("a"))
    assert sources(found) == ["a"]
    assert found.notes == [
        "4 other notebooks were in the folder and not looked at: b.ipynb, c.ipynb, d.ipynb and 1 more"
    ]


def test_a_folder_inside_is_looked_through(tmp_path):
    write(tmp_path / "one" / "two", cells("x"), "a.ipynb")
    write(tmp_path / "one", cells("y"), "b.ipynb")
    write(tmp_path / "__MACOSX", cells("mac"), "a.ipynb")
    write(tmp_path / ".ipynb_checkpoints", cells("old"), "a-checkpoint.ipynb")
    found = intake.read(tmp_path, "a")
    assert sources(found) == ["x"] and found.notes == ["one/two/a.ipynb, in a folder of its own, was taken as a.ipynb"]
    write(tmp_path / "three", cells("z"), "a.ipynb")
    found = intake.read(tmp_path, "a")
    assert found.verdict == "missing" and "2 notebooks in folders inside" in found.notes[0]


def test_what_is_there_in_place_of_a_notebook_is_named(tmp_path):
    said = lambda: intake.read(tmp_path, "a").notes[0].partition(";")[0]  # noqa: E731
    assert said() == "there is no notebook in the folder"
    write(tmp_path / ".ipynb_checkpoints", cells(), "a-checkpoint.ipynb")
    write(tmp_path, b"", "._a.ipynb")
    assert said() == "there is no notebook in the folder, only Jupyter's checkpoint of one"
    write(tmp_path, b"", "a.zip")
    assert said() == "there is no notebook in the folder, only a.zip"


def pipe(path):
    os.mkfifo(path)


def device(path):
    try:
        os.mknod(path, 0o20644, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root can make a device")


def unix_socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:  # its path may not be long
        made.bind(path.name)


def link(path):
    elsewhere = path.parent.parent / "elsewhere.ipynb"
    elsewhere.write_text(json.dumps(cells("secret")))
    path.symlink_to(elsewhere)


def loop(path):
    path.symlink_to(path.name)


ODD_FILES = [(pipe, "a pipe"), (device, "a device"), (unix_socket, "a socket"), (link, "a link"), (loop, "a link"),
             (Path.mkdir, "a folder")]  # fmt: skip


@pytest.mark.parametrize(("make", "what"), ODD_FILES)
def test_what_is_no_regular_file_is_never_opened(tmp_path, make, what):
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / "a.ipynb")
    found = intake.read(folder, "a")
    assert found.verdict == "missing" and f"a.ipynb is {what}, not a file" in found.notes[0]
    write(folder, cells("x"), "b.ipynb")
    assert sources(intake.read(folder, "a")) == ["x"]


def test_a_huge_file_is_not_read(tmp_path):
    with open(tmp_path / "a.ipynb", "wb") as file:
        file.truncate(1 << 40)
    assert "is larger than 20 MB" in intake.read(tmp_path, "a").notes[0]


def test_links_to_folders_are_not_followed(tmp_path):
    write(tmp_path / "elsewhere", cells("secret"), "a.ipynb")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "work").symlink_to(tmp_path / "elsewhere")
    (folder / "again").symlink_to(folder)
    assert intake.read(folder, "a").verdict == "missing"


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-12-01 10:00:00.250000 UTC", "2026-12-01 10:00:00.250000 UTC\n"),
        ("\ufeff2026-12-01 10:00:00 Europe/Berlin\n", "2026-12-01 09:00:00.000000 UTC\n"),
        ("2026-12-01T10:00:00+01:00", "2026-12-01 09:00:00.000000 UTC\n"),
        ("2026-12-01 10:00:00 +0100", "2026-12-01 09:00:00.000000 UTC\n"),
        ("2026-12-01", "2026-12-01 00:00:00.000000 UTC\n"),
        ("10:00", None),  # dateutil would take the day from today
        ("monday", None),
        ("yesterday evening, about nine", None),
        ("", None),
        ("9" * 30, None),
        ("0001-01-01 00:00 +0200", None),
        ("2026-12-01 10:00 /etc/passwd", None),
        ("2026-12-01 " * 500, None),
        ("\0", None),
    ],
)
def test_a_time_is_written_as_nbgrader_reads_it_or_not_at_all(tmp_path, text, time):
    (tmp_path / "timestamp.txt").write_text(text, "utf-8")
    found, notes = timestamp.read(tmp_path)
    assert found == time and bool(notes) == (time is None)
    assert timestamp.served(tmp_path / "timestamp.txt") == (time == f"{text}\n")


@pytest.mark.parametrize(("make", "what"), ODD_FILES)
def test_a_time_that_is_no_file_is_none(tmp_path, make, what):
    (tmp_path / "folder").mkdir()
    make(tmp_path / "folder" / "timestamp.txt")
    assert timestamp.read(tmp_path / "folder")[0] is None
    assert not timestamp.served(tmp_path / "folder" / "timestamp.txt")


# --- rebuild ----------------------------------------------------------------------------------------------------------

LOCKED = {"grade": False, "locked": True, "solution": False}
SOLUTION = {"grade": False, "locked": False, "solution": True}


def master(*more):
    """Set-up, an answer, scratch paper, a check; another answer and its check."""
    made = [
        ("set-up", "import torch", LOCKED),
        ("f", "def f(): raise", SOLUTION),
        ("try", "f()", None),
        ("check-f", "check('x', f)", {**LOCKED, "grade": True, "points": 2}),
        ("g", "class g: pass", SOLUTION),
        ("check-g", "check('y', g)", {**LOCKED, "grade": True, "points": 2}),
        *more,
    ]
    made = [
        (id, source, {} if grader is None else {"nbgrader": {"grade_id": id, **grader}}) for id, source, grader in made
    ]
    kind = lambda id: "markdown" if id.startswith("text") else "code"  # noqa: E731
    return {"cells": [{"cell_type": kind(i), "id": i, "source": s, "metadata": m} for i, s, m in made], "metadata": {}}


def code(source, *names, kind="code"):
    return {"kind": kind, "source": source, "names": list(names)}


def handed_in(**texts):
    """Every cell of the master, some with another text; None for one that was deleted."""
    found = [(cell["id"], texts.get(cell["id"].replace("-", "_"), cell["source"])) for cell in master()["cells"]]
    return [code(text, id) for id, text in found if text is not None]


def rebuilt(*cells):
    """The texts of f's cells, of g's, and the notes."""
    made, notes = rebuild(master(), list(cells))
    texts = [cell["source"] for cell in made["cells"]]
    return texts[: texts.index("check('x', f)")], texts[texts.index("check('x', f)") + 1 :], notes


def test_the_master_alone():
    assert rebuild(master(), None) == (master(), [])
    assert rebuild(master(), handed_in()) == (master(), ["nothing was changed in the released notebook"])


def test_only_answers_and_added_cells_are_taken_and_keep_their_order():
    f, g, notes = rebuilt(
        code("import os", "set-up"),
        code("helper = 1"),
        code("def f(): 1", "f"),
        code("f(2)", "try"),
        code("check('x', f)", "check-f"),
        code("class g: 1", "g"),
        code("print(16)", "check-g"),
        code("print('end')"),
        code("  "),
    )
    assert f == ["import torch", "helper = 1", "def f(): 1", "f(2)"]
    assert g == ["class g: 1", "check('y', g)", "print('end')"]
    assert notes == ["what was changed in set-up, check-g does not count: such cells stay as released"]


def test_cells_may_come_in_any_order():
    assert rebuilt(*reversed(handed_in(f="def f(): 1", g="class g: 1"))) == (
        ["import torch", "def f(): 1", "f()"], ["class g: 1", "check('y', g)"], [],
    )  # fmt: skip


def test_a_deleted_answer_is_said_to_be_deleted():
    f, _, notes = rebuilt(*handed_in(f=None))
    assert f == ["import torch", "# This cell was deleted from the submission.", "f()"]
    assert notes == ["the cell f was deleted"]


def test_deleted_and_copied_checks_are_as_released():
    both = handed_in(f="def f(): 1", g="class g: 1")
    without = [cell for cell in both if not cell["names"][0].startswith("check")]
    twice = [cell for cell in both for _ in range(1 + cell["names"][0].startswith("check"))]
    assert rebuilt(*both) == rebuilt(*without) == rebuilt(*twice)


def test_of_copies_the_first_that_was_changed_counts():
    f, _, notes = rebuilt(*handed_in(), code("def f(): 1", "f"), code("def f(): 2", "f"))
    assert f == ["import torch", "def f(): 1", "f()"]
    assert notes == ["f was there 3 times: the first changed copy counts"]


def test_the_parts_of_a_split_answer_all_stay():
    start, *rest = handed_in(f=None)
    parts = [code("import math", "f"), code("def helper(): 1", "f"), code("def f(): helper()", "f"), code("f(1)", "f")]
    f, _, notes = rebuilt(start, *parts, *rest)
    assert f == ["import torch", "import math", "def helper(): 1", "def f(): helper()", "f(1)", "f()"] and not notes


def test_cells_without_names_are_found_by_their_text_and_their_function():
    stripped = [code(cell["source"]) for cell in handed_in(f="def f(): 1", g="class g: 1")]
    f, g, notes = rebuilt(*stripped)
    assert (f, g) == (["import torch", "def f(): 1", "f()"], ["class g: 1", "check('y', g)"])
    assert notes == ["cells had lost their names and were found by their functions: f, g"]


@pytest.mark.parametrize("names", [(None, "f"), ("renamed", "f", None), (None, None, "f"), ("f", "other")])
def test_any_name_that_is_left_is_enough(names):
    start, *rest = handed_in(f=None)
    assert rebuilt(start, code("f = lambda: 1", *names), *rest)[::2] == (["import torch", "f = lambda: 1", "f()"], [])


def test_of_two_nameless_answers_the_last_before_the_check_counts():
    start, *rest = handed_in(f=None)
    f, _, notes = rebuilt(start, code("def f(): 1"), code("def f(): 2"), *rest)
    assert f == ["import torch", "def f(): 1", "def f(): 2", "# This cell was deleted from the submission.", "f()"]
    assert notes == ["f was written in a cell of its own; the last one before the check counts"]


@pytest.mark.parametrize("own", ["class g: pass", None, "# I could not find the place"])
def test_two_answers_in_one_cell_both_count(own):
    both = "def f(): 1\n\n\nclass g: 1"
    f, g, notes = rebuilt(*handed_in(f=both, g=own))
    assert f == ["import torch", both, "f()"]
    assert [text for text in f + g if "class g" in text][-1] == both
    assert len(notes) == 1 and notes[0].startswith("g was written in")


def test_an_answer_that_comes_too_early_or_too_late_is_taken_to_its_place():
    for cells in ([code("def f(): 1"), *handed_in()], [*handed_in(), code("def f(): 1")], handed_in(g="def f(): 1")):
        f, _, notes = rebuilt(*cells)
        assert (
            f[-3:] == ["def f(): raise", "def f(): 1", "f()"]
            and "f was written in another cell and taken from there" in notes
        )


def test_an_answer_between_its_cell_and_its_check_stays_where_it_is():
    start, own, *rest = handed_in()
    assert rebuilt(start, own, code("def f(): 1"), *rest)[0] == ["import torch", "def f(): raise", "def f(): 1", "f()"]
    assert rebuilt(*handed_in(**{"try": "def f(): 1"}))[0] == ["import torch", "def f(): raise", "def f(): 1"]


def test_of_several_answers_in_other_places_none_is_guessed():
    f, _, notes = rebuilt(*handed_in(), code("def f(): 1"), code("def f(): 2"))
    assert f == ["import torch", "def f(): raise", "f()"] and notes == [
        "f was written in 2 other cells, and none of them counts"
    ]


def test_an_answer_of_its_own_is_never_replaced():
    for own in ("def f(): 1", "f = better(f)"):
        assert rebuilt(code("def f(): 0"), *handed_in(f=own), code("def f(): 2"))[::2] == (
            ["def f(): 0", "import torch", own, "f()"], [],
        )  # fmt: skip


def test_names_that_were_exchanged_cost_nothing():
    f, g, _ = rebuilt(*handed_in(f="class g: 1", g="def f(): 1"))
    assert f == ["import torch", "class g: 1", "def f(): 1", "f()"]
    assert g == ["def f(): 1", "class g: 1", "check('y', g)"]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_of_another_kind_is_taken_as_code(kind):
    start, own, *rest = handed_in(f="def f(): 1")
    f, _, notes = rebuilt(start, {**own, "kind": kind}, *rest)
    assert f == ["import torch", "def f(): 1", "f()"] and notes == ["f was not a code cell; its text was taken as code"]


def test_text_is_shown_as_it_was_typed():
    written = master(("text", "Your words:", SOLUTION))
    made, notes = rebuild(
        written,
        [
            *handed_in(),
            code("<b>mine</b> ```", "text", kind="markdown"),
            code("more", kind="raw"),
            code("f", "try", kind="markdown"),
        ],
    )
    assert [cell["source"] for cell in made["cells"][6:]] == [
        "````\n<b>mine</b> ```\n````",
        "```\nmore\n```",
        "```\nf\n```",
    ]
    assert {cell["cell_type"] for cell in made["cells"][6:]} == {"markdown"} and not notes
    unchanged, _ = rebuild(written, [*handed_in(), code("Your words:", "text", kind="markdown")])
    assert unchanged["cells"][-1]["source"] == "Your words:"
    deleted, notes = rebuild(written, handed_in())
    assert deleted["cells"][-1]["source"] == "This cell was deleted from the submission."
    assert notes == ["the cell text was deleted"]


def test_added_cells_get_ids_of_their_own():
    made, _ = rebuild(master(), [code("a"), code("b", "set-up"), code("c", "added-0"), code("d", kind="markdown")])
    ids = [cell["id"] for cell in made["cells"]]
    assert len(set(ids)) == len(ids) and ids[0] == "added-0"


def test_thousands_of_cells_take_no_time():
    many = [code(f"def f(): {i}", "f") for i in range(1000)] + [code(f"x = {i}") for i in range(1000)]
    assert len(rebuild(master(), many)[0]["cells"]) == 1006


# --- pages ------------------------------------------------------------------------------------------------------------

PAYLOADS = [
    "<script>payload()</script>",
    "</script><script>payload()</script>",
    "<img src=x onerror=payload()>",
    "![](https://payload.example/p.png)",
    "[click](javascript:payload())",
    "<https://payload.example>",
    "![p](attachment:payload.png)",
    "[p]: https://payload.example\n\n[p]",
    "<iframe src='//payload.example'></iframe>",
    "```\n<script>payload()</script>\n```",
    "~~~\n```\n````\n<script>payload()</script>",
    "</code></pre><script>payload()</script>",
    "$$ <img src=x onerror=payload()> $$",
    "\\begin{x}\n<script>payload()</script>\n\\end{x}",
    "a\n\n$$\n```\n<script>payload()</script>\n$$",
    "    <script>payload()</script>",
    "\r```\r\n<script>payload()</script>",
    "\u2028```\u2028<script>payload()</script>\x0c```",
    "<style>@import 'https://payload.example'</style>",
    "<svg onload=payload()><a href='javascript:payload()'>",
    "<!-- --><base href='https://payload.example'>",
]


CODE = {"outputs": [], "execution_count": None}


class Page(HTMLParser):
    """Keeps what a page would do with a payload, apart from showing it."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.live, self.shown, self.inside = [], 0, ""

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.live += [(tag, name, value) for name, value in attributes if "payload" in f"{name}{value}"]

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, words):
        if "payload" in words:
            self.shown += 1
            self.live += [(self.inside, words)] if self.inside in ("script", "style") else []

    def handle_comment(self, words):
        self.live += [("comment", words)] if "payload" in words else []


def page(notebook):
    from nbconvert import HTMLExporter

    cells = [
        {"id": str(i), **(CODE if cell["cell_type"] == "code" else {}), **cell}
        for i, cell in enumerate(notebook["cells"])
    ]
    whole = nbformat.from_dict({**notebook, "cells": cells, "nbformat": 4, "nbformat_minor": 5})
    html, _ = HTMLExporter().from_notebook_node(whole)
    found = Page()
    found.feed(html)
    return found


@pytest.mark.parametrize("kind", ["markdown", "raw", "code"])
def test_nothing_of_a_students_lives_in_a_page(tmp_path, kind):
    added = [{"cell_type": kind, "source": source, "metadata": {"raw_mimetype": "text/html"},
              "attachments": {"payload.png": {"image/png": "payload"}}} for source in PAYLOADS]  # fmt: skip
    found = page(rebuild(cohort.released(ASSIGNMENT), read(tmp_path, {"cells": added}).cells)[0])
    assert found.live == [] and found.shown >= len(PAYLOADS)


def test_nothing_of_a_text_answer_lives_in_a_page():
    for payload in PAYLOADS:
        made, _ = rebuild(master(("text", "Your words:", SOLUTION)), [code(payload, "text", kind="markdown")])
        found = page(made)
        assert found.live == [] and found.shown


def test_the_test_would_see_it():
    live = [
        page({"cells": [{"cell_type": "markdown", "source": payload, "metadata": {}}], "metadata": {}}).live
        for payload in PAYLOADS[:5]
    ]
    assert sum(map(bool, live)) >= 4


def test_long_lines_are_broken():
    line = ("word " * 24).strip()
    assert plain(f"{line} and so on\n    [x]\n\n") == f"```\n{line}\nand so on\n    [x]\n\n\n```"
    assert max(map(len, plain("[" * 100_000).split("\n"))) == 120


def test_no_fence_inside_is_as_long_as_the_one_around():
    for ticks in range(9):
        fence, inside, end = plain("`" * ticks).split("\n")
        assert fence == end and len(fence) > len(inside) and len(fence) >= 3


# --- received ---------------------------------------------------------------------------------------------------------


def hand_in(data, student="ada", content=None, name=NOTEBOOK):
    folder = data / "submitted" / student / ASSIGNMENT
    write(folder, answered(project_qkv="def project_qkv(): 1") if content is None else content, name)
    return folder


def originals(data, student="ada"):
    """The notebooks that are kept, with their numbers."""
    kept = data / "received" / student / ASSIGNMENT
    return {str(path.relative_to(kept)): path.read_bytes() for path in sorted(kept.rglob("*.ipynb")) if path.is_file()}


def test_the_original_is_kept_and_a_clean_copy_takes_its_place(data):
    made = answered(project_qkv="def project_qkv(): 1")
    made["cells"][0] |= {"attachments": {"x.png": {}}, "metadata": {"tags": ["skip-execution"]}}
    made["cells"][2]["outputs"] = [{"output_type": "display_data", "data": {"text/html": "<script>"}, "metadata": {}}]
    folder = hand_in(data, content=made, name="mine.ipynb")
    (folder / "torch.py").write_text("raise SystemExit")
    (folder / "timestamp.txt").write_text("2026-12-01 10:00 Europe/Berlin")
    taken = received.take(ASSIGNMENT, "ada")
    assert taken.notes == [f"mine.ipynb was taken as {NOTEBOOK}"] and taken.verdict == "graded"
    kept = data / "received" / "ada" / ASSIGNMENT / "001"
    assert json.loads((kept / "mine.ipynb").read_bytes()) == made and (kept / "torch.py").exists()
    assert {path.name for path in folder.iterdir()} == {NOTEBOOK, "timestamp.txt"}
    assert (folder / "timestamp.txt").read_text() == "2026-12-01 09:00:00.000000 UTC\n"
    clean = nbformat.read(folder / NOTEBOOK, 4)
    nbformat.validate(clean)
    assert {key for cell in clean.cells for key in cell.metadata} == {"nbgrader"}
    assert {key for cell in clean.cells for key in cell.metadata.get("nbgrader", {})} == {"grade_id"}
    assert not any(cell.get("outputs") or cell.get("attachments") for cell in clean.cells)
    assert (
        rebuild(cohort.released(ASSIGNMENT), taken.cells)[0]
        == rebuild(cohort.released(ASSIGNMENT), intake.cells(made))[0]
    )


def test_what_was_taken_is_not_new(data):
    folder = hand_in(data)
    first = received.take(ASSIGNMENT, "ada")
    (folder / ".ipynb_checkpoints").mkdir()  # somebody looked at it in Jupyter
    (folder / ".DS_Store").write_text("")
    write(folder, (folder / NOTEBOOK).read_bytes())  # or handed in the very same
    assert received.take(ASSIGNMENT, "ada") == first
    assert list(originals(data)) == [f"001/{NOTEBOOK}"]
    (folder / ".link").symlink_to("/etc/passwd")
    received.take(ASSIGNMENT, "ada")
    assert list(originals(data)) == [f"001/{NOTEBOOK}", f"002/{NOTEBOOK}"] and not (folder / ".link").is_symlink()


@pytest.mark.parametrize("name", [NOTEBOOK, f"{ASSIGNMENT} (1).ipynb", "mine.ipynb", f"unpacked/{NOTEBOOK}"])
def test_a_later_upload_is_kept_beside_the_first(data, name):
    folder = hand_in(data)
    received.take(ASSIGNMENT, "ada")
    later = answered(project_qkv="def project_qkv(): 2")
    write((folder / name).parent, later, (folder / name).name)
    taken = received.take(ASSIGNMENT, "ada")
    assert "def project_qkv(): 2" in sources(taken)
    assert json.loads(originals(data)[f"002/{name}"]) == later and f"001/{NOTEBOOK}" in originals(data)
    assert received.take(ASSIGNMENT, "ada") == taken


@pytest.mark.parametrize(
    ("content", "verdict", "reason"),
    [(b"{", "unreadable", "breaks off"), (None, "missing", "no notebook in the folder")],
)
def test_where_nothing_can_be_read_the_released_notebook_takes_its_place(data, content, verdict, reason):
    folder = data / "submitted" / "ada" / ASSIGNMENT
    folder.mkdir(parents=True)
    if content:
        write(folder, content)
    for _ in range(2):
        taken = received.take(ASSIGNMENT, "ada")
        assert (taken.cells, taken.verdict) == (None, verdict) and reason in taken.notes[0]
    assert nbformat.read(folder / NOTEBOOK, 4).cells[0].source == cohort.released(ASSIGNMENT)["cells"][0]["source"]
    hand_in(data)
    assert received.take(ASSIGNMENT, "ada").verdict == "graded"


@pytest.mark.parametrize(("make", "what"), ODD_FILES[:-1])
@pytest.mark.parametrize("place", [f"ada/{ASSIGNMENT}", "ada"])
def test_what_lies_where_a_folder_should_is_moved_unopened(data, make, what, place):
    path = data / "submitted" / place
    path.parent.mkdir(parents=True)
    make(path)
    taken = received.take(ASSIGNMENT, "ada")
    assert (
        taken.verdict == "missing"
        and f"{what} was handed in where a folder with the notebook belongs" in taken.notes[0]
    )
    assert received.take(ASSIGNMENT, "ada") == taken and os.path.lexists(data / f"received/ada/{ASSIGNMENT}/001")


def test_a_student_that_is_a_link_leads_nowhere(data, tmp_path):
    write(tmp_path / "elsewhere" / ASSIGNMENT, answered())
    (data / "submitted").mkdir(parents=True)
    (data / "submitted" / "ada").symlink_to(tmp_path / "elsewhere")
    assert received.take(ASSIGNMENT, "ada").verdict == "missing"
    assert [path.name for path in (tmp_path / "elsewhere" / ASSIGNMENT).iterdir()] == [NOTEBOOK]
    assert not (data / "submitted" / "ada").is_symlink()


def test_nothing_handed_in_is_missing_and_writes_nothing(data):
    nothing = Taken(None, ["nothing was handed in"], "missing")
    assert received.take(ASSIGNMENT, "ada") == nothing
    hand_in(data)
    received.take(ASSIGNMENT, "ada")
    os.rename(data / "submitted" / "ada", data / "withdrawn")
    received.repair()
    assert received.take(ASSIGNMENT, "ada") == nothing and not (data / "submitted" / "ada").exists()


def test_a_time_that_is_none_is_noted_and_nbgrader_never_meets_it(data):
    for student, text in (("ada", "garbage"), ("bob", "2026-12-01 10:00:00.000000 UTC")):
        (hand_in(data, student) / "timestamp.txt").write_text(text)
    os.mkfifo(hand_in(data, "eve") / "timestamp.txt")
    received.repair()
    assert [path.parents[1].name for path in (data / "submitted").rglob("timestamp.txt")] == ["bob"]
    assert originals(data, "ada") and originals(data, "eve") and not originals(data, "bob")
    assert "timestamp.txt holds no date" in received.take(ASSIGNMENT, "ada").notes[0]


def test_a_lost_or_damaged_record_is_made_again(data):
    hand_in(data, name="mine.ipynb")
    first = received.take(ASSIGNMENT, "ada")
    record = data / "intake" / ASSIGNMENT / "ada.json"
    for content in (None, "", "[]", "{}", '{"original": "x"}'):
        record.write_text(content) if content is not None else record.unlink()
        assert received.take(ASSIGNMENT, "ada") == first and len(originals(data)) == 1


def test_an_original_need_not_be_kept_for_ever(data):
    hand_in(data)
    first = received.take(ASSIGNMENT, "ada")
    os.rename(data / "received", data / "archive")
    received.repair()
    assert received.take(ASSIGNMENT, "ada") == first
    hand_in(data, content=answered(project_qkv="def project_qkv(): 2"))
    assert "def project_qkv(): 2" in sources(received.take(ASSIGNMENT, "ada"))
    assert list(originals(data)) == [f"002/{NOTEBOOK}"]


def as_nobody(work, folder):
    """Run `work` as an ordinary user, who owns `folder`; what it returns, by way of JSON."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            if os.geteuid() == 0:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, 65534, 65534)
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as said:
        return json.load(said)


def test_what_may_not_be_opened_is_said(monkeypatch):
    with tempfile.TemporaryDirectory() as made:  # below a folder that anybody may enter
        data = Path(made)
        monkeypatch.setenv("COURSE_DATA", made)
        hand_in(data, "file").joinpath(NOTEBOOK).chmod(0)
        hand_in(data, "folder").chmod(0)
        hand_in(data, "read-only").chmod(0o500)
        hand_in(data, "student").parent.chmod(0)

        def work():
            received.repair()
            found = [received.take(ASSIGNMENT, name) for name in ("file", "folder", "read-only", "student")]
            return [[one.verdict, *one.notes] for one in found] + submitted.misplaced(ASSIGNMENT)

        file, folder, read_only, student, *misplaced = as_nobody(work, data)
    assert file[0] == "unreadable" and "it may not be opened (Permission denied)" in file[1]
    assert folder == read_only == ["graded"]  # its owner may change that
    assert student == ["missing", "nothing was handed in"]
    assert misplaced == [["student", "the folder submitted/student may not be opened by the grader"]]


def test_folders_on_two_disks_are_the_instructors_to_mend(data, monkeypatch):
    hand_in(data)
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(18, "Invalid cross-device link")))
    with pytest.raises(BadInput, match="lie on different disks"):
        received.take(ASSIGNMENT, "ada")


# --- kill -9 ----------------------------------------------------------------------------------------------------------

CHANGES = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree"}


def killed(number, work):
    """Run `work` in a process that ends, as by kill -9, before its change `number` to a file; whether it did."""
    if (child := os.fork()) == 0:
        left = [number]

        def count(event, arguments):
            left[0] -= event in CHANGES
            if left[0] < 0:
                os._exit(9)

        try:
            sys.addaudithook(count)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 9


def state(data):
    """Everything below the class's folder."""
    return {
        str(path.relative_to(data)): path.read_bytes() if path.is_file() else None for path in sorted(data.rglob("*"))
    }


def first(data):
    hand_in(data, name="mine <b>.ipynb").joinpath("timestamp.txt").write_text("2026-12-01")


def again(data):
    first(data)
    received.take(ASSIGNMENT, "ada")
    hand_in(data, content=answered(project_qkv="def project_qkv(): 2"), name="mine.ipynb")


def unreadable(data):
    hand_in(data, content=b"{")


def work():
    received.repair()
    received.take(ASSIGNMENT, "ada")


@pytest.mark.parametrize("scene", [first, again, unreadable])
def test_a_kill_at_any_moment_changes_nothing_in_the_end(tmp_path, monkeypatch, scene):
    """Killed before each change, and killed again soon afterwards: the same files, the same Taken."""

    def begin(name):
        monkeypatch.setenv("COURSE_DATA", str(tmp_path / name))
        scene(tmp_path / name)
        return tmp_path / name

    data = begin("whole")
    work()
    wanted, taken, number = state(data), received.take(ASSIGNMENT, "ada"), 0
    while True:
        data = begin(str(number))
        if not killed(number, work):
            break
        killed(number % 7, work)
        received.repair()
        assert (data / "submitted" / "ada" / ASSIGNMENT).is_dir()  # nbgrader would find it
        assert received.take(ASSIGNMENT, "ada") == taken and state(data) == wanted, f"killed before change {number}"
        number += 1
    assert number > 10


# --- names and places -------------------------------------------------------------------------------------------------

UNFIT = [
    "a\nb",
    " ada",
    "ada ",
    "a*",
    "[a]",
    "a,b",
    "<b>",
    "_x",
    "-x",
    "a\u202eb",
    "x" * 101,
    "u\u0308ber",
    os.fsdecode(b"\xff"),
]


@pytest.mark.parametrize("name", ["ada", "Ada Lovelace", "müller", "o'brien+1@uni.example", "s1234 (2)", "x" * 100])
def test_ordinary_names_are_served(data, name):
    assert submitted.unfit(name) is None
    hand_in(data, name)
    received.repair()
    assert received.take(ASSIGNMENT, name).verdict == "graded" and submitted.misplaced(ASSIGNMENT) == []


def test_folders_that_nbgrader_would_stumble_over_are_put_aside(data):
    for name in UNFIT:
        hand_in(data, name)
    hand_in(data, "ada")
    received.repair()
    received.repair()
    assert os.listdir(data / "submitted") == ["ada"]
    assert {os.path.basename(path) for path in (data / "received" / "_misplaced").glob("*/*")} == set(UNFIT)
    found = submitted.misplaced(ASSIGNMENT)
    assert len(found) == len(UNFIT) and all(student is None and sentence.isprintable() for student, sentence in found)
    reason = (
        "the folder 'a?b' in submitted/ is no student's: its name holds characters that cannot be shown; it is now in"
    )
    assert any(sentence.startswith(reason) for _, sentence in found)
    for name in UNFIT:
        assert received.take(ASSIGNMENT, name).verdict == "missing"


def test_what_is_not_in_its_place_gets_a_sentence(data):
    root = data / "submitted"
    write(root, b"", "loose.ipynb")
    write(root / "bob", answered())
    write(root / "cleo" / "02-Queries-Keys-Values (1)", answered())
    write(root / "dan" / "01_another", answered())
    write(root / "eve", b"", ASSIGNMENT)
    write(root / "fay", answered(), "homework.ipynb")
    write(root / ".gil" / ASSIGNMENT, answered())
    (root / "hal").symlink_to("hal")
    for name in (".DS_Store", "Thumbs.db"):
        write(root, b"", name)
    (root / "__MACOSX").mkdir()
    hand_in(data, "ada")
    found = {student or sentence.split()[0]: sentence for student, sentence in submitted.misplaced(ASSIGNMENT)}
    assert "the folder '.gil' in submitted/ is no student's: its name does not begin" in found.pop("the")
    assert set(found) == {"bob", "cleo", "eve", "fay", "submitted/hal", "submitted/loose.ipynb"}
    assert (
        found["bob"]
        == f"the notebook belongs into submitted/bob/{ASSIGNMENT}; there is submitted/bob/{NOTEBOOK} instead"
    )
    assert "submitted/cleo/02-Queries-Keys-Values (1) instead" in found["cleo"]
    assert "submitted/fay/homework.ipynb instead" in found["fay"]
    assert found["eve"] == f"submitted/eve/{ASSIGNMENT} is a file, where a folder with the notebook should be"
    assert "is a link; a submission is a folder, submitted/STUDENT/" in found["submitted/hal"]


def test_repair_of_nothing_makes_nothing(data):
    received.repair()
    assert not data.exists() and submitted.misplaced(ASSIGNMENT) == []


# --- the roster -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "students"),
    [
        (None, []),
        ("id\nada\n", [{"id": "ada"}]),
        (
            "\ufeffid, first_name\r\n ada ,Ada\r\n\r\nbob,\r\n",
            [{"id": "ada", "first_name": "Ada"}, {"id": "bob", "first_name": None}],
        ),
        ('email,id,group\n,ada,"3, Tuesday"\n', [{"id": "ada", "email": None}]),
        ("id,last_name\nada\n", [{"id": "ada", "last_name": None}]),
    ],
)
def test_a_roster_is_read_as_nbgrader_reads_it(data, content, students):
    data.mkdir()
    if content is not None:
        (data / "roster.csv").write_text(content, "utf-8", newline="")
    assert roster.read() == students


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: one column must be named id"),
        (b"name\nAda\n", "line 1: one column must be named id"),
        (b"id;first_name\nada;Ada\n", "line 1: the columns are separated by semicolons"),
        (b"id,first_name\nada,Lovelace, Ada\n", "line 2: 3 values for 2 columns"),
        (b'id,x\nada,"two\nlines"\nada,\n', "line 4: the id ada is that of line 2 too"),
        (b"id,x\n,Ada\n", "line 2: the id '' is not there"),
        (b"id\n\n../ada\n", "line 3: the id '../ada' holds '/', where only letters"),
        (b'id\n"ada\n', "line 2: "),
        (b"id\nada\0\n", "line 2: "),
        ("id\nmüller\n".encode("latin-1"), "is not in UTF-8"),
    ],
)
def test_a_roster_that_is_none_gets_one_sentence(data, content, reason):
    write(data, content, "roster.csv")
    with pytest.raises(BadInput) as raised:
        roster.read()
    said = str(raised.value)
    assert said.startswith(f"{data / 'roster.csv'}") and reason in said and len(said.splitlines()) == 1
