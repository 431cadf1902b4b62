"""solutions/ -> notebooks/: the same bytes each time, what nbgrader itself would release, and never a solution."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_output
from traitlets.config import Config

from autograder import notebooks
from autograder.exercises import get
from autograder.judging import judge

ROOT = notebooks.ROOT
SOURCES = sorted((ROOT / "solutions").glob("*.py"))
every_problem_set = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)

SMALL = """
# %% [markdown]
# # One exercise

# %%
from autograder import check

# %% tags=["solution"]
def double(x):
    \"\"\"Twice x.\"\"\"
    ### BEGIN SOLUTION
    return x + x  # not "x * x"
    ### END SOLUTION

# %% tags=["try"]
double(2)

# %% tags=["check"]
check("ch99/double", double)
""".lstrip()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course whose only exercise is ch99/double."""

    def get(name):
        if name != "ch99/double":
            raise ValueError(f"name is {name!r}, which is no exercise; there is ch99/double.")
        return SimpleNamespace(function="double", max_points=3, see="99-doubling#twice")

    monkeypatch.delenv("COURSE_BOOK", raising=False)
    monkeypatch.setattr(notebooks, "get", get)
    (tmp_path / "solutions").mkdir()
    return tmp_path


def make(course, source=SMALL, check=False):
    (course / "solutions/small.py").write_text(source, "utf8")
    return notebooks.main(check, course)


def cells(path):
    return {cell.id: cell for cell in nbformat.read(path, 4).cells}


def student(course):
    return course / "notebooks/small/small.ipynb"


def files(course):
    return {path.relative_to(course).as_posix(): path.read_bytes() for path in course.rglob("*.ipynb")}


# What is made of a cell


def test_a_check_cell_is_graded_for_the_points_of_its_exercise(course):
    make(course)
    graded = cells(student(course))["check-double"].metadata
    assert graded.nbgrader.items() >= {"grade": True, "locked": True, "solution": False, "points": 3}.items()
    assert graded.editable is False


def test_a_solution_cell_is_the_students_and_keeps_its_signature_and_docstring(course):
    make(course)
    cell = cells(student(course))["double"]
    assert cell.metadata.nbgrader.items() >= {"grade": False, "locked": False, "solution": True}.items()
    assert "editable" not in cell.metadata
    assert cell.source == f'def double(x):\n    """Twice x."""\n    {notebooks.STUB}'


def test_a_try_cell_is_scratch_paper_and_does_not_stop_run_all(course):
    make(course)
    assert cells(student(course))["double-2"].metadata == {"tags": ["raises-exception"]}


def test_every_other_cell_is_read_only(course):
    make(course)
    for name in ("one-exercise", "one-exercise-2"):
        cell = cells(student(course))[name]
        assert cell.metadata.nbgrader.items() >= {"grade": False, "locked": True, "solution": False}.items()
        assert cell.metadata.editable is False and cell.metadata.deletable is False


def test_the_source_for_nbgrader_holds_the_solution(course):
    make(course)
    source = course / "_build/source/small/small.ipynb"
    assert "return x + x" in cells(source)["double"].source
    assert list(source.parent.iterdir()) == [source]  # nbgrader would release whatever lay beside it


def test_an_edit_of_one_section_leaves_the_ids_of_the_others(course):
    make(course)
    before = cells(student(course))
    make(course, SMALL.replace("# %%\nfrom", "# %% [markdown]\n# A word first.\n\n# %%\nfrom"))
    assert cells(student(course)).keys() - before.keys() == {"one-exercise-3"}


# What prose may hold


def prose(course, text):
    make(course, SMALL.replace("# # One exercise", f"# # One exercise\n#\n# {text}"))
    return cells(student(course))["one-exercise"].source.removeprefix("# One exercise\n\n")


def test_an_exercise_in_prose_becomes_its_points_and_its_section(course):
    twice = "[99-doubling#twice](../../_build/html/book/99-doubling.html#twice)"
    assert prose(course, "{{ch99/double}} · easy") == f"**3 points** · {twice} · easy"
    assert prose(course, "See {{99-doubling#twice}}.") == f"See {twice}."


