"""What a reader of the book can rely on, tried in a browser that has no network.

Every page of the table of contents, and the two that Sphinx adds, is opened once by http and tried in turn; what needs
a fresh page (files, no scripts, a clock that stands still, a finger) opens one of its own. What each check looks for
is written in browsing.py; the last tests show each of them a page on which it must find something.
"""

import itertools
import shutil
from pathlib import Path

import browsing
import pytest
import yaml
from browsing import Reader, Site, chromium_browser

from autograder import cohort

THEMES = ("light", "dark")
WIDTHS = (360, 768, 1280)
PHONE = {"viewport": {"width": 360, "height": 800}, "has_touch": True, "is_mobile": True}
SLIPS = Path(__file__).with_name("slips.html")


def listed(entry):
    """The files of a table of contents, in its order."""
    own = [entry.get("root") or entry.get("file")]
    below = itertools.chain(*(entry.get(key, []) for key in ("parts", "chapters", "sections")))
    return [name for name in own if name] + [name for one in below for name in listed(one)]


CONTENTS = [f"{name}.html" for name in listed(yaml.safe_load((cohort.ROOT / "_toc.yml").read_text("utf8")))]
PAGES = [*CONTENTS, "genindex.html", "search.html"]
every_page = pytest.mark.parametrize("name", PAGES)
in_both_themes = pytest.mark.parametrize("theme", THEMES)


@pytest.fixture(scope="module")
def folder(book):
    return book.parent


@pytest.fixture(scope="module")
def browser(chromium):
    with chromium_browser(chromium) as opened:
        yield opened


@pytest.fixture(scope="module")
def reader(browser, folder):
    with Site(folder) as site:
        yield Reader(browser, site)


@pytest.fixture(scope="module", params=PAGES)
def visit(request, reader):
    """A page as it was opened by http; what a test does on it goes on without an error."""
    with reader.visit(request.param, permissions=["clipboard-read", "clipboard-write"]) as opened:
        yield opened
        assert browsing.outside(opened) + browsing.missing(opened) + browsing.errors(opened) == []


def test_the_pages_are_those_of_the_contents(folder):
    built = {str(path.relative_to(folder)) for path in folder.rglob("*.html") if "_static" not in path.parts}
    assert built == {*PAGES, "index.html"}  # the last sends the reader on


# ---- each page


def test_it_asks_for_nothing_outside(visit):
    assert browsing.outside(visit) == []


def test_all_that_it_asks_for_is_there(visit):
    assert browsing.missing(visit) == []


def test_nothing_goes_wrong_in_its_scripts(visit):
    assert browsing.errors(visit) == []


def test_every_formula_is_typeset(visit):
    assert browsing.formulas(visit) == []


def test_it_is_light_enough(visit):
    assert browsing.heavy(visit) == []


def test_there_is_one_search_control(visit):
    assert browsing.searches(visit) == []


def test_nothing_of_the_text_floats_over_it(visit):
    assert browsing.floating(visit) == []


def test_what_can_be_unfolded_is_folded(visit):
    assert browsing.unfolded(visit) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_screen(visit, width):
    assert browsing.sideways(visit, width) == []


@in_both_themes
def test_drawings_stand_out(visit, theme):
    assert browsing.faint(visit, theme) == []


@in_both_themes
def test_axe_finds_nothing(visit, theme):
    assert browsing.inaccessible(visit, theme) == []


def test_axe_finds_nothing_on_a_phone(visit):
    """There, what is wider than the screen moves sideways, and has to by keyboard too."""
    with browsing.narrow(visit):
        assert browsing.inaccessible(visit) == []


def test_what_is_copied_runs(visit):
    assert browsing.uncopyable(visit) == []


def test_every_slider_goes_by_keyboard(visit):
    for frames in visit.page.locator(".frames").all():
        assert browsing.by_keyboard(visit, frames) == []


def test_every_slider_goes_by_mouse(visit):
    mouse = visit.page.mouse

    def press(x, y):
        mouse.move(x, y)
        mouse.down()

    for frames in visit.page.locator(".frames").all():
        assert browsing.by_drag(visit, frames, press, mouse.move, lambda *_: mouse.up()) == []


def test_terms_are_explained_where_they_stand(visit, folder):
    glossary = folder / "book/glossary.html"
    if visit.site.folder / visit.name != glossary:
        assert browsing.unexplained(visit, glossary) == []


