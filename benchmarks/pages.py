"""What the book's pages cost a reader: python benchmarks/pages.py

The book is built in a copy of the repository, and a page of each kind opened in Chromium without a network, from a
server that packs what it sends. Bytes are packed ones. Paint, steps and shift are taken with a quarter of the
processor, 10 Mbit/s and 40 ms of latency: the median of five visits, each with an empty cache; a step of the slider
is the slowest one of a visit.
"""

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder import cohort, doctor

sys.path.insert(0, str(cohort.ROOT / "tests"))  # which build and open the book in the same way
import browsing
from building import build

VISITS = 5
EDITED = "book/02-queries-keys-values"
KINDS = {
    "home": "book/index.html",
    "chapter": f"{EDITED}.html",
    "problem set": "notebooks/02_queries_keys_values/02_queries_keys_values.html",
    "glossary": "book/glossary.html",
    "search": "search.html",
}
BUDGETS = {
    "page kB": browsing.PAGE_BYTES / 1000,
    "html kB": browsing.HTML_BYTES / 1000,
    "first paint s": 1.5,
    "slider step ms": 100,
    "layout shift": 0.1,
}
REBUILD_SECONDS = 15
SHIFTS = """
globalThis.shift = 0;
new PerformanceObserver(list => list.getEntries().forEach(one => { if (!one.hadRecentInput) shift += one.value; }))
    .observe({type: "layout-shift", buffered: true});
"""
STEPS = """async () => {
    const slider = document.querySelector(".frames input");
    if (!slider) return null;
    const painted = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    let slowest = 0;
    for (let i = 0; i <= Number(slider.max); i++) {
        await painted();
        const began = performance.now();
        slider.value = i;
        slider.dispatchEvent(new Event("input", {bubbles: true}));
        await painted();
        slowest = Math.max(slowest, performance.now() - began);
    }
    return slowest;
}"""


def main():
    with tempfile.TemporaryDirectory(prefix="attention-pages-") as folder:
        source, out = Path(folder, "source"), Path(folder, "out")
        copy(source)
        whole = seconds(source, out)
        missed = table(out / "_build/html")
        with open(source / f"{EDITED}.md", "a", encoding="utf8") as page:
            page.write("\nOne more sentence.\n")
        again = seconds(source, out)
    print(f"\nThe book is built in {whole:.0f} s, and in {again:.0f} s after an edit of one page.")
    if again > REBUILD_SECONDS:
        missed.append(f"rebuilding after an edit of one page: {again:.0f} s, budget {REBUILD_SECONDS}")
    print("\n".join(["Missed:", *missed]) if missed else "Within every budget.")
    return int(bool(missed))


def copy(to):
    """The repository's files, without what was built in it."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in filter(None, subprocess.check_output(listing, cwd=cohort.ROOT, text=True).split("\0")):
        if (cohort.ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(cohort.ROOT / name, to / name)


def seconds(source, out):
    began = time.monotonic()
    done = build(source, out)
    assert done.returncode == 0, done.stdout
    return time.monotonic() - began


def table(folder):
    """Print a row for each kind of page; return the budgets missed."""
    print("| |", *(f"{name} |" for name in BUDGETS))
    print("|---|" + "---|" * len(BUDGETS))
    missed = []
    with browsing.chromium_browser(doctor.find_chromium()) as browser, browsing.Site(folder) as site:
        for kind, name in KINDS.items():
            row = measured(browser, site, name)
            print(f"| {kind} |", *(f"{shown(value)} |" for value in row.values()), flush=True)
            over = {column: value for column, value in row.items() if value is not None and value > BUDGETS[column]}
            missed += [f"{kind}: {column} {shown(value)}, budget {BUDGETS[column]}" for column, value in over.items()]
    return missed


def measured(browser, site, name):
    """Column -> value of a page."""
    with browsing.Reader(browser, site).visit(name) as visit:
        sizes = browsing.weights(visit)
    visits = [slowly(browser, site.address + name) for _ in range(VISITS)]
    middle = [None if column[0] is None else statistics.median(column) for column in zip(*visits, strict=True)]
    return dict(zip(BUDGETS, [sum(sizes.values()) / 1000, sizes[site.folder / name] / 1000, *middle], strict=True))


def slowly(browser, url):
    """First paint in seconds, the slowest step of the slider in milliseconds, and the layout's shift."""
    with contextlib.closing(browser.new_context(viewport=browsing.DESKTOP)) as context:
        page = context.new_page()
        page.add_init_script(SHIFTS)
        wire = context.new_cdp_session(page)
        wire.send("Emulation.setCPUThrottlingRate", {"rate": 4})
        wire.send("Network.enable")
        speed = {"downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
        wire.send("Network.emulateNetworkConditions", {"offline": False, "latency": 40, **speed})
        page.goto(url, wait_until="networkidle")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000")
        shift = page.evaluate("shift")
        return paint, page.evaluate(STEPS), shift


def shown(value):
    return "–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
