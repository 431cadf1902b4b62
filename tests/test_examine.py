"""A rebuilt notebook, run in the sandbox and judged from outside: each exercise on its own merits."""

import base64
import io
import json

import pytest
from PIL import Image

from autograder import images, policy
from autograder.boxed import Worker
from autograder.examine import examine

VARIANCE = "def dot_product_variance(q, k):\n    return (q * k).sum(-1).var()"
PROJECT = "def project_qkv(x, w_q, w_k, w_v):\n    return x @ w_q, x @ w_k, x @ w_v"
CHECKS = {"project_qkv": "ch02/project_qkv", "dot_product_variance": "ch02/dot_product_variance"}


def notebook(*sources):
    """Code cells; the name of a function stands for its check."""
    cells = []
    for source in sources:
        function = source.split("/")[-1]
        name = CHECKS.get(source, source if "/" in source and "\n" not in source and " " not in source else None)
        graded = {"nbgrader": {"grade": True, "solution": False, "grade_id": function}}
        cells.append(
            {
                "cell_type": "code",
                "metadata": graded if name else {},
                "source": f'check("{name}", {function})' if name else source,
            }
        )
    return {"cells": cells}


def graded(*sources):
    found = examine(notebook(*sources), "ada", bytes(32))
    return found, [check["points"] for check in found["checks"]]


def text(outputs):
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_right_answers_earn_their_points_and_last():
    found, points = graded(PROJECT, VARIANCE, "project_qkv", "dot_product_variance")
    assert points == [2, 2] and found["lasting"] and found["stopped"] is None
    [output] = found["outputs"][2]
    assert output["data"]["text/plain"] == "2.0" and "2 of 2" in output["data"]["text/html"]


@pytest.mark.parametrize(
    ("deadly", "reason"),
    [
        ("def project_qkv(*arguments):\n    import os\n    os._exit(0)", "ended with exit status 0"),
        ("def project_qkv(*arguments):\n    import ctypes\n    ctypes.string_at(0)", "SIGSEGV"),
        ("import os\ndef project_qkv(*arguments):\n    os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os\nos._exit(7)", "ended with exit status 7"),
    ],
)
def test_a_process_that_dies_costs_the_exercise_it_died_in(deadly, reason):
    found, points = graded("x = 1", VARIANCE, deadly, "project_qkv", "print(x + 1)", "dot_product_variance")
    assert points == [0, 2] and reason in found["stopped"] and not found["lasting"]
    assert text(found["outputs"][4]) == "2\n"  # in a fresh process, with what came before run again


def test_a_notebook_that_dies_again_and_again_ends():
    found, points = graded(*["import os\nos._exit(1)"] * 20, PROJECT, "project_qkv")
    assert points == [0] and "exit status 1" in found["stopped"]
    assert "not run" in text(found["outputs"][19])


def test_what_ran_out_of_time_does_not_last(monkeypatch):
    monkeypatch.setattr(Worker.run, "__defaults__", (1.0,))
    found, points = graded("while True: pass", PROJECT, "project_qkv")
    assert points == [2] and not found["lasting"] and "after 1 s" in text(found["outputs"][0])


def test_a_missing_function_is_explained_by_the_cell_that_failed():
    later = "project_qkv(1)"
    found, points = graded("def project_qkv(x:\n    return x", later, "project_qkv", "dot_product_variance")
    syntax, absent = (check["said"] for check in found["checks"])
    assert (
        points == [0, 0]
        and "stopped with SyntaxError" in syntax
        and "not defined" in absent
        and "SyntaxError" not in absent
    )


def test_what_is_drawn_is_shown_as_pixels_and_html_as_text():
    found, _ = graded(
        "import matplotlib.pyplot as plt\nfig = plt.plot([1, 3, 2])\nplt.show()",
        "from IPython.display import HTML, SVG, display\ndisplay(HTML('<script>alert(1)</script>'))\n"
        "display({'text/html': '<b>', 'application/javascript': 'alert(1)', 'text/plain': 'plain'}, raw=True)",
    )
    [figure] = [
        output["data"]["image/png"] for output in found["outputs"][0] if output["output_type"] == "display_data"
    ]
    with Image.open(io.BytesIO(base64.b64decode(figure))) as picture:
        assert min(picture.size) > 100
    assert {output["output_type"] for output in found["outputs"][1]} == {"stream"}
    assert "script" not in json.dumps(found["outputs"][1]) and "plain" in text(found["outputs"][1])