# ---- each page, opened anew


@every_page
def test_every_link_leads_somewhere(folder, name):
    assert browsing.dead_links(folder, name) == []


@every_page
def test_it_is_whole_as_a_file(reader, name):
    with reader.visit(name, as_file=True) as visit:
        assert [check(visit) for check in (browsing.outside, browsing.missing, browsing.errors)] == [[], [], []]
        assert browsing.formulas(visit) == []


@pytest.fixture(scope="module")
def moving(folder):
    """The pages with a slider."""
    found = [name for name in PAGES if browsing.parsed(folder / name).select_one(".frames")]
    assert found
    return found


def test_figures_stand_still_without_scripts_and_on_paper(reader, moving):
    for name in moving:
        with reader.visit(name, java_script_enabled=False) as visit:
            assert browsing.still(visit) == [], name
        with reader.visit(name) as visit:
            visit.page.emulate_media(media="print")
            assert browsing.still(visit) == [], name


def test_on_paper_a_page_is_light_and_unfolded(reader, moving):
    with reader.visit(moving[0], color_scheme="dark") as visit:
        state = "[document.documentElement.dataset.theme, document.querySelectorAll('details:not([open])').length]"
        theme, folded = visit.page.evaluate(state)
        assert theme == "dark" and folded > 5
        for event, shown in (("beforeprint", ["light", 0]), ("afterprint", [theme, folded])):
            for _ in "twice":
                visit.page.evaluate("event => dispatchEvent(new Event(event))", event)
            assert visit.page.evaluate(state) == shown
        assert browsing.errors(visit) == []


def test_a_first_tap_shows_a_note_and_a_second_goes_there(reader, moving):
    with reader.visit(moving[0], **PHONE) as visit:
        note, link = visit.page.locator(".term-note"), visit.page.locator("article a[data-note]").first
        link.tap()
        assert note.is_visible() and note.inner_text() == link.get_attribute("data-note")
        visit.page.locator("article h1").tap()
        assert not note.is_visible()
        link.tap()
        assert note.is_visible() and visit.page.url.endswith(moving[0])
        link.tap()
        visit.page.wait_for_url("**/glossary.html#*")


def test_play_shows_every_frame_to_the_last(reader, moving):
    for name in moving:
        with reader.visit(name, clock=True) as visit:
            for frames in visit.page.locator(".frames").all():
                assert browsing.by_play(visit, frames) == [], name


def test_play_stops_when_told(reader, moving):
    """Pause holds the frame, and so does a hand on the slider."""
    with reader.visit(moving[0], clock=True) as visit:
        frames = visit.page.locator(".frames").first
        number = frames.evaluate("one => probe.slider(one).names.length")
        for stop in (frames.locator("button").click, lambda: frames.locator("input").press("Home")):
            frames.locator("button").click()
            visit.page.clock.run_for(1_000)
            stop()
            held = frames.evaluate("one => probe.slider(one).shown")
            assert held != [number - 1]
            visit.page.clock.run_for(10_000)
            assert frames.evaluate("one => probe.slider(one).shown") == held


def test_every_slider_goes_by_finger(reader, moving):
    for name in moving:
        with reader.visit(name, **PHONE) as visit:
            finger = visit.page.context.new_cdp_session(visit.page)

            def touch(kind, *points, finger=finger):
                finger.send(
                    "Input.dispatchTouchEvent",
                    {"type": kind, "touchPoints": [dict(zip("xy", points, strict=True))] if points else []},
                )

            for frames in visit.page.locator(".frames").all():
                wrong = browsing.by_drag(
                    visit,
                    frames,
                    lambda x, y: touch("touchStart", x, y),
                    lambda x, y: touch("touchMove", x, y),
                    lambda *_: touch("touchEnd"),
                )
                assert wrong == [], name


# ---- ways through the book


def test_the_front_door_leads_to_the_first_page(reader):
    with reader.context() as context:
        page = context.new_page()
        page.goto(f"{reader.site.address}index.html")
        page.wait_for_url(f"**/{CONTENTS[0]}")


@pytest.mark.parametrize("kind", ["next", "prev"])
def test_each_page_leads_to_its_neighbour(folder, kind):
    order = CONTENTS if kind == "next" else CONTENTS[::-1]
    for here, there in itertools.pairwise(order):
        link = browsing.parsed(folder / here).select_one(f"a.{'right-next' if kind == 'next' else 'left-prev'}")
        assert link, f"{here} has no link to {there}"
        assert (folder / here).parent.joinpath(link["href"]).resolve() == (folder / there).resolve()


