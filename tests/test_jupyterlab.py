"""What a student has in JupyterLab: an exercise answered by hand and checked, and a slider that moves.

Slow (half a minute on two cores): a real server, a real kernel that imports torch, and a real page are what is in
question, and JupyterLab takes a while to come up.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import nbformat
import pytest
from browsing import DESKTOP, chromium_browser
from playwright.sync_api import expect

from autograder import cohort

NAME = "02_queries_keys_values"
TOKEN = "of-the-test"
PATIENCE = 180_000  # milliseconds, for a kernel that imports torch beside other tests on a busy machine
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "notebook-extension/tracker": {"windowingMode": "none"},  # else a cell is on the page only while it is in sight
}
MOVING = f"""
import sys
sys.path.insert(0, {str(cohort.ROOT / "book")!r})
import figures
figures.Frames(lambda n: (figures.canvas(n, 1)[0], f"a drawing of {{n}} cells"), [1, 2, 3], "cells")
"""


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """A student's folder: the problem set as it is handed out, and a page with a slider."""
    folder = tmp_path_factory.mktemp("student")
    shutil.copytree(cohort.RELEASED / NAME, folder / NAME)
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    page = nbformat.v4.new_notebook(metadata=kernel, cells=[nbformat.v4.new_code_cell(MOVING.strip())])
    nbformat.write(page, folder / "moving.ipynb")
    return folder


@pytest.fixture(scope="module")
def lab(student, tmp_path_factory):
    """The address of a JupyterLab of its own: settings, kernels' files and workspaces in a folder that goes."""
    own = tmp_path_factory.mktemp("lab")
    for plugin, settings in SETTINGS.items():
        path = own / f"settings/@jupyterlab/{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
    places = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    variables = {f"JUPYTER_{name}": str(own / place) for name, place in places.items()}
    variables |= {f"JUPYTERLAB_{name.upper()}_DIR": str(own / name) for name in ("settings", "workspaces")}
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--ServerApp.root_dir={student}", "--ServerApp.port_retries=0"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    environment = {**os.environ, **variables, "JUPYTER_TOKEN": TOKEN}
    with open(own / "log", "w") as log, subprocess.Popen(command, env=environment, stdout=log, stderr=log) as server:
        try:
            wait_for(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", server, own / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for(address, server, log):
    for _ in range(240):
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(address, timeout=60):
            return
        assert server.poll() is None, log.read_text()
        time.sleep(0.5)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def page(chromium, lab):
    with chromium_browser(chromium) as browser:
        page = browser.new_context(viewport=DESKTOP).new_page()
        page.set_default_timeout(PATIENCE)
        yield page


def run_all(page, lab, path, typed=()):
    """Open a notebook, write over lines of it, and run all its cells, as by hand."""
    page.goto(f"{lab}/lab/tree/{path}?token={TOKEN}&reset")
    page.get_by_title("Python 3 | Idle").or_(page.locator("[data-status=idle]")).first.wait_for()
    for old, new in typed:
        page.locator(".cm-line:visible", has_text=old).first.click()
        for key in ("End", "Shift+Home"):  # from the line's end to where its code begins
            page.keyboard.press(key)
        page.keyboard.type(new)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def test_an_answer_that_is_typed_in_is_checked_on_the_page(page, lab):
    typed = [("raise NotImplementedError", "return x @ w_q, x @ w_k, x @ w_v")]
    run_all(page, lab, f"{NAME}/{NAME}.ipynb", typed)
    reports = page.locator(".jp-OutputArea-output b")  # as HTML: a report as text has no bold title
    expect(reports).to_have_count(4, timeout=PATIENCE)
    assert reports.first.inner_text() == "ch02/project_qkv: 2 of 2 points"
    assert "ch02/attention_backward: 0 of" in reports.last.inner_text()
    assert page.locator(".jp-OutputArea-output a", has_text="Read: 02-queries-keys-values#").count() == 3


def test_frames_are_a_widget_that_moves(page, lab):
    run_all(page, lab, "moving.ipynb")
    drawing = page.locator(".jupyter-widgets svg:visible")
    expect(drawing).to_have_attribute("aria-label", "a drawing of 1 cells", timeout=PATIENCE)
    page.locator("[role=slider]").focus()
    page.keyboard.press("ArrowRight")
    expect(drawing).to_have_attribute("aria-label", "a drawing of 2 cells")
    page.locator(".widget-play button").first.click()
    expect(drawing).to_have_attribute("aria-label", "a drawing of 3 cells")
