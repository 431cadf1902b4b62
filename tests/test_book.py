"""The book builds without a warning, a failing cell stops it, and every chapter holds what it promises."""

import ast
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from browsing import parsed
from building import build
from fontTools.ttLib import TTFont

from autograder import exercises

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted(path.stem for path in (ROOT / "book").glob("[0-9][0-9]-*.md"))
HEADER = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3}
---
"""


@pytest.fixture(scope="session", params=CHAPTERS)
def chapter(request):
    return request.param


@pytest.fixture(scope="session")
def page(book, chapter):
    return parsed(book / f"{chapter}.html").article


@pytest.fixture(scope="session")
def source(chapter):
    return (ROOT / f"book/{chapter}.md").read_text("utf8")


def problem_set(chapter):
    return chapter.replace("-", "_")


def of(chapter):
    return [e for e in exercises() if e.chapter == f"ch{chapter[:2]}"]


def tiny(folder, cell, text=""):
    """A book of one page with one cell, under the course's own configuration."""
    for name in ("_static", "_ext"):
        shutil.copytree(ROOT / "book" / name, folder / "book" / name)
    for name in ("_config.yml", "book/references.bib"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    (folder / "book/index.md").write_text(f"{HEADER}# One page\n\n{text}\n\n```{{code-cell}} ipython3\n{cell}\n```\n")
    return build(folder, folder / "out")


def test_a_students_own_notebook_is_no_page(tmp_path):
    copy = tmp_path / "notebooks/01_soft_retrieval/copy.ipynb"
    copy.parent.mkdir(parents=True)
    copy.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert tiny(tmp_path, "1").returncode == 0
    assert not list(tmp_path.glob("out/**/copy.*"))


@pytest.mark.parametrize(
    ("cell", "says"),
    [("1 / 0", "ZeroDivisionError"), ("import warnings; warnings.warn('look here')", "stderr was found")],
)
def test_a_cell_that_fails_or_warns_stops_the_build(tmp_path, cell, says):
    done = tiny(tmp_path, cell)
    assert done.returncode != 0
    assert says in done.stdout


def test_a_link_to_everything_in_a_submission_does_not_stop_the_build(tmp_path):
    """What searches the folder for sources would follow it around the whole disk, without end."""
    (tmp_path / "class/received/eve").mkdir(parents=True)
    (tmp_path / "class/received/eve/root").symlink_to("/")
    assert tiny(tmp_path, "1").returncode == 0


def test_every_feedback_link_of_a_chapter_that_is_there_leads_to_a_section(book):
    seen = {e.see for e in exercises() if e.see.split("#")[0] in CHAPTERS}
    assert len(seen) > 8
    for name, anchor in (see.split("#") for see in seen):
        assert parsed(book / f"{name}.html").find(id=anchor), f"{name}#{anchor}"


def cells(source):
    """The code cells in a page's source, those that it hides too: a reader can download them."""
    return re.findall(
        r"^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^```", source, re.DOTALL | re.MULTILINE
    )


def test_no_exercise_is_solved_on_the_page(source, chapter):
    code = "\n".join(cells(source))
    bare = re.sub(r"\s+", "", code)
    answers = (ROOT / f"solutions/{problem_set(chapter)}.py").read_text("utf8")
    solutions = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", answers, re.S)
    lines = [re.sub(r"\s+", "", line.split("#")[0]) for solution in solutions for line in solution.splitlines()]
    assert len(solutions) == len(of(chapter))
    assert not [line for line in lines if len(line) > 15 and line in bare]
    assert not [e.function for e in exercises() if f"def {e.function}(" in code]


def test_every_print_writes_one_string(source):
    """Several arguments reach the page as several outputs, now and then."""
    calls = [node for cell in cells(source) for node in ast.walk(ast.parse(cell)) if isinstance(node, ast.Call)]
    printed = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert len(printed) > 3
    assert not [ast.unparse(call) for call in printed if len(call.args) != 1]


def test_every_pasted_number_is_there(page, source):
    pasted = [span.get_text() for span in page.select(".pasted-text")]
    assert len(pasted) == len(re.findall(r"\{glue:text\}", source)) > 20
    assert all(re.fullmatch(r"[\d,]+(\.\d+)?", number) for number in pasted), pasted


def test_page_02_says_what_was_measured(book):
    text = parsed(book / "02-queries-keys-values.html").article.get_text(" ", strip=True)
    assert "It gives 0.258 , 0.426 and 0.316" in text
    at_64, at_1024 = (float(n) for n in re.search(r"it is ([\d.]+) , and at .*? it is (\d+) ; over all", text).groups())
    assert abs(at_64 / 64 - 1) < 0.05
    assert abs(at_1024 / 1024 - 1) < 0.05


def test_page_01_says_what_was_measured(book):
    """Within wide bounds: it trains a model, which no two machines do alike to the last digit."""
    text = parsed(book / "01-soft-retrieval.html").article.get_text(" ", strip=True)
    words, aligned = re.search(r"it gets ([\d.]+) % of the words right .*? render in ([\d.]+) %", text, re.S).groups()
    assert float(words) > 95 and float(aligned) > 90
    hard, soft, cold = re.findall(r"(?:hard|T = 0.2\\\)|T = 0.05\\\)) (0\.\d+) (0\.\d+)", text)
    assert hard[0] == hard[1] and float(soft[1]) < 0.05 and abs(float(cold[0]) - float(cold[1])) < 0.01


def test_a_card_for_each_exercise_says_what_it_is_worth_and_leads_to_it(page, book, chapter):
    cards = page.select("#problem-set .sd-card")
    points = [card.select_one(".sd-card-text").get_text().split(" · ")[0] for card in cards]
    assert points == [f"{e.max_points} point{'s' * (e.max_points != 1)}" for e in in_order(chapter)]
    for number, card in enumerate(cards, 1):
        to_section, to_exercise, download = (link["href"] for link in card.select("a"))
        assert page.find(id=to_section.removeprefix("#"))
        there, anchor = to_exercise.split("#")
        exercise = parsed(book / there).find(id=anchor).find_parent("section")
        assert exercise.h2.get_text().startswith(f"{number}. ")
        notebook = ROOT / f"notebooks/{problem_set(chapter)}/{problem_set(chapter)}.ipynb"
        assert (book / download).read_bytes() == notebook.read_bytes()


def in_order(chapter):
    """The chapter's exercises as the problem set has them."""
    text = (ROOT / f"solutions/{problem_set(chapter)}.py").read_text("utf8")
    return sorted(of(chapter), key=lambda e: text.index(f'check("{e.name}"'))


def test_the_page_says_at_its_top_what_the_problem_set_takes(page, chapter):
    worth = sum(e.max_points for e in of(chapter))
    said = page.select_one(".objectives").get_text(" ", strip=True)
    assert re.search(rf"Problem set {len(of(chapter))} exercises, {worth} points, \d+ minutes", said), said


def test_every_figure_is_numbered_and_described(page):
    drawings = page.select(".drawing svg")
    assert drawings and all(svg["role"] == "img" and len(svg["aria-label"]) > 40 for svg in drawings)
    figures = page.select("figure:has(.drawing)")
    assert len(figures) == len(page.select("figure")) == len(page.select("figure .caption-number"))
    ids = [tag["id"] for tag in page.select("svg [id]")]
    assert len(ids) == len(set(ids))


def test_figures_and_equations_have_the_number_of_their_chapter(page, chapter):
    numbers = page.select(".caption-number, .eqno")
    assert len(numbers) > 10
    assert all(re.search(rf"\b{int(chapter[:2])}\.\d+", number.get_text()) for number in numbers)


def test_every_slider_holds_its_frames_and_shows_one(page):
    for frames in page.select(".frames"):
        drawings = frames.select(".drawing")
        assert len({drawing["data-name"] for drawing in drawings}) == len(drawings) > 2
        assert len([drawing for drawing in drawings if not drawing.has_attr("hidden")]) == 1
        assert frames.select_one("input")["max"] == str(len(drawings) - 1)
        assert frames.select_one("label")["for"] == frames.select_one("input")["id"]
    assert page.select(".frames")


def test_no_page_holds_a_widget_that_would_need_a_script_from_elsewhere(page):
    assert not page.select("script[type*=widget]")


def test_every_icon_is_in_the_font_that_was_cut_down(book):
    html = "".join(path.read_text("utf8") for path in book.parent.rglob("*.html"))
    static = book.parent / "_static"
    there = TTFont(static / "vendor/fontawesome/webfonts/fa-solid-900.woff2").getBestCmap()
    style = "".join(path.read_text("utf8") for path in (static / "styles").glob("*.css"))
    rules = re.findall(r'([^{}]+)\{content:"\\(f\w+)"\}', style)
    points = {icon: point for names, point in rules for icon in re.findall(r"\.fa-([a-z-]+):before", names)}
    icons = {icon for icon in re.findall(r"\bfa-([a-z-]+)", html) if icon in points}
    by_style = re.findall(r'([^{}]+)\{[^{}]*content:"\\(f\w{3})"', style)
    points |= {names: point for names, point in by_style if ".fa-" not in names}
    icons |= points.keys() & {names for names, _ in by_style}
    assert {"bars", "download", "magnifying-glass"} <= icons
    assert not [icon for icon in icons if int(points[icon], 16) not in there]


def test_finishing_a_page_twice_changes_nothing(book, tmp_path, monkeypatch):
    """Pages that an edit leaves as they are stay in the folder, and are finished again."""
    monkeypatch.syspath_prepend(ROOT / "book/_ext")
    import finish

    copy = shutil.copytree(book.parent, tmp_path / "html", ignore=shutil.ignore_patterns("_static", "_sources"))
    before = {path: path.read_bytes() for path in copy.rglob("*.html")}
    finish.finish(SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=copy), None)
    assert [path for path, text in before.items() if path.read_bytes() != text] == []


def test_a_problem_set_that_is_not_there_stops_the_build(tmp_path):
    done = tiny(tmp_path, "1", "{workload}`99_nothing`")
    assert done.returncode != 0
    assert "solutions/99_nothing.py announces no exercise" in done.stdout


def test_links_to_terms_and_papers_say_what_stands_there(page):
    notes = [link.get("data-note") for link in page.select("a[href^='glossary.html#'], a[href^='bibliography.html#']")]
    assert len(notes) > 10 and all(notes)


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
