"""The last touches to the built pages.

`repair` mends what axe-core finds in the theme's own HTML; each line names the rule it answers.
`hold` keeps a comma or a full stop from beginning a line.
`annotate` gives a link to a term or a paper what it says there, for `_static/notes.js` to show.
"""

import re
from pathlib import Path
from posixpath import dirname, join, normpath

from bs4 import BeautifulSoup, NavigableString

MARK = re.compile(r"[.,;:!?)’]+")


def finish(app, failed):
    if failed or app.builder.format != "html":
        return
    root = Path(app.outdir)
    found = (path for path in root.rglob("*.html") if "_static" not in path.parts)
    pages = {path.relative_to(root).as_posix(): parsed(path) for path in found}
    notes = {f"{name}#{anchor}": said for name, page in pages.items() for anchor, said in explained(page)}
    for name, page in pages.items():
        repair(page)
        hold(page)
        annotate(page, dirname(name), notes)
        (root / name).write_text(f"{str(page).rstrip()}\n", "utf8")


def parsed(path):
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


def repair(page):
    for named in page.select(".search-button-field[aria-label], details.hide > summary[aria-label]"):
        del named["aria-label"]  # label-content-name-mismatch
    for opener in page.select(".toctree-l1 > details > summary"):
        opener["aria-label"] = f"Below {opener.find_previous('a').get_text()}"  # summary-name
    for entry in page.select("[role=doc-biblioentry]"):  # aria-deprecated-role, aria-required-children
        del entry["role"]
        entry.parent.attrs.pop("role", None)
    if page.select_one(".bd-search-container"):  # the page of the search has its own field
        for button in page.select(".search-button-field, .search-button"):
            if str(button.next_sibling).isspace():
                button.next_sibling.extract()
            button.decompose()
    if sidebar := page.select_one("#pst-primary-sidebar"):  # region
        sidebar["role"], sidebar["aria-label"] = "region", "Book"


def hold(page):
    """Keep a formula and the punctuation behind it on one line."""
    for formula in page.select(":not(.held) > span.math"):
        if (text := formula.next_sibling) and (mark := MARK.match(str(text))) and isinstance(text, NavigableString):
            text.replace_with(str(text)[mark.end() :])
            held = formula.wrap(page.new_tag("span", attrs={"class": "held"}))
            held.append(mark[0])


def explained(page):
    """(anchor, text) of each term of the glossary and each entry of the bibliography."""
    for term in page.select("dl.glossary > dt[id]"):
        yield term["id"], term.find_next_sibling("dd").get_text(" ", strip=True)
    for entry in page.select("div.citation[id]"):
        yield entry["id"], entry.find("p").get_text().strip()


def annotate(page, folder, notes):
    for link in page.select("article a.internal[href*='#']"):
        place = normpath(join(folder, link["href"]))
        link.attrs.pop("data-note", None)  # of an earlier build
        if place in notes:
            link["data-note"] = notes[place]


def setup(app):
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True}