@pytest.mark.parametrize("as_file", [False, True], ids=["http", "file"])
def test_the_search_finds_a_word(reader, as_file):
    with reader.visit("search.html", as_file=as_file) as visit:
        visit.page.goto(f"{visit.page.url}?q=saturation")
        visit.page.locator("#search-results li a").first.wait_for()
        assert visit.outside == []
        assert as_file or visit.errors == []  # a file may not read its neighbours, so its results have no excerpts


def test_the_search_control_leads_to_the_results(reader):
    """By the keys that the control names, too."""
    with reader.visit(CONTENTS[1]) as visit:
        visit.page.keyboard.press("Control+k")
        visit.page.keyboard.type("softmax")
        visit.page.keyboard.press("Enter")
        visit.page.locator("#search-results li a").first.wait_for()


def test_the_theme_button_changes_the_drawings(reader, moving):
    with reader.visit(moving[0]) as visit:
        inks = set()
        for _ in range(3):  # light, dark, the system's
            visit.page.locator(".theme-switch-button:visible").first.click()
            inks.add(visit.page.evaluate("getComputedStyle(document.querySelector('.drawing svg')).fill"))
        assert len(inks) == 2


# ---- each check finds what it is there for


@pytest.fixture(scope="module")
def slips(browser, folder, tmp_path_factory):
    """A page on which everything is wrong, opened in a site of its own."""
    there = tmp_path_factory.mktemp("slips")
    shutil.copy(SLIPS, there)
    (there / "no.ipynb").write_text("{")
    (there / "glossary.html").write_text(
        "<dl class=glossary><dt id=term-key>key</dt><dd>What a token is found by</dd></dl>"
    )
    with (
        Site(there) as site,
        Reader(browser, site, 3_000).visit(SLIPS.name, permissions=["clipboard-read", "clipboard-write"]) as visit,
    ):
        yield visit


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (browsing.outside, ["https://cdn.example/library.js", "https://fonts.example/font.woff2", "wss://example/"]),
        (browsing.missing, ["nowhere.js (404)", "nowhere.png (404)"]),
        (browsing.errors, ["a script that throws", "a script that complains"]),
        (browsing.formulas, ["div.math", "mjx-merror", "“so $x$ is”"]),
        (browsing.searches, ["2 search controls"]),
        (browsing.floating, ["div.admonition.over"]),
        (browsing.unfolded, ["details", "div.admonition.dropdown"]),
        (browsing.sideways, [" px", "table"]),
        (browsing.inaccessible, ["image-alt", "color-contrast"]),
        (browsing.faint, ["text 1.26:1", "text 3.98:1", "mark 1."]),
        (browsing.uncopyable, [">>> 1 + 1", "nothing was copied", "for x in"]),
        (browsing.still, ["2 drawings, 2 controls"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_check_finds(slips, check, says):
    found = "\n".join(check(slips))
    assert [line for line in says if line not in found] == [], found


def test_the_check_finds_dead_links(slips):
    found = browsing.dead_links(slips.site.folder, SLIPS.name)
    for link in (
        "#nowhere: no such place",
        "nowhere.html: no such file",
        "glossary.html#term-gone: no such place",
        "no.ipynb: not a notebook",
    ):
        assert any(line.startswith(link) for line in found), link


def test_the_check_finds_a_heavy_page(slips):
    assert browsing.heavy(slips, page_bytes=1_000, html_bytes=100) and not browsing.heavy(slips, 10**9, 10**9)


def test_the_check_finds_a_slider_that_sticks(slips):
    frames = slips.page.locator(".frames").first
    mouse = slips.page.mouse
    assert browsing.by_keyboard(slips, frames)
    assert browsing.by_drag(slips, frames, mouse.move, mouse.move, mouse.move)


def test_the_check_finds_a_player_that_sticks(browser, slips):
    with Reader(browser, slips.site, 3_000).visit(SLIPS.name, clock=True) as visit:
        assert browsing.by_play(visit, visit.page.locator(".frames").first)


def test_the_check_finds_terms_without_a_note(slips):
    found = browsing.unexplained(slips, slips.site.folder / "glossary.html")
    assert found == ["term-gone: no definition", "term-key, focus: not shown", "term-key, pointer: not shown"]
