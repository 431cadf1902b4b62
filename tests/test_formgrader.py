"""The formgrader, as an instructor has it: JupyterLab's server in the repository's folder, its button, its pages.

It takes most of a minute: the server and nbgrader start, and each submission is run in the server's own sandbox.
"""

import http.cookiejar
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser

import pytest

from autograder import cohort, demo, lock

ASSIGNMENT = demo.ASSIGNMENT
CLASS = ["ada", "gauss", "heinrich", "lise", "tycho"]
START_SECONDS = 120
TOKEN = "of-the-test"


class Browser:
    """Logs in with the token, keeps cookies, and proves with each request that it read them."""

    def __init__(self, address):
        self.address, self.cookies = address, http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path):
        return self.opener.open(self.address + path, timeout=60).read().decode()

    def post(self, path):
        [proof] = [cookie.value for cookie in self.cookies if cookie.name == "_xsrf"]
        request = urllib.request.Request(self.address + path, b"", {"X-XSRFToken": proof}, method="POST")
        return self.opener.open(request, timeout=300).read().decode()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def ours(bubblewrap, tmp_path_factory):
    """Verdicts by the course's own command."""
    data = tmp_path_factory.mktemp("ours")
    demo.hand_in(data, CLASS)
    for command in (["grade", ASSIGNMENT], ["grades", "--json"]):
        done = subprocess.run([sys.executable, "-m", "autograder", *command], **course(data), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
    return {row["student"]: row for row in json.loads(done.stdout)}


def course(data):
    return {"cwd": cohort.ROOT, "env": {**os.environ, "COURSE_DATA": str(data), "JUPYTER_TOKEN": TOKEN}}


@pytest.fixture(scope="module")
def served(bubblewrap, tmp_path_factory):
    """The class's folder, and a browser logged in to a server for it."""
    data, port = tmp_path_factory.mktemp("served"), free_port()
    demo.hand_in(data, CLASS)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    with open(data / "log", "w") as log, subprocess.Popen(command, **course(data), stdout=log, stderr=log) as server:
        try:
            browser = Browser(f"http://127.0.0.1:{port}")
            wait_for(browser, server, data / "log")
            yield data, browser
        finally:
            server.terminate()


def wait_for(browser, server, log):
    for _ in range(START_SECONDS):
        try:
            return browser.get(f"/formgrader/manage_assignments?token={TOKEN}")
        except urllib.error.URLError:
            assert server.poll() is None, log.read_text()
            time.sleep(1)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def graded(served):
    """What the button says for each student."""
    return {name: press(served[1], name) for name in CLASS}


def press(browser, student):
    return json.loads(browser.post(f"/formgrader/api/submission/{ASSIGNMENT}/{student}/autograde"))


def test_the_button_gives_the_marks_of_the_command(ours, served, graded):
    assert {name: done["success"] for name, done in graded.items()} == dict.fromkeys(CLASS, True), graded
    data, browser = served
    found = {row["student"]: row for row in map(json.loads, (p.read_text() for p in data.glob("verdicts/*/*.json")))}
    assert {name: cohort.row(row) for name, row in found.items()} == ours
    shown = {row["student"]: row["score"] for row in listed(browser)}
    assert shown == {name: row["points"] for name, row in ours.items()}


def listed(browser):
    return json.loads(browser.get(f"/formgrader/api/submissions/{ASSIGNMENT}"))


class Active(HTMLParser):
    """Everything that a browser would not show as text."""

    def __init__(self):
        super().__init__()
        self.kinds, self.active, self.inside = set(), "", False

    def handle_starttag(self, tag, attributes):
        self.active += f"<{tag} {attributes}>"
        self.inside = tag in ("script", "style")

    def handle_data(self, text):
        if self.inside:
            self.active += text

    def handle_endtag(self, tag):
        self.inside = False


def page(browser, student):
    shown = json.loads(browser.get(f"/formgrader/api/submitted_notebooks/{ASSIGNMENT}/{ASSIGNMENT}"))
    [number] = [row["id"] for row in shown if row["student"] == student]
    return browser.get(f"/formgrader/submissions/{number}/")


def test_a_submissions_page_shows_its_report(served, graded):
    assert "empty_row_nan" in page(served[1], "lise") or "NaN" in page(served[1], "lise")
    assert "my copy &lt;b&gt;.ipynb was taken as" in page(served[1], "tycho")


def test_a_submissions_page_holds_no_html_of_the_students(served, graded):
    shown = page(served[1], "heinrich")
    assert "alert" in shown  # as text
    reader = Active()
    reader.feed(shown)
    assert "alert(" not in reader.active and "heinrich.example" not in reader.active


def test_a_failure_of_the_grader_leaves_no_marks_and_no_lock(served, graded):
    data, browser = served
    (data / "secret").rename(data / "kept")
    (data / "secret").write_bytes(b"spoilt")
    done = press(browser, "ada")
    (data / "kept").replace(data / "secret")
    assert done["success"] is False and "should hold 32 random bytes" in done["log"]
    [ada] = [row for row in listed(browser) if row["student"] == "ada"]
    assert (ada["score"], ada["autograded"]) == (0, False)
    verdict = json.loads((data / "verdicts" / ASSIGNMENT / "ada.json").read_text())
    assert verdict["verdict"] == "failed" and "should hold 32 random bytes" in verdict["reason"]
    with open(data / "lock") as waiting:
        assert lock.taken(waiting)
    assert press(browser, "ada")["success"]