def test_the_links_lead_to_the_courses_own_book(course, monkeypatch):
    monkeypatch.setenv("COURSE_BOOK", "https://example.org/course/")
    assert prose(course, "{{99-doubling#twice}}").endswith("(https://example.org/course/book/99-doubling.html#twice)")


def test_every_problem_set_begins_with_the_same_words(course):
    (course / "solutions/introduction.md").write_text("Run the `check`.\n", "utf8")
    assert prose(course, "{{introduction}}") == "Run the `check`."


def test_braces_of_a_formula_stay(course):
    assert prose(course, "$e^{{x}_{i}}$") == "$e^{{x}_{i}}$"


# What is written


def test_the_same_source_gives_the_same_bytes(course):
    make(course)
    first = files(course)
    shutil.rmtree(course / "notebooks")
    make(course)
    assert files(course) == first


def test_only_what_changed_is_written(course, capsys):
    make(course)
    make(course)
    assert capsys.readouterr().out.splitlines() == [
        "wrote _build/source/small/small.ipynb",
        "wrote notebooks/small/small.ipynb",
        "fresh _build/source/small/small.ipynb",
        "fresh notebooks/small/small.ipynb",
    ]


def answered(course):
    notebook = nbformat.read(student(course), 4)
    for cell in notebook.cells:
        cell.source = cell.source.replace(notebooks.STUB, "return 2 * x")
    nbformat.write(notebook, student(course))


def run(course):
    notebook = nbformat.read(student(course), 4)
    notebook.cells[-1].outputs = [new_output("stream", text="3 of 3")]
    nbformat.write(notebook, student(course))


def noted(course):
    notebook = nbformat.read(student(course), 4)
    notebook.cells.append(new_markdown_cell("Twice, not the square."))
    nbformat.write(notebook, student(course))


def broken(course):
    student(course).write_text("{ half of it")


@pytest.mark.parametrize("work", [answered, run, noted, broken])
def test_what_somebody_wrote_into_a_notebook_is_kept(course, capsys, work):
    make(course)
    fresh = student(course).read_bytes()
    for n in (1, 2):
        work(course)
        theirs = student(course).read_bytes()
        capsys.readouterr()
        assert make(course) == 0
        assert student(course).read_bytes() == fresh
        assert (course / f"notebooks/small-yours-{n}.ipynb").read_bytes() == theirs
        assert f"kept  notebooks/small-yours-{n}.ipynb, which holds your answers" in capsys.readouterr().out


def test_a_stale_notebook_without_answers_is_written_over(course):
    make(course)
    make(course, SMALL.replace("Twice x", "2x"))
    assert [path.name for path in (course / "notebooks").rglob("*.ipynb")] == ["small.ipynb"]


def test_check_passes_on_a_fresh_clone_and_writes_nothing(course, capsys):
    make(course)
    shutil.rmtree(course / "_build")
    before = files(course)
    assert make(course, check=True) == 0
    assert files(course) == before
    assert capsys.readouterr().out.splitlines()[2:] == []


def test_check_names_a_stale_notebook(course, capsys):
    make(course)
    capsys.readouterr()
    assert make(course, SMALL.replace("Twice x", "2x"), check=True) == 1
    assert capsys.readouterr().out.startswith("stale notebooks/small/small.ipynb: run `python -m autograder notebooks`")


def test_check_names_a_notebook_that_is_missing(course, capsys):
    assert make(course, check=True) == 1
    assert capsys.readouterr().out.startswith("stale notebooks/small/small.ipynb")


@pytest.mark.parametrize("secret", ["BEGIN SOLUTION", 'return x + x  # not "x * x"'])
def test_check_names_a_solution_in_a_students_notebook(course, capsys, secret):
    make(course)
    notebook = nbformat.read(student(course), 4)
    notebook.cells[0].source += f"\n{secret}"
    nbformat.write(notebook, student(course))
    assert make(course, check=True) == 1
    assert f"leak notebooks/small/small.ipynb: it holds {secret!r}" in capsys.readouterr().out


