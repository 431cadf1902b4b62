"""An answer that lives in a worker process, which is not trusted: what it says is checked; it may die or hang."""

import contextlib
import re
import time
from dataclasses import asdict

import torch

from .box import BoxFailed
from .carried import lendable
from .observe import OUTPUTS, Raw, Seen, looked_at, undefined
from .subject import Subject
from .wire import MESSAGE, BadFrame, Gone, Late, Peer
from .worker import PICTURE, PICTURES

START_SECONDS = 30.0  # for a worker to answer, on a busy machine
CELL_SECONDS = 10.0  # of one cell
GRACE_SECONDS = 5.0  # for a worker to say that it stopped its answer; then it is killed
TOTAL_SECONDS = 300.0  # of one submission
CALL_BYTES = 1 << 18  # of the tensors with which an answer calls a function of ours
CALL_ELEMENTS = 1 << 22  # of the largest tensor that a function of ours may make of them
TEXT = 100_000  # characters of a cell's output
TURNS = "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they make text read other than it is
ESCAPES = re.compile(rf"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\t\n\x20-\x7e\xa0-\U0010ffff]|[{TURNS}]")


class Lost(Exception):
    """The worker died, hung or lied; the message says why."""


class Worker:
    """One process for one submission; leaving kills it and all that it started."""

    def __init__(self, box, total_seconds=TOTAL_SECONDS):
        self.died, self.late = None, False  # why it is of no more use, and whether that is the time it took
        self.box, self.total_seconds = box, total_seconds
        self.channel = box.begin()
        number = self.channel.fileno()
        self.peer = Peer(number, number, call_bytes=CALL_BYTES, call_elements=CALL_ELEMENTS)
        try:
            self.peer.call("ready", seconds=START_SECONDS)
        except (BadFrame, Gone, Late) as problem:
            said = self.box.said(problem)
            self.kill(said)
            raise BoxFailed(f"The sandbox did not start a worker: {said}") from None
        self.until = time.monotonic() + total_seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.kill("it was closed")

    def kill(self, reason, ended=False):
        """End the worker and what it started, once; `died` keeps the first reason, and how it ended by itself."""
        if self.died is None:
            self.channel.close()
            how = self.box.end(ended)
            self.died = f"{reason} {how or 'its connection'}" if ended else reason

    def ask(self, function, *arguments, seconds):
        """What the worker's function returns; Lost when the worker is of no more use."""
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
            self.lose("the notebook's process ended", ended=True)
        except BadFrame as problem:
            self.lose(f"the notebook's process was stopped: it sent {problem}")

    def lose(self, reason, ended=False):
        self.kill(reason, ended)
        raise Lost(self.died)

    def run(self, source, seconds=CELL_SECONDS):
        """Run a cell: the text it printed, (type, message) of its exception or None, and the PNG files it drew."""
        try:
            reply = self.ask("run", source, seconds, seconds=seconds)
            with self.checking():
                require(type(reply) is dict)
                error = None if reply["error"] is None else exception(reply["error"])
                return plain(reply["text"], TEXT), error, drawn(reply["pictures"])
        except Lost as problem:
            return "", ("Stopped", str(problem)), []
        except Exception as problem:
            return "", far(problem), []

    def observe(self, name, inputs, look, given=None):
        """What the student's function `name` does on `inputs`."""
        try:
            given = {helper: lendable(function) for helper, function in (given or {}).items()}
            reply = self.ask("observe", name, inputs, asdict(look), given, seconds=look.seconds)
            with self.checking():
                return looked_at(raw(reply), inputs, look)
        except Lost as problem:
            return Seen(error=("OutOfTime" if self.late else "Stopped", str(problem)), late=self.late)
        except Exception as problem:
            return Seen(error=far(problem))  # its answer cannot be sent

    @contextlib.contextmanager
    def checking(self):
        try:
            yield
        except (TypeError, ValueError, KeyError, AttributeError):
            self.lose("the notebook's process was stopped: it sent what no worker sends")


class Boxed(Subject):
    """A Subject: the function `name` of a worker."""

    def __init__(self, worker, name, why=""):
        self.worker, self.name, self.why = worker, name, why  # why the name may be missing
        self.errors = set()  # the exceptions seen
        self.late = False

    def see(self, inputs, look, given=None):
        seen = self.worker.observe(self.name, inputs, look, given)
        if seen.error == undefined(self.name) and self.why:
            seen.error = (seen.error[0], f"{seen.error[1]}: {self.why}")
        self.errors |= {seen.error} if seen.error else set()
        self.late |= seen.late
        return seen


def raw(reply):
    """A Raw from a worker's reply; ValueError or TypeError when anything in it is not what it should be."""
    require(type(reply) is dict)
    outputs, after = reply["outputs"], reply["after"]
    require(type(outputs) is tuple and len(outputs) <= OUTPUTS and type(after) is dict)
    require(type(reply["late"]) is bool and (reply["error"] is None or not outputs))
    counts = [reply[name] for name in ("largest", "kept", "launches")]
    require(all(type(n) is int and n >= 0 for n in counts))
    error = None if reply["error"] is None else exception(reply["error"])
    return Raw(outputs, error, after, *counts, reply["late"])


def far(problem):
    """(type, message) of an exception that the worker raised; one of our own goes on."""
    if not hasattr(problem, "far"):
        raise problem
    return type(problem).__name__, plain(str(problem), MESSAGE)


def drawn(pictures):
    require(type(pictures) is list and len(pictures) <= PICTURES)
    require(all(torch.is_tensor(p) and p.dtype == torch.uint8 and p.numel() <= PICTURE for p in pictures))
    return [p.numpy().tobytes() for p in pictures]


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
