"""An answer that lives in a worker process, which is not trusted: what it says is checked; it may die or hang."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import torch

from .observe import Seen
from .subject import Subject
from .wire import MESSAGE, BadFrame, Gone, Late, Peer

FILES = (
    "deadline.py",
    "draw.py",
    "isolation.py",
    "observe.py",
    "watch.py",
    "wire.py",
    "worker.py",
)  # all that a worker sees of the course
STUB = '''"""Stands for the course's autograder where a submission runs."""


def check(name, answer):
    """Says nothing about the answer: the grader asks it, from outside, on inputs of its own."""
    print(f"{name}: the grader will answer.")
'''
ROOT = Path(__file__).resolve().parent.parent  # on a worker's path where the course is installed from its folder
START = (
    "import os, sys; sys.path[:] = [sys.argv[1], *(p for p in sys.path if os.path.realpath(p) != sys.argv[2])]; "
    "from autograder.worker import main; main()"
)
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "SYSTEMROOT")

START_SECONDS = 120.0  # for a worker to import torch, on a busy machine
CELL_SECONDS = 10.0  # of one cell
GRACE_SECONDS = 5.0  # for a worker to say that it stopped its answer; then it is killed
TOTAL_SECONDS = 300.0  # of one submission
CALL_BYTES = 1 << 20  # of the tensors with which an answer calls a function of ours
TEXT = 100_000  # characters of a cell's output
OUTPUTS = 64  # tensors that an answer may return
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\t\n\x20-\x7e\xa0-\U0010ffff]")


class Lost(Exception):
    """The worker died, hung or lied; the message says why."""


class WorkerFailed(RuntimeError):
    """A worker did not start: the machine's fault, not the student's."""


class Worker:
    """One process for one submission. It starts at once and is waited for when first asked; leaving kills its group."""

    def __init__(self, total_seconds=TOTAL_SECONDS):
        self.died, self.late = None, False  # why it is of no more use, and whether that is the time it took
        self.total_seconds, self.until, self.start_seconds = total_seconds, None, None
        self.began = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="attention-worker-"))
        self.log = self.folder / "log"
        furnish(self.folder)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", START, str(self.folder), str(ROOT)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                cwd=self.folder / "work", env=environment(self.folder), start_new_session=True,
            )  # fmt: skip
        # The pipes are unbuffered: the wire reads and writes their descriptors.
        self.peer = Peer(self.process.stdout.fileno(), self.process.stdin.fileno(), call_bytes=CALL_BYTES)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.kill("it was closed")
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self, reason):
        """End the worker and what it started, once; `died` keeps the first reason."""
        if self.died is None:
            self.died = reason
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()

    def started(self):
        """Wait until the worker answers."""
        if self.start_seconds is None:
            try:
                self.peer.call("ready", seconds=START_SECONDS)
            except (BadFrame, Gone, Late) as problem:
                self.kill(str(problem))
                said = self.log.read_text("utf-8", "replace").strip().splitlines()[-1:]
                raise WorkerFailed(f"A worker did not start: {said[0] if said else problem}") from None
            self.start_seconds = time.monotonic() - self.began
            self.until = time.monotonic() + self.total_seconds

    def ask(self, function, *arguments, seconds):
        """What the worker's function returns; Lost when the worker is of no more use."""
        self.started()
        if self.died is not None:
            raise Lost(self.died)
        left, allowed = self.until - time.monotonic(), seconds + GRACE_SECONDS
        try:
            return self.peer.call(function, *arguments, seconds=min(left, allowed))
        except Late:
            self.late = True
            used = f"{self.total_seconds:g} s in all" if left < allowed else f"more than {seconds:g} s"
            self.lose(f"the notebook's process was stopped: it took {used}")
        except Gone:
            self.lose(f"the notebook's process ended {self.ending()}")
        except BadFrame as problem:
            self.lose(f"the notebook's process was stopped: it sent {problem}")

    def lose(self, reason):
        self.kill(reason)
        raise Lost(reason)

    def ending(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_SECONDS)
        code = self.process.returncode
        if code is None:
            return "its connection"
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"

    def run(self, source, seconds=CELL_SECONDS):
        """Run a cell: the text it printed, and (type, message) of its exception or None."""
        try:
            reply = self.ask("run", source, seconds, seconds=seconds)
            with self.checking():
                error = None if reply["error"] is None else exception(reply["error"])
                return plain(reply["text"], TEXT), error
        except Lost as problem:
            return "", ("Stopped", str(problem))

    def observe(self, name, inputs, look, given=None):
        """What the student's function `name` does on `inputs`."""
        try:
            reply = self.ask("observe", name, inputs, asdict(look), given or {}, seconds=look.seconds)
            with self.checking():
                return seen(reply)
        except Lost as problem:
            return Seen(error=("OutOfTime" if self.late else "Stopped", str(problem)), late=self.late)
        except Exception as problem:
            if not hasattr(problem, "far"):
                raise
            return Seen(error=(type(problem).__name__, plain(str(problem), MESSAGE)))  # its answer cannot be sent

    @contextlib.contextmanager
    def checking(self):
        try:
            yield
        except (TypeError, ValueError, KeyError, AttributeError):
            self.lose("the notebook's process was stopped: it sent what no worker sends")


class Boxed(Subject):
    """A Subject: the function `name` of a worker."""

    def __init__(self, worker, name):
        self.worker, self.name = worker, name
        self.errors = set()  # the exceptions seen

    def see(self, inputs, look, given=None):
        seen = self.worker.observe(self.name, inputs, look, given)
        self.errors |= {seen.error} if seen.error else set()
        return seen


def furnish(folder):
    """A folder with all that a worker needs: a package `autograder` of a few files and a stub, and room to work."""
    package = folder / "autograder"
    for made in (package, folder / "work", folder / "cells"):
        made.mkdir()
    for name in FILES:
        shutil.copyfile(Path(__file__).with_name(name), package / name)
    (package / "__init__.py").write_text(STUB, encoding="utf-8")


def environment(folder):
    """Named variables only: the grader's own environment may hold secrets."""
    work = str(folder / "work")
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        **dict.fromkeys(("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR", "TRITON_CACHE_DIR"), work),
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        "LANG": "C.UTF-8", "MPLBACKEND": "agg",
    }  # fmt: skip


def seen(reply):
    """A Seen from a worker's reply; ValueError or TypeError when anything in it is not what it should be."""
    outputs, kinds, changed = reply["outputs"], reply["kinds"], reply["changed"]
    require(type(outputs) is tuple and len(outputs) <= OUTPUTS and type(kinds) is tuple and len(kinds) == len(outputs))
    require(all(torch.is_tensor(t) and t.dtype == torch.float64 for t in outputs))
    require(type(changed) is tuple and len(changed) <= OUTPUTS)
    require(type(reply["late"]) is bool and (reply["error"] is None or not outputs))
    counts = [reply[name] for name in ("largest", "kept", "launches")]
    require(all(type(n) is int and n >= 0 for n in counts))
    error = None if reply["error"] is None else exception(reply["error"])
    words = [tuple(plain(word, 80) for word in words) for words in (kinds, changed)]
    return Seen(outputs, words[0], error, words[1], *counts, reply["late"])


def exception(reply):
    """(type, message), of a worker's exception."""
    name, message = reply
    return plain(name, 80), plain(message, MESSAGE)


def require(true):
    if not true:
        raise ValueError("not an observation")


def plain(text, limit):
    """Text without escape sequences and control characters: it is shown in terminals and pages."""
    require(type(text) is str)
    return ESCAPES.sub("", text)[:limit]