def test_check_names_a_notebook_that_has_no_source(course, capsys):
    make(course)
    shutil.copytree(student(course).parent, course / "notebooks/old")
    capsys.readouterr()
    assert make(course, check=True) == 1
    assert capsys.readouterr().out.startswith("orphan notebooks/old/small.ipynb: no file in solutions/ makes it")


def test_a_kill_while_writing_leaves_the_old_notebooks_and_nothing_that_nbgrader_would_release(course, monkeypatch):
    make(course)
    before = files(course)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        make(course, SMALL.replace("Twice x", "2x"))
    assert files(course) == before
    assert os.listdir(course / "_build/source/small") == ["small.ipynb"]


# What is refused

HERE = "solutions/small.py, line "
REFUSED = {
    "an unknown exercise": (
        ("ch99/double", "ch99/duoble"),
        "17: name is 'ch99/duoble', which is no exercise; there is ch99/double.",
    ),
    "an unknown exercise in prose": (
        ("# # One exercise", "# # One exercise\n#\n# {{ch99/duoble}}"),
        "1: name is 'ch99/duoble', which is no exercise; there is ch99/double.",
    ),
    "a solution without markers": (
        ("### BEGIN SOLUTION", "#"),
        "7: a solution stands between `### BEGIN SOLUTION` and `### END SOLUTION`; found ['END SOLUTION'].",
    ),
    "a check of something else": (
        ('check("ch99/double", double)', "print(double(2))"),
        '17: a check cell is one call, as check("ch02/project_qkv", project_qkv).',
    ),
    "a check without a solution": (
        ("def double", "def triple"),
        "17: double is checked, but no solution cell above defines it.",
    ),
    "a solution without a check": (
        (' tags=["check"]', ""),
        "7: double is never checked; add a cell tagged check after it.",
    ),
    "a function checked twice": (
        ("# %% [markdown]", SMALL),
        "35: double is checked twice; keep one of the checks.",
    ),
    "a heading used twice": (
        ("# %%\nfrom", "# %% [markdown]\n# ## One exercise\n\n# %%\nfrom"),
        "4: the id 'one-exercise' is taken by solutions/small.py, line 1; change the name or heading of one.",
    ),
    "a function defined twice": (
        ('# %% tags=["check"]', '# %% tags=["solution"]\ndef double(x): ...\n\n# %% tags=["check"]'),
        "17: the id 'double' is taken by solutions/small.py, line 7; change the name or heading of one.",
    ),
    "two functions in a solution cell": (
        ("    ### END SOLUTION", "    ### END SOLUTION\n\ndef triple(x): ..."),
        "7: a solution cell defines one function or class and holds nothing else.",
    ),
    "a misspelt tag": (
        ('tags=["try"]', 'tags=["tyr"]'),
        "14: the tags are ['tyr']; a cell has one of solution, check and try, or none.",
    ),
    "a tag on prose": (
        ("# %% [markdown]", '# %% [markdown] tags=["solution"]'),
        "1: a markdown cell is tagged 'solution'; only code cells carry tags.",
    ),
    "text before the first cell": (
        ("# %% [markdown]", "import math\n\n# %% [markdown]"),
        "1: text stands before the first cell; begin the file with a line `# %%`.",
    ),
    "what is not Python": (
        ("def double(x):", "def double(x)"),
        "7: this is no Python (expected ':', line 1 of the cell).",
    ),
    "a solution that a hint gives away": (
        ("# # One exercise", '# # One exercise\n#\n# Hint: return x + x  # not "x * x"'),
        "1: students would read 'return x + x  # not \"x * x\"', which belongs to a solution; take it out.",
    ),
    "markers outside a solution cell": (
        ("double(2)", "### BEGIN SOLUTION\ndouble(2)\n### END SOLUTION"),
        "14: students would read 'BEGIN SOLUTION', which belongs to a solution; take it out.",
    ),
}


@pytest.mark.parametrize("change, sentence", REFUSED.values(), ids=REFUSED.keys())
def test_a_malformed_source_is_refused_in_one_sentence_and_nothing_is_written(course, capsys, change, sentence):
    make(course)
    before = files(course)
    capsys.readouterr()
    assert make(course, SMALL.replace(*change, 1)) == 1
    assert capsys.readouterr() == ("", f"{HERE}{sentence}\n")
    assert files(course) == before


