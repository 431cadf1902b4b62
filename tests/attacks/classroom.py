"""A class of attackers, each followed by an honest student, graded once; and what may not have changed meanwhile."""

import base64
import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

from autograder import cohort

from . import attack
from .attack import ASSIGNMENT, FILE

ROOT = cohort.ROOT
TOKEN = "token-8d1f0c52e7"  # an instructor's, in the environment of the grader
SECRET = b"the secret of a hostile class 12"
MARK = "hostile-3c9a41"
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock")
LARGE = 1 << 26
HIDDEN = ("Shmem", "PageTables")  # memory that belongs to no process alone
SUBREAPER = 36  # prctl: orphans below this process become its children


class Classroom:
    """What lies where, and how grading went."""

    def __init__(self, data, attacks):
        self.data, self.attacks, self.next = data, attacks, followers(attacks)
        self.students = {*(one.name for one in attacks), *self.next.values()}
        shutil.rmtree(data, ignore_errors=True)
        self.scratch = data.parent / f"{data.name}-tmp"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    def hand_in(self, port):
        places = {"REPO": str(ROOT), "DATA": str(self.data), "HOME": str(Path.home()), "MARK": MARK, "PORT": port}
        good = attack.filled(attack.HONEST)
        for student in set(self.next.values()):
            attack.write(self.folder(student), good)
        for one in self.attacks:
            one.hand_in(self.folder(one.name), places)
        (self.data / "secret").write_bytes(SECRET)
        (self.data / "roster.csv").write_text("id,first_name\nzoe,Zoe\n")

    def folder(self, student):
        return self.data / "submitted" / student / ASSIGNMENT

    def run(self, *command):
        """A command as an instructor types it, watched."""
        environment = {**os.environ, "COURSE_DATA": str(self.data), "TMPDIR": str(self.scratch), "LMS_TOKEN": TOKEN}
        with adopting() as orphans, Memory() as memory:
            done = subprocess.run(
                [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True,
                errors="surrogateescape", timeout=900,
            )  # fmt: skip
        done.orphans, done.memory = orphans, memory
        return done

    def rows(self):
        """The verdicts as they are shown, by student."""
        done = self.run("autograder", "grades", "--json")
        found = {}
        for row in json.loads(done.stdout):
            found.setdefault(row["student"], []).append(row)
        return found

    def shown(self, student):
        """Everything that the autograded notebook shows beside the code itself."""
        path = self.data / "autograded" / student / ASSIGNMENT / FILE
        cells = json.loads(path.read_text("utf-8"))["cells"] if path.exists() else []
        return [output for one in cells for output in one.get("outputs", [])]

    def written(self, student):
        """The bytes of all that the grader wrote about a student, code and pictures aside."""
        yield json.dumps(self.shown(student), ensure_ascii=False).encode("utf-8", "surrogatepass")
        yield (self.data / "verdicts" / ASSIGNMENT / f"{student}.json").read_bytes()
        for path in (self.data / "feedback" / student).rglob("*.html"):
            yield path.read_bytes()

    def originals(self, below):
        """What lies below a folder of the class, by student."""
        return {student: signature(below(student)) for student in self.students}

    def tampered(self):
        """What somebody put into the gradebook that nbgrader does not."""
        with contextlib.closing(sqlite3.connect(self.data / "gradebook.db")) as book:
            yield from book.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')")
            yield from book.execute("SELECT id, extra_credit FROM grade WHERE extra_credit")


def followers(attacks):
    """The honest student who is graded after each attack: at once where it is one by processes or memory ("-" comes
    before every letter), after a few others where it is not."""
    found, honest = {}, None
    for number, one in enumerate(sorted(attacks, key=lambda one: one.name, reverse=True)):
        if number % 4 == 0 or one.name.startswith(("processes", "resources")):
            honest = f"{one.name}-honest"
        found[one.name] = honest
    return found


# --- what may not change ----------------------------------------------------------------------------------------------


def signature(path):
    """What lies at a path, however odd: kinds, links, contents."""
    path = Path(path)
    about = path.lstat()
    kind = stat.S_IFMT(about.st_mode)
    if stat.S_ISLNK(about.st_mode):
        return kind, os.readlink(path)
    if stat.S_ISDIR(about.st_mode):
        return kind, {one.name: signature(one) for one in path.iterdir()}
    if stat.S_ISREG(about.st_mode):
        return kind, hashlib.sha256(path.read_bytes()).hexdigest() if about.st_size < LARGE else about.st_size
    return kind, None


def machine():
    """Digests of the course's files, and the names of what the environment, the home and shared folders hold."""
    left_out = {".git", ".venv", "_build", "class", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis"}
    found = {}
    for place, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in left_out]
        found |= {f"{place}/{name}": signature(f"{place}/{name}") for name in files}
    libraries = [path for path in map(Path, sys.path) if path.is_dir()] + [Path(sys.executable).parent]
    for folder in [*libraries, Path(attack.__file__).parent, *map(Path.home().joinpath, (".ipython", ".jupyter", ""))]:
        if folder.is_dir():
            found[str(folder)] = sorted(name for name in os.listdir(folder) if name != "__pycache__")
    return found


def left():
    """What carries the mark of this class and lies where everybody may write."""
    return [f"{place}/{name}" for place in PLACES if os.path.isdir(place) for name in os.listdir(place) if MARK in name]


def marked():
    """Processes that carry the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [path] if MARK.encode() in path.read_bytes() else []
    return found


def solution_lines():
    """Lines of the model solution that stand in nothing that students hand in here."""
    source = json.loads((ROOT / "_build" / "source" / ASSIGNMENT / FILE).read_text("utf-8"))
    released = json.dumps(cohort.released(ASSIGNMENT), ensure_ascii=False)
    known = "".join([released, *attack.RIGHT.values(), *attack.HONEST.values()])
    lines = {line.strip() for cell in source["cells"] for line in "".join(cell["source"]).splitlines()}
    return [line for line in lines if len(line) > 25 and line not in known and json.dumps(line)[1:-1] not in known]


class Listeners:
    """Sockets on which somebody in the sandbox might call."""

    def __enter__(self):
        tcp = socket.create_server(("0.0.0.0", 0))
        self.port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", self.port))
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(f"\0{MARK}")
        unix.listen()
        self.sockets = [tcp, udp, unix]
        return self

    def __exit__(self, *_):
        for one in self.sockets:
            one.close()

    def called(self):
        """What has arrived."""
        found = []
        for one in self.sockets:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                found.append(one.recv(99) if one.type == socket.SOCK_DGRAM else one.accept())
        return found


# --- processes --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def adopting():
    """A list that holds, afterwards, the processes that the block started and left behind."""
    prctl, orphans = ctypes.CDLL(None).prctl, []
    before = children()
    prctl(SUBREAPER, 1, 0, 0, 0)
    try:
        yield orphans
        until = time.monotonic() + 3
        while (found := children() - before) and time.monotonic() < until:
            time.sleep(0.1)
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        orphans += found
    finally:
        prctl(SUBREAPER, 0, 0, 0, 0)


def children():
    return {int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


class Memory(threading.Thread):
    """While a command runs: the most that one of the grader's own processes takes, and that the machine takes more than
    before as shared memory and for tables of pages, in bytes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.largest, self.machine, self.over = 0, dict.fromkeys(HIDDEN, 0), threading.Event()

    def __enter__(self):
        self.before = machines()
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()

    def run(self):
        while not self.over.wait(0.1):
            now = machines()
            self.machine = {name: max(most, now[name] - self.before[name]) for name, most in self.machine.items()}
            self.largest = max([self.largest, *(peak(pid) for pid in descendants(os.getpid()))])


def machines():
    with open("/proc/meminfo") as file:
        lines = dict(line.split(":", 1) for line in file)
    return {name: int(lines[name].split()[0]) << 10 for name in HIDDEN}


def descendants(pid):
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        waiting += (below := [child for child, of in parents.items() if of == parent])
        found += below
    return found


def peak(pid):
    """The most memory that a process ever held; 0 for one in a sandbox, which has a process number of its own."""
    with contextlib.suppress(OSError, KeyError):
        with open(f"/proc/{pid}/status") as file:
            about = dict(line.split(":", 1) for line in file)
        return int(about["VmHWM"].split()[0]) << 10 if len(about["NSpid"].split()) == 1 else 0
    return 0


def pictures(outputs):
    """The PNG files among outputs."""
    return [base64.b64decode(one["data"]["image/png"]) for one in outputs if "image/png" in one.get("data", {})]
