"""A built book in a browser that has no network: what a page asks for, and what is wrong with it.

`Site` serves a folder; a `Reader` opens its pages, by http or as files, and keeps what they asked for; each function
below takes an open `Visit` and returns what is wrong, a line for each thing. `probe.js` looks from within the page.
"""

import contextlib
import gzip
import json
import re
import threading
from dataclasses import dataclass, field
from functools import cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import nbformat
from bs4 import BeautifulSoup
from playwright.sync_api import Error, Page, sync_playwright
from playwright.sync_api import TimeoutError as Late

PROBE = Path(__file__).with_name("probe.js").read_text("utf8")
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf8")
PACKED = (".html", ".js", ".css", ".svg", ".json", ".ipynb", ".txt", ".md")  # what a web server sends as gzip
LOCAL = r"(http://127\.0\.0\.1:\d+/|file:|data:|blob:|about:)"
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
DESKTOP = {"width": 1280, "height": 900}
PAGE_BYTES, HTML_BYTES = 650_000, 60_000  # packed


@cache
def sent(path):
    """A file's bytes as they travel."""
    raw = path.read_bytes()
    return gzip.compress(raw, 6, mtime=0) if path.suffix in PACKED else raw


class Site(ThreadingHTTPServer):
    """A folder, served on a free port as a web server would: packed."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = Path(folder).resolve()
        self.address = f"http://127.0.0.1:{self.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def file(self, url):
        """The file that a URL of this site names."""
        return self.folder / unquote(urlsplit(url).path).lstrip("/")


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many files, as browsers are used to

    def do_GET(self):
        path = self.server.file(self.path)
        found = path.is_file()
        body = sent(path) if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(body)))
        if path.suffix in PACKED and found:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the reader has turned the page
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@dataclass
class Visit:
    """An open page, and what it asked for and complained of since it was opened."""

    page: Page
    site: Site
    name: str
    asked: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def probe(self, call):
        return self.page.evaluate(f"probe.{call}")

    def listen(self):
        self.page.on("request", lambda request: self.note(request.url))
        self.page.on("websocket", lambda socket: self.outside.append(socket.url))
        self.page.on("requestfailed", lambda request: self.fail(request.url, request.failure))
        self.page.on("response", lambda reply: reply.status >= 400 and self.fail(reply.url, reply.status))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))

    def note(self, url):
        (self.asked if re.match(LOCAL, url) else self.outside).append(url)

    def fail(self, url, why):
        if re.match(LOCAL, url):
            self.missing.append(f"{url} ({why})")

    def settle(self):
        """Wait until every formula is there; those that never come are `formulas`' business."""
        with contextlib.suppress(Late):
            self.page.wait_for_function(
                "[...document.querySelectorAll('.math')].every(one => one.querySelector('mjx-container'))"
            )
        self.page.evaluate("document.fonts.ready.then(() => true)")


class Reader:
    """One browser without a network, which waits so many milliseconds for anything to happen."""

    def __init__(self, browser, site, patience=10_000):
        self.browser, self.site, self.patience = browser, site, patience

    @contextlib.contextmanager
    def context(self, **options):
        made = self.browser.new_context(
            **{"viewport": DESKTOP, "reduced_motion": "reduce", "service_workers": "block", **options}
        )
        made.set_default_timeout(self.patience)
        made.route(re.compile(f"^(?!{LOCAL})"), lambda route: route.abort())
        try:
            yield made
        finally:
            made.close()

    @contextlib.contextmanager
    def visit(self, name, *, as_file=False, clock=False, **options):
        """Open a page of the site; with `clock`, its time stands still until the test moves it."""
        with self.context(**options) as context:
            visit = Visit(context.new_page(), self.site, name)
            visit.listen()
            if clock:
                visit.page.clock.install(time=0)
            url = (self.site.folder / name).as_uri() if as_file else self.site.address + name
            visit.page.goto(url)
            if options.get("java_script_enabled", True):
                visit.page.evaluate(PROBE)
                if clock:
                    visit.page.clock.pause_at(3_600_000)
                else:
                    visit.settle()
            yield visit


@contextlib.contextmanager
def chromium_browser(path, *arguments):
    """A browser; no request of its own, and no name is looked up."""
    quiet = ("--disable-gpu", "--disable-background-networking", "--disable-component-update")
    lost = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*quiet, lost, *arguments])
        try:
            yield browser
        finally:
            browser.close()


# ---- what is wrong with a page


def outside(visit):
    return visit.outside


def missing(visit):
    return visit.missing


def errors(visit):
    return visit.errors


def formulas(visit):
    """Formulas that are not typeset, or not in fonts of the book's own."""
    found = visit.probe("formulas()")
    wrong = [*found["bare"], *found["wrong"], *found["left"], *found["failed"]]
    return wrong if wrong or not found["count"] or found["loaded"] else ["no font of MathJax has loaded"]