def test_a_course_without_problem_sets_is_refused(course, capsys):
    assert notebooks.main(check=False, root=course) == 1
    assert capsys.readouterr().err == (
        f"{course / 'solutions'} holds no problem set (*.py), so there is no notebook to make.\n"
    )


def test_a_source_that_is_no_text_is_refused(course, capsys):
    (course / "solutions/small.py").write_bytes(b"# %%\n\xff")
    assert notebooks.main(check=False, root=course) == 1
    assert capsys.readouterr().err == "solutions/small.py, byte 5: this is no UTF-8; save the file as UTF-8.\n"


def test_a_folder_that_cannot_be_written_is_named(course, capsys):
    (course / "notebooks").write_text("a file where a folder belongs")
    assert make(course) == 1
    assert capsys.readouterr().err.startswith(f"{course / 'notebooks'}")


# What is committed


def test_the_committed_notebooks_are_fresh_and_leak_nothing(monkeypatch):
    monkeypatch.delenv("COURSE_BOOK", raising=False)
    assert notebooks.main(check=True) == 0


@every_problem_set
def test_a_committed_notebook_is_valid_and_bare(source):
    path = ROOT / "notebooks" / source.stem / f"{source.stem}.ipynb"
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert notebook.metadata == {"kernelspec": notebooks.KERNEL}
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


@every_problem_set
def test_each_exercise_is_announced_with_its_points_in_the_order_of_the_checks(source):
    text = source.read_text("utf8")
    announced = re.findall(r"^# \{\{(ch\d\d/\w+)\}\}", text, re.MULTILINE)
    assert announced == re.findall(r'^check\("(.+?)"', text, re.MULTILINE)


@every_problem_set
def test_the_solutions_get_full_points(source):
    answers = runpy.run_path(str(source))  # a problem set is also a plain Python program
    for name in re.findall(r'^check\("(.+?)"', source.read_text("utf8"), re.MULTILINE):
        report = judge(name, answers[get(name).function], hidden=True, seed=1)
        assert report.points == report.max_points, str(report)


@every_problem_set
def test_nbgrader_makes_the_same_release(source, tmp_path):
    one = notebooks.problem_set(source)
    made = tmp_path / "_build/source" / one.name / f"{one.name}.ipynb"
    made.parent.mkdir(parents=True)
    made.write_text(one.master, "utf8")
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    nbgrader("generate_assignment", one.name, "--force", cwd=tmp_path)
    released = (tmp_path / "notebooks" / one.name / f"{one.name}.ipynb").read_text("utf8")
    assert json.loads(released) == json.loads(one.student)
    assert released == one.student


def nbgrader(*command, cwd):
    """Run one of nbgrader's own commands, in a course whose data lies in its class/."""
    environment = {**os.environ, "COURSE_DATA": "", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-m", "nbgrader", *command], cwd=cwd, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


# Where nbgrader looks


def configured(data, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(data))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the configuration adds to it
    return runpy.run_path(str(ROOT / "nbgrader_config.py"), {"get_config": Config})["c"]


def test_a_cohorts_data_lies_where_course_data_says(tmp_path, monkeypatch):
    c = configured(tmp_path / "2031", monkeypatch)
    for step in ("submitted", "autograded", "feedback"):
        below_root = c.CourseDirectory[f"{step}_directory"]
        assert os.path.normpath(os.path.join(c.CourseDirectory.root, below_root)) == str(tmp_path / "2031" / step)
    assert c.CourseDirectory.db_url == f"sqlite:///{tmp_path / '2031/gradebook.db'}"
    assert (tmp_path / "2031").is_dir()


def test_course_data_that_cannot_be_a_folder_is_refused_in_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(SystemExit, match=r"taken cannot be made \(.+\); set COURSE_DATA to a folder you may write\."):
        configured(tmp_path / "taken", monkeypatch)


def test_nbgraders_stub_is_ours(tmp_path, monkeypatch):
    assert configured(tmp_path, monkeypatch).ClearSolutions.code_stub == {"python": notebooks.STUB}
