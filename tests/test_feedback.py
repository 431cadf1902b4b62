"""A feedback page leads to the book and shows its formulas, with the network cut, and runs nothing of a student's."""

from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import browsing
import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder import cohort
from autograder.gradebook import Returned
from autograder.report import Report

ASSIGNMENT = "01_soft_retrieval"
RAISED = Report("softmax", {"values": (0, 4, "missed")}, r"ValueError: $\def\endless{\endless\endless}\endless$")


@pytest.fixture(scope="module")
def shown(book, chromium, tmp_path_factory):
    """The page of a student who wrote a formula with a script in it, opened in a browser without a network."""
    with pytest.MonkeyPatch.context() as patch, browsing.chromium_browser(chromium) as browser:
        patch.setenv("COURSE_DATA", str(tmp_path_factory.mktemp("class")))
        patch.setenv("COURSE_BOOK", book.parent.as_uri())
        page = browser.new_page(offline=True)
        page.goto(written(tmp_path_factory.mktemp("feedback")).as_uri())
        page.wait_for_function("window.MathJax?.startup?.promise?.then(() => true)")
        yield page


def written(folder):
    """As `nbgrader generate_feedback` writes it, by the template that nbgrader's own extends."""
    notebook = nbformat.from_dict(cohort.released(ASSIGNMENT))
    notebook.cells.append(new_markdown_cell(r"$\href{javascript:document.title='run'}{x + 1}$"))
    said = new_output("display_data", {"text/html": RAISED.html()})
    notebook.cells.append(new_code_cell("check('ch01/softmax', softmax)", outputs=[said]))
    returned, _ = Returned().preprocess(notebook, {})
    path = folder / "page.html"
    path.write_text(HTMLExporter(template_name="classic").from_notebook_node(returned)[0], "utf-8")
    return path


def test_every_formula_is_typeset(shown):
    assert shown.locator("mjx-container").count() > 30
    assert shown.locator("mjx-merror").count() == 0


def test_every_link_to_the_book_leads_to_its_section(shown):
    links = shown.eval_on_selector_all("a[href*='/book/']", "links => links.map(link => link.href)")
    assert len(links) == 5
    for link in links:
        address, anchor = urldefrag(link)
        there = Path(unquote(urlparse(address).path)).read_text("utf-8")
        assert BeautifulSoup(there, "html.parser").find(id=anchor)


def test_a_formula_cannot_run_a_script(shown):
    assert shown.locator("a[href^='javascript']").count() == 0


def test_a_report_is_text_and_no_formula(shown):
    """What an exception says is a student's: a macro that calls itself keeps a browser busy for half a minute."""
    assert RAISED.message in shown.locator(".tex2jax_ignore").inner_text()