@contextlib.contextmanager
def narrow(visit, width=360):
    visit.page.set_viewport_size({"width": width, "height": 800})
    try:
        yield
    finally:
        visit.page.set_viewport_size(DESKTOP)


def sideways(visit, width=360):
    with narrow(visit, width):
        return visit.probe("wide()")


def inaccessible(visit, theme="light"):
    """What axe finds, with everything unfolded; in the dark, only what colours decide."""
    visit.probe(f"theme({json.dumps(theme)})")
    if not visit.page.evaluate("typeof axe === 'object'"):
        visit.page.evaluate(AXE)
    # Without `preload`, with which axe fetches style sheets itself, and some from where they are not.
    options = {"resultTypes": ["violations"], "preload": False, **({"runOnly": COLOURS} if theme == "dark" else {})}
    visit.probe("open()")
    try:
        found = visit.page.evaluate("options => axe.run(document, options).then(done => done.violations)", options)
    finally:
        visit.probe("close()")
    return [
        f"{rule['id']} [{rule['impact']}] {' '.join(map(str, node['target']))} {first_message(node)}"
        for rule in found
        for node in rule["nodes"]
    ]


def first_message(node):
    return next((check["message"] for kind in ("any", "all", "none") for check in node[kind]), "")


def faint(visit, theme="light"):
    """Text and marks in drawings that do not stand out from what lies under them."""
    visit.probe(f"theme({json.dumps(theme)})")
    return [
        f"{one['kind']} {one['ratio']}:1, {one['ink']} on {one['ground']}: {one['where']} in “{one['in']}”"
        for one in visit.probe("faint()")
    ]


def weights(visit):
    """File -> bytes on the way, of the page and all that it asked for."""
    files = {visit.site.file(url) for url in visit.asked if url.startswith("http")}
    return {path: len(sent(path)) for path in files if path.is_file()}


def heavy(visit, page_bytes=PAGE_BYTES, html_bytes=HTML_BYTES):
    """A page above a budget."""
    sizes = weights(visit)
    total, html = sum(sizes.values()), sizes[visit.site.folder / visit.name]
    largest = sorted(((size, path.name) for path, size in sizes.items()), reverse=True)[:4]
    return [f"{total} bytes, of them {largest}"] * (total > page_bytes) + [f"html of {html} bytes"] * (
        html > html_bytes
    )


def searches(visit):
    """Search controls beyond the one."""
    found = visit.probe("searches()")
    return [] if len(found) == 1 else [f"{len(found)} search controls", *found]


def floating(visit):
    return visit.probe("floating()")


def unfolded(visit):
    return visit.probe("unfolded()")


def uncopyable(visit):
    """Blocks whose copy button hands over what does not run; Python is compiled, a shell's lines have no prompt."""
    copied = visit.page.evaluate(
        """async () => {
            const blocks = [];
            for (const button of document.querySelectorAll('article button.copybtn')) {
                if (!button.checkVisibility()) continue;
                const block = button.closest('.highlight').parentElement;
                await navigator.clipboard.writeText('nothing was copied');
                button.click();
                await new Promise(done => setTimeout(done));
                blocks.push([block.className, await navigator.clipboard.readText()]);
            }
            return blocks;
        }"""
    )
    return [f"{kind}: {text[:60]!r}" for kind, text in copied if not runnable(kind, text)]


def runnable(kind, text):
    if text == "nothing was copied" or re.search(r"^(>>>|\.\.\.|\$|In \[)", text, re.MULTILINE):
        return False
    if re.search(r"highlight-(ipython3|python)\b", kind):
        with contextlib.suppress(SyntaxError):
            return bool(compile(text, "a copied block", "exec"))
        return False
    return bool(text.strip())


# ---- what is wrong with its links


@cache
def parsed(path):
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def anchors(path):
    return {tag.get("id") or tag.get("name") for tag in parsed(path).select("[id], a[name]")}


def dead_links(folder, name):
    """Links of a page, also to scripts, styles and pictures, that lead to no file or to no place in it."""
    here = folder / name
    tags = parsed(here).select("[href], [src]")
    links = {tag.get("href") or tag.get("src") or "" for tag in tags if tag.name != "base"}
    return sorted(filter(None, (dead(folder, here, link) for link in links)))


def dead(folder, here, link):
    if re.match(r"(https?:)?//|mailto:|data:|javascript:", link):
        return None
    place, anchor = urldefrag(urljoin(here.as_uri(), link))
    path = Path(unquote(urlsplit(place).path))
    if not path.is_file() or folder not in path.resolve().parents:
        return f"{link}: no such file"
    if anchor and path.suffix == ".html" and unquote(anchor) not in anchors(path):
        return f"{link}: no such place on that page"
    return unusable(link, path)