def png(size=(3, 2), trailing=b"", **saved):
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, "PNG", **saved)
    return file.getvalue() + trailing


def test_a_picture_keeps_its_pixels_and_nothing_else():
    from PIL.PngImagePlugin import PngInfo

    secret = PngInfo()
    secret.add_text("comment", "<script>alert(1)</script>")
    shown = base64.b64decode(images.shown(png(trailing=b"<script>", pnginfo=secret)))
    with Image.open(io.BytesIO(shown)) as picture:
        assert picture.size == (3, 2) and picture.convert("RGB").getpixel((0, 0)) == (255, 0, 0) and not picture.info
    assert b"script" not in shown


@pytest.mark.parametrize(
    "data",
    [b"", b"\x89PNG", png()[:40], png((4001, 1000)), b"<svg onload='alert(1)'/>", b"GIF89a" + bytes(40)],
    ids=["empty", "signature", "truncated", "large", "svg", "gif"],
)
def test_what_is_no_picture_is_left_out(data):
    assert images.shown(data) is None


def test_a_picture_whose_header_lies_is_left_out():
    bomb = bytearray(png())
    bomb[16:24] = (60000).to_bytes(4, "big") * 2
    assert images.shown(bytes(bomb)) is None


CACHE = """
import torch

class KVCache:
    def __init__(self, batch, heads, length, dim):
        self.k, self.v = torch.zeros(2, batch, heads, length, dim)
        self.n = 0

    def append(self, k, v):
        n, self.n = self.n, self.n + k.shape[2]
        self.k[:, :, n:self.n], self.v[:, :, n:self.n] = k, v
        return self.k[:, :, :self.n], self.v[:, :, :self.n]
"""


def test_points_that_could_be_forged_wait_for_a_person_when_the_notebook_reaches_for_the_grader():
    honest, points = graded(CACHE, "ch08/KVCache")
    [check] = honest["checks"]
    assert points == [check["max_points"]] and check["doubt"] == "" and not check["pending_points"]
    found, points = graded("import gc", CACHE, "ch08/KVCache")
    [check] = found["checks"]
    assert 0 < points[0] < check["max_points"] and points[0] + check["pending_points"] == check["max_points"]
    assert "bytes" in check["doubt"] and "gc" in check["doubt"]
    values, points = graded("import gc", PROJECT, "project_qkv")
    assert points == [2] and values["checks"][0]["doubt"] == ""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import sys\nsys.modules['autograder.watch']", ["modules", "sys", "watch"]),
        ("getattr(sys, '_getframe')()", ["_getframe", "getattr", "sys"]),
        ("exec(bytes.fromhex('70'))", ["exec"]),
        ("from torch.utils._python_dispatch import TorchDispatchMode", ["TorchDispatchMode", "_python_dispatch"]),
        ("%magic\nimport gc", ["gc"]),
        ("import torch\nx = torch.ones(3).sum()", []),
    ],
)
def test_reaching_is_seen_by_names(source, found):
    assert policy.reaches([{"cell_type": "code", "source": source}]) == found


def test_lent_functions_take_no_giant_arguments():
    """They run in the grader: an N × N of a student's choosing would be the grader's memory."""
    wrong = "def scaled_dot_product_attention(q, k, v, mask=None):\n    return q, q"
    giant = (
        "import torch\ndef multi_head_attention(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):\n"
        "    q = torch.zeros(1, 1, 9000, 1)\n    return scaled_dot_product_attention(q, q, q)[0]"
    )
    found, points = graded(wrong, giant, "ch03/multi_head_attention", PROJECT, "project_qkv")
    assert points == [0, 2] and "too large" in found["stopped"]
