"""The sandbox: bubblewrap around a process that has imported torch, and forks a worker for each submission.

The network is off, no process of the machine is visible, and nothing is readable but the system's libraries, this
Python with its packages, and the few files of the course in FILES. What a worker may use is limited in `confine`.
Without bubblewrap (`boxed=False`) the same processes run unprotected; the grader does so only when asked by name.
"""

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from .cohort import ROOT, data
from .doctor import bubblewrap
from .errors import BadInput

HERE = "/course"  # where the course's files lie in the box
FILES = (  # all that a worker sees of the course, beside the stub
    "carried.py", "confine.py", "deadline.py", "draw.py", "isolation.py", "observe.py", "watch.py", "wire.py",
    "worker.py", "zygote.py",
)  # fmt: skip
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
SETTINGS = ("/etc/alternatives", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu")
PASSED_ON = ("PATH", "LD_LIBRARY_PATH")
START = (
    "import os, sys; sys.path[:] = [sys.argv[1], *(p for p in sys.path if os.path.realpath(p) != sys.argv[2])]; "
    "from autograder.zygote import main; main(sys.argv[3] == 'boxed')"
)
PROBE = (
    "import os, sys; sys.path.insert(0, sys.argv[1]); from autograder import confine; "
    "sys.exit(os.waitpid(confine.forked(confine.confine, True), 0)[1])"
)
START_SECONDS = 120.0  # to import torch, on a busy machine
IDLE = 300.0  # after so many seconds it is made anew; it ends by itself after twice as many
END_SECONDS = 20.0  # to kill one submission's processes
CAP_SYS_ADMIN, ALL = 21, 2**32 - 1  # a capability; how many users there are where none are left out


class BoxFailed(RuntimeError):
    """The sandbox did not start, or broke: the machine's fault, not the student's."""


class Box:
    """Workers, one after another. It opens when first used; `close` leaves no process."""

    def __init__(self, boxed=True):
        self.boxed, self.process, self.ready, self.used = boxed, None, False, 0.0

    def open(self):
        """Start importing torch, without waiting for it."""
        fresh, self.used = time.monotonic() < self.used + IDLE, time.monotonic()
        if self.process is not None and self.process.poll() is None and fresh:
            return
        self.close()
        self.ready = False
        self.folder = None if self.boxed else furnished()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the box
        self.control, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                boxed() if self.boxed else unboxed(self.folder), stdin=theirs, stdout=self.log, stderr=self.log,
                cwd="/", env=environment(self.folder or "/tmp"), start_new_session=True,
            )  # fmt: skip

    def begin(self):
        """A fresh worker: our end of a socket to it."""
        self.open()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self.wait()
                socket.send_fds(self.control, [b"+"], [theirs.fileno()])
                self.heard("begun", END_SECONDS)
                return ours
            except OSError as problem:
                said = self.said(problem)
                ours.close()
                self.close()
                raise BoxFailed(f"The sandbox did not start: {said}") from None

    def end(self, ended=False):
        """Kill the worker and all that it started; how it ended by itself, in words, or ""."""
        try:
            self.control.sendall(b"?" if ended else b"-")
            return self.heard("ended", END_SECONDS)
        except OSError:
            self.close()
            return "with the sandbox"

    def wait(self):
        if not self.ready:
            self.heard("ready", START_SECONDS)
            self.ready = True

    def said(self, otherwise):
        """The last line that the box wrote."""
        lines = os.pread(self.log.fileno(), 1 << 16, 0).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else str(otherwise)

    def heard(self, word, seconds):
        """What follows `word` in the line that comes next."""
        self.control.settimeout(seconds)
        line = b""
        while not line.endswith(b"\n"):
            got = self.control.recv(200)
            if not got:
                raise ConnectionError("its process ended")
            line += got
        said, _, rest = line.decode().strip().partition(" ")
        if said != word:
            raise ConnectionError(f"it said {said!r} in place of {word!r}")
        return rest

    def close(self):
        if self.process is None:
            return
        self.control.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        self.log.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@lru_cache
