"""The book builds without a warning, a failing cell stops it, and page 02 holds what it promises."""

import ast
import re
import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from building import build

from autograder import exercises

ROOT = Path(__file__).parents[1]
PAGE = "02-queries-keys-values"
SOLUTIONS = ROOT / "solutions/02_queries_keys_values.py"
NOTEBOOK = ROOT / "notebooks/02_queries_keys_values/02_queries_keys_values.ipynb"
HEADER = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3}
---
"""


@pytest.fixture(scope="session")
def page(book):
    return BeautifulSoup((book / f"{PAGE}.html").read_text("utf8"), "html.parser").article


def tiny(folder, cell):
    """A book of one page with one cell, under the course's own configuration."""
    shutil.copytree(ROOT / "book/_static", folder / "book/_static")
    for name in ("_config.yml", "book/references.bib"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    (folder / "book/index.md").write_text(f"{HEADER}# One page\n\n```{{code-cell}} ipython3\n{cell}\n```\n")
    return build(folder, folder / "out")


@pytest.mark.parametrize(
    ("cell", "says"),
    [("1 / 0", "ZeroDivisionError"), ("import warnings; warnings.warn('look here')", "stderr was found")],
)
def test_a_cell_that_fails_or_warns_stops_the_build(tmp_path, cell, says):
    done = tiny(tmp_path, cell)
    assert done.returncode != 0
    assert says in done.stdout


def test_every_feedback_link_leads_to_a_section(book):
    seen = [e.see.split("#") for e in exercises() if (book / f"{e.see.split('#')[0]}.html").exists()]
    assert {anchor for name, anchor in seen if name == PAGE} == {
        "three-projections",
        "why-root-d",
        "scaled-dot-product-attention",
        "backward-by-hand",
    }
    for name, anchor in seen:
        assert f'id="{anchor}"' in (book / f"{name}.html").read_text("utf8"), f"{name}#{anchor}"


def cells():
    """The code cells in the page's source, those that it hides too: a reader can download them."""
    return re.findall(
        r"^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^```",
        (ROOT / f"book/{PAGE}.md").read_text("utf8"),
        re.DOTALL | re.MULTILINE,
    )


def test_no_exercise_is_solved_on_the_page():
    code = "\n".join(cells())
    bare = re.sub(r"\s+", "", code)
    solutions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", SOLUTIONS.read_text("utf8"), re.S)
    lines = [re.sub(r"\s+", "", line.split("#")[0]) for solution in solutions for line in solution.splitlines()]
    assert len(solutions) == 4
    assert not [line for line in lines if len(line) > 15 and line in bare]
    assert not [e.function for e in exercises() if f"def {e.function}(" in code]
    assert ".var(" not in code


def test_every_print_writes_one_string():
    """Several arguments reach the page as several outputs, now and then."""
    calls = [node for cell in cells() for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Call)]
    printed = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert len(printed) > 10
    assert not [ast.unparse(call) for call in printed if len(call.args) != 1]


def test_every_pasted_number_is_there(page):
    source = (ROOT / f"book/{PAGE}.md").read_text("utf8")
    pasted = [span.get_text() for span in page.select(".pasted-text")]
    assert len(pasted) == len(re.findall(r"\{glue:text\}", source)) > 20
    assert all(re.fullmatch(r"[\d,]+(\.\d+)?", number) for number in pasted), pasted


def test_the_page_says_what_was_measured(page):
    text = page.get_text(" ", strip=True)
    assert "It gives 0.258 , 0.426 and 0.316" in text
    at_64, at_1024 = (float(n) for n in re.search(r"it is ([\d.]+) , and at .*? it is (\d+) ; over all", text).groups())
    assert abs(at_64 / 64 - 1) < 0.05
    assert abs(at_1024 / 1024 - 1) < 0.05


def test_the_page_lists_each_exercise_with_its_points(page):
    rows = [[cell.get_text() for cell in row.select("td")] for row in page.select("#problem-set tr")]
    listed = {row[0]: int(row[1]) for row in rows if row}
    assert listed == {e.function: e.max_points for e in exercises() if e.chapter == "ch02"}


def test_the_page_offers_the_notebook(page, book):
    link = page.select_one("a.download")["href"]
    assert (book / link).resolve().read_bytes() == NOTEBOOK.read_bytes()


def test_every_figure_is_numbered_and_described(page):
    drawings = page.select(".drawing svg")
    assert drawings and all(svg["role"] == "img" and len(svg["aria-label"]) > 40 for svg in drawings)
    figures = page.select("figure:has(.drawing)")
    assert len(figures) == len(page.select("figure")) == len(page.select("figure .caption-number"))
    ids = [tag["id"] for tag in page.select("svg [id]")]
    assert len(ids) == len(set(ids))


def test_the_slider_holds_every_frame_and_shows_one(page):
    frames = page.select_one(".frames")
    drawings = frames.select(".drawing")
    assert [d["data-name"] for d in drawings] == [str(2**i) for i in range(11)]
    assert [d["data-name"] for d in drawings if not d.has_attr("hidden")] == ["64"]
    assert frames.select_one("input")["max"] == str(len(drawings) - 1)
    assert frames.select_one("label")["for"] == frames.select_one("input")["id"]


@pytest.fixture
def figures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book")
    import figures

    return figures


def test_a_drawing_takes_the_page_colour_and_is_stable(figures):
    def once():
        fig, ax = figures.canvas(4, 3)
        figures.matrix(ax, [[1, 2], [3, 4]], figures.QUERY, (1, 1), rows="ab", columns="cd")
        figures.arrow(ax, (0, 0), (1, 1))
        return figures.svg(fig, 'four "numbers"')

    drawn = once()
    assert drawn == once()
    assert "#000000" not in drawn
    assert 'aria-label="four &quot;numbers&quot;"' in drawn


def test_frames_are_a_widget_under_jupyterlab_only(figures, monkeypatch):
    frames = figures.Frames(lambda n: (figures.canvas(n, 1)[0], f"{n} cells"), [1, 2], "n")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert set(frames._repr_mimebundle_()) == {"text/html", "text/plain"}
    monkeypatch.setenv("JPY_SESSION_NAME", "page.ipynb")
    assert "application/vnd.jupyter.widget-view+json" in frames._repr_mimebundle_()
