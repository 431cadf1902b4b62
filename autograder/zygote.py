"""The process in the box that has imported what submissions need, and forks a worker for each. It runs no student code.

Its standard input is a socket to the grader: "+" with a socket asks for a worker, "-" for its end, "?" for how it ended
by itself. It watches what all processes of a worker use together, which no limit of the system counts.
"""

import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import tempfile
import time

from . import confine
from .worker import work

WARM = (  # imported once for all: what notebooks import, and what torch imports when first asked for a gradient
    "numpy", "torch", "torch.testing", "torch.fx.experimental.symbolic_shapes", "triton",
    "IPython.core.interactiveshell", "IPython.core.displayhook", "matplotlib_inline.backend_inline",
)  # fmt: skip
POLL = 0.05  # seconds
FIRST = 2  # processes that share with us what we have; what they fork counts whole, since it may come to own it
ENDING = 2.0  # seconds that the processes of a worker may take to end when it has
IDLE = 600.0  # seconds without a worker, after which it ends


def main(boxed):
    control = socket.socket(fileno=os.dup(0))
    for name in WARM:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    silence(0)
    gc.collect()
    gc.freeze()  # what is shared stays shared: the collector writes to all it looks at
    serve(control, boxed)


def serve(control, boxed):
    """Do what the grader asks until it closes its end, or asks for nothing for long."""
    worker, last = None, time.monotonic()
    control.sendall(b"ready\n")
    while worker or time.monotonic() - last < IDLE:
        if worker:
            worker.watch()
        if not select.select([control], [], [], POLL if worker else IDLE)[0]:
            continue
        asked, channels, *_ = socket.recv_fds(control, 1, 1)
        if asked == b"+":
            if worker:
                worker.end()
            worker = Life(channels[0], boxed)
            control.sendall(b"begun\n")
        elif asked in (b"-", b"?"):
            worker.wait(ENDING if asked == b"?" else 0)
            control.sendall(f"ended {worker.end()}\n".encode())
            worker, last = None, time.monotonic()
        else:
            break
    if worker:
        worker.end()


class Life:
    """A worker, and whatever it starts."""

    def __init__(self, channel, boxed):
        self.boxed, self.how = boxed, None
        self.before, self.own = processes(), memory("self")
        self.folder = "/tmp" if boxed else tempfile.mkdtemp(prefix="attention-worker-")
        self.process = confine.forked(lambda: born(channel, self.folder, boxed), boxed)
        os.close(channel)

    def watch(self):
        """End it when it uses too much, and note how it ended."""
        if self.how is None and os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.kill("")
        if self.how is None and self.boxed:
            mine = processes() - self.before
            if len(mine) > confine.PROCESSES + 1:
                self.kill("since it started too many processes")
            elif sum(map(memory, mine)) - FIRST * self.own > confine.MEMORY:
                self.kill("since it used too much memory")

    def wait(self, seconds):
        until = time.monotonic() + seconds
        self.watch()
        while self.how is None and time.monotonic() < until:
            time.sleep(POLL / 10)
            self.watch()

    def kill(self, how):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.kill if self.boxed else os.killpg)(self.process, signal.SIGKILL)
        _, status = os.waitpid(self.process, 0)
        self.how = how or confine.ending(os.waitstatus_to_exitcode(status))

    def end(self):
        """Nothing of it is left; how it had ended by itself, or ""."""
        how = self.how
        if how is None:
            self.kill("")
        if not self.boxed:
            shutil.rmtree(self.folder, ignore_errors=True)
        return how or ""


def born(channel, folder, boxed):
    """In the new process: confined, it becomes a worker."""
    os.closerange(3, channel)
    os.closerange(channel + 1, confine.OPEN)
    home = confine.home(folder)
    if boxed:
        confine.confine()
    else:
        confine.limit()
    os.chdir(home)
    silence(0, 1, 2)  # until here, what fails is told in the box's log
    work(channel, os.path.join(folder, "cells"))


def silence(*descriptors):
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(nothing, descriptor)
    os.close(nothing)


def processes():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} if os.path.isdir("/proc/self") else set()


def memory(pid):
    """Bytes of a process's own memory, of what it shares without a file, and of the tables that say where."""
    try:
        with open(f"/proc/{pid}/status") as status:
            lines = [line.split() for line in status if line.startswith(("RssAnon", "RssShmem", "VmPTE"))]
    except OSError:
        return 0
    return sum(int(line[1]) << 10 for line in lines)