def shared(boxed=True):
    """This process's box."""
    box = Box(boxed)
    atexit.register(box.close)
    return box


def require():
    """Refuse, in one sentence, where there can be no sandbox."""
    if reason := available():
        raise BadInput(f"Submissions are graded in a sandbox, and there is none here: {reason}")


@lru_cache
def available():
    """Why no sandbox can be made here, and what to do; nothing where one can."""
    found = bubblewrap()
    return f"bubblewrap: {found.seen}. {found.mend}" if found.mend else ""


def probe():
    """The command line of a sandbox in which one process is confined, and nothing else happens; exit status 0."""
    return [*bwrap(), *python(PROBE, HERE)]


def furnished():
    """For a box that is none: a folder with a package `autograder` of a few files and a stub."""
    folder = tempfile.mkdtemp(prefix="attention-box-")
    for place, file in package(folder):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copyfile(file, place)
    return folder


def package(folder):
    """(place below `folder`, file) of all that is shown of the course."""
    here = os.path.dirname(__file__)
    shown = {"__init__.py": "stub.py", **{name: name for name in FILES}}
    return [(f"{folder}/autograder/{name}", os.path.join(here, file)) for name, file in shown.items()]


def unboxed(folder):
    return python(START, folder, ROOT, "unboxed")


def boxed():
    """The command line that starts the box."""
    return [*bwrap(), *python(START, HERE, HERE, "boxed")]


def bwrap():
    return [shutil.which("bwrap"), *namespaces(), *view(), "--"]


def python(code, *arguments):
    return [sys.executable, "-I", "-B", "-c", code, *map(str, arguments)]


def namespaces():
    """Root gives each worker a user of its own; others are mapped, and cannot make further user namespaces."""
    apart = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    apart += ["--hostname", "box", "--die-with-parent", "--cap-drop", "ALL"]
    added = ["SYS_ADMIN", "SETPCAP"]  # for the process that forks workers; these have none
    if privileged():
        added += ["SETUID", "SETGID", "CHOWN", "KILL"]
    else:
        apart += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    return [*apart, *(word for name in added for word in ("--cap-add", f"CAP_{name}"))]


def privileged():
    """Whether we are the machine's administrator, and not only of a container without rights."""
    if os.geteuid() != 0:
        return False
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff")]
    mapped = int(Path("/proc/self/uid_map").read_text().split()[2])
    return bool(int(line.split()[1], 16) >> CAP_SYS_ADMIN & 1) and mapped == ALL


def view():
    """All that is readable in the box: later places lie over earlier ones."""
    system = [*SYSTEM, *SETTINGS, *libraries()]
    prefixes = sorted({sys.prefix, sys.base_prefix, sys.base_exec_prefix}, key=len)
    private = [str(place) for place in (ROOT, data()) if any(map(place.is_relative_to, [*system, *prefixes]))]
    shown = [*bound("--ro-bind-try", system), *bound("--ro-bind", prefixes)]
    for place in private:
        again = [other for other in prefixes if Path(other).is_relative_to(place)]
        shown += ["--tmpfs", place, *bound("--ro-bind", again)]
    ours = [word for place, file in package(HERE) for word in ("--ro-bind", file, place)]
    return ["--tmpfs", "/tmp", *shown, "--proc", "/proc", "--dev", "/dev", *ways([f"{HERE}/autograder/stub"]), *ours,
            "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]  # fmt: skip


def bound(how, places):
    return [*ways(places), *(word for place in places for word in (how, place, place))]


def ways(places):
    """bwrap makes missing folders on the way for its own user alone."""
    folders = (str(parent) for place in places for parent in reversed(Path(place).parents[:-1]))
    return [word for folder in dict.fromkeys(folders) for word in ("--dir", folder)]


def libraries():
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [place for place in named if os.path.isabs(place) and place != "/"]


def environment(scratch):
    """Named variables only: the grader's own environment may hold secrets."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        **threads, "LANG": "C.UTF-8", "MPLBACKEND": "agg", "MPLCONFIGDIR": scratch, "TRITON_INTERPRET": "1",
    }  # fmt: skip