def unusable(link, path):
    """A download that is not what its name says."""
    if path.suffix != ".ipynb":
        return None
    try:
        nbformat.validate(nbformat.reads(path.read_text("utf8"), as_version=4))
    except Exception as error:  # nbformat lets many kinds through
        return f"{link}: not a notebook ({type(error).__name__})"
    return None


# ---- sliders


def by_keyboard(visit, frames):
    """Frames that the arrow keys, Home and End do not reach, or that are not said to a screen reader."""
    number = frames.evaluate("one => probe.slider(one).names.length")
    frames.locator("button").first.focus()
    visit.page.keyboard.press("Shift+Tab")
    if not frames.locator("input").evaluate("one => one === document.activeElement"):
        return ["Tab does not lead back from the button to the slider"]
    wrong = []
    for key, index in [
        ("Home", 0),
        *(("ArrowRight", i) for i in range(1, number)),
        ("ArrowLeft", number - 2),
        ("End", number - 1),
    ]:
        visit.page.keyboard.press(key)
        wrong += other_than(frames, index, key)
    return wrong


def by_drag(visit, frames, press, move, release):
    """Frames that are not reached when the thumb is drawn over the whole track."""
    number = frames.evaluate("one => probe.slider(one).names.length")
    frames.locator("input").scroll_into_view_if_needed()
    box = frames.locator("input").bounding_box()
    thumb, y = 16, box["y"] + box["height"] / 2
    places = [box["x"] + thumb / 2 + (box["width"] - thumb) * i / (number - 1) for i in range(number)]
    wrong = []
    for i, x in enumerate(places):
        (move if i else press)(x, y)
        wrong += other_than(frames, i, f"drawn to {i}")
    release(places[-1], y)
    return wrong


def other_than(frames, index, after):
    now = frames.evaluate("one => probe.slider(one)")
    want = now["names"][index]
    if now["shown"] == [index] and now["says"] == now["reads"] == want:
        return []
    return [f"{after}: frames {now['shown']}, said {now['says']!r}, read {now['reads']!r}, wanted {index} {want!r}"]


def by_play(visit, frames):
    """What Play shows instead of every frame from the first to the last. The page's clock stands still until moved."""
    frames.evaluate("one => probe.watch(one)")
    start = frames.evaluate("one => probe.slider(one)")
    frames.locator("button").first.click()
    visit.page.clock.run_for(60_000)
    log, number = frames.evaluate("one => one.log"), len(start["names"])
    wanted = [str(start["start"]), *(str(i) for i in range(number))]
    wrong = [] if log == wanted else [f"Play showed {log}, wanted {wanted}"]
    return wrong + other_than(frames, number - 1, "Play")


def still(visit):
    """Sliders that do not stand still: not exactly one drawing in sight, or controls that would do nothing."""
    wrong = []
    for frames in visit.page.locator(".frames").all():
        drawings = sum(one.is_visible() for one in frames.locator(".drawing").all())
        controls = [one for one in frames.locator("input, button").all() if one.is_visible()]
        wrong += [f"{drawings} drawings, {len(controls)} controls"] * (drawings != 1 or bool(controls))
    return wrong


# ---- notes on terms

SAYS = "text => document.body.innerText.replace(/\\s+/g, ' ').includes(text)"


def unexplained(visit, glossary):
    """Terms whose definition does not come under the keyboard's focus, or does not go; one is tried by pointer too."""
    definitions = defined(glossary)
    links = visit.page.locator("article a:has(.std-term):visible").all()
    terms = {link.get_attribute("href").partition("#")[2]: link for link in links}
    wrong = [f"{term}: no definition" for term in terms if term not in definitions]
    known = [(link, term, definitions[term]) for term, link in terms.items() if term in definitions]
    page = visit.page
    page.mouse.move(1, 1)  # else a term may come to lie under it as the page scrolls
    for link, term, said in known:
        wrong += comes_and_goes(page, f"{term}, focus", said, link.focus, lambda: page.keyboard.press("Escape"))
    for link, term, said in known[:1]:
        wrong += comes_and_goes(page, f"{term}, pointer", said, link.hover, lambda: page.mouse.move(1, 1))
    return wrong


def defined(path):
    """Anchor of each term -> how its definition begins (before any formula)."""
    pairs = ((term["id"], term.find_next_sibling("dd")) for term in parsed(path).select("dl.glossary > dt[id]"))
    return {term: re.split(r"\\\(", " ".join(said.get_text().split()))[0][:40].strip() for term, said in pairs}


def comes_and_goes(page, what, text, come, go):
    come()
    wrong = [f"{what}: not shown"] * (not becomes(page, text, True))
    go()
    return wrong + [f"{what}: stays"] * (not becomes(page, text, False))


def becomes(page, definition, there):
    with contextlib.suppress(Late, Error):
        page.wait_for_function(f"([text, there]) => ({SAYS})(text) === there", arg=[definition, there])
        return True
    return False
