"""What was handed in is kept as it came; in its place comes a clean copy, and nothing else is read from then on.

    submitted/STUDENT/ASSIGNMENT       what is new here is moved, unopened, to
    received/STUDENT/ASSIGNMENT/NNN    where it stays; a folder with the text of its cells and its time takes its place
    intake/ASSIGNMENT/STUDENT.json     which original that was, how it was read, and what was written

A later upload differs from what was written. After a kill the next run ends as this one would have: the clean copy
follows from the original, and the record is written last.
"""

import errno
import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from . import cohort, intake, submitted, timestamp
from .errors import BadInput
from .intake import Taken
from .lock import alone
from .regular import Refused, content, kind

TRIES = 5
HALF = ".half"  # a folder that is being written
NOTHING = "nothing was handed in"


def take(assignment: str, student: str) -> Taken:
    """How a submission is to be graded. What is new is kept and cleaned first; nothing that it holds raises."""
    if reason := submitted.unfit(student):
        return Taken(None, [f"the name {submitted.printable(student)} {reason}"], "missing")
    place = Place(assignment, student)
    with alone():
        try:
            place.settle()
        except Refused as problem:
            return Taken(None, [f"the folder {problem}"], "unreadable")
        return place.taken()


def repair():
    """Before anything reads submitted/: finish what a kill left half done; put away what would stop nbgrader."""
    names, places = submitted.unserved(), half_done() + misdated()
    if names or places or leftovers():
        with alone():
            for path in leftovers():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            for name in names:
                with suppress(FileNotFoundError):  # another process was faster
                    submitted.aside(name)
            for place in places:
                with suppress(Refused):  # `take` says it
                    place.settle()


def leftovers():
    """What was being written when a kill came."""
    return [path for pattern in (".half-*", f"*{HALF}") for path in (cohort.data() / "intake").glob(f"*/{pattern}")]


def half_done():
    """Places whose original has been moved away. (What else a kill leaves, `take` finds.)"""
    return [place for place in within(cohort.data() / "received") if kind(place.folder) is None]


def misdated():
    """Places with a time that nbgrader stumbles over, or waits for without end, before it asks us anything."""
    return [place for place in within(submitted.root()) if not timestamp.served(place.folder / timestamp.FILE)]


def within(folder):
    """The places for which there is something in a folder STUDENT/ASSIGNMENT."""
    known = set(cohort.assignments())
    for student in submitted.entries(folder):
        if not submitted.unfit(student):
            yield from (Place(one, student) for one in submitted.entries(folder / student) if one in known)


@dataclass(frozen=True)
class Place:
    """Where one student hands in one assignment."""

    assignment: str
    student: str

    @property
    def folder(self):
        return submitted.root() / self.student / self.assignment

    @property
    def kept(self):
        return cohort.data() / "received" / self.student / self.assignment

    @property
    def record(self):
        return cohort.data() / "intake" / self.assignment / f"{self.student}.json"

    def settle(self):
        """Until the folder is what the record says that was written."""
        for _ in range(TRIES):
            record, newest = self.recorded(), self.newest()
            if newest > record["original"]:  # moved, and not recorded yet
                self.finish(newest, record)
            elif self.thing() is not None and written(self.folder) != record["files"]:
                self.keep(max(newest, record["original"]) + 1)
            else:
                return
        raise BadInput(f"{self.folder} keeps changing; grade again when nothing writes there any more.")

    def taken(self):
        if kind(self.folder) is None:
            return Taken(None, [NOTHING], "missing")
        record = self.recorded()
        if record["verdict"] != "graded":
            return Taken(None, record["notes"], record["verdict"])
        return Taken(intake.read(self.folder, self.assignment).cells, record["notes"], "graded")

    def recorded(self):
        """The record. One that is lost or damaged is made again from the original."""
        try:
            record = json.loads(content(self.record, intake.FILE_BYTES))
            list(record["notes"]), str(record["verdict"])
            return {**record, "original": int(record["original"]), "files": dict(record["files"])}
        except (Refused, ValueError, KeyError, TypeError):
            return {"original": 0, "files": {"none": ""}}

    def newest(self):
        return max((int(name) for name in submitted.entries(self.kept) if name.isdecimal()), default=0)

    def thing(self):
        """What was handed in: the folder, or what is there in place of it or of the student's own; None for nothing."""
        for path in (self.folder.parent, self.folder):
            if kind(path) != "a folder":
                break
        return path if kind(path) else None

    def keep(self, number):
        """Move it as it is: a rename opens nothing."""
        self.kept.mkdir(parents=True, exist_ok=True)
        thing = self.thing()
        try:
            if kind(thing) == "a folder" and not os.access(thing, os.R_OK | os.W_OK | os.X_OK):
                os.chmod(thing, 0o700)  # only who may write in a folder may move it elsewhere
            os.rename(thing, self.kept / f"{number:03}")
        except OSError as problem:
            if problem.errno == errno.EXDEV:
                raise BadInput(
                    f"{submitted.root()} and {self.kept} lie on different disks; they must be on one."
                ) from None
            raise Refused(f"cannot be moved to received/ ({problem.strerror})") from None

    def finish(self, number, before):
        """The clean copy of an original into its place, unless a later upload is there; then the record."""
        original, notebook = self.kept / f"{number:03}", f"{self.assignment}.ipynb"
        found = intake.read(original, self.assignment, lambda path: is_file(path, before["files"].get(notebook)))
        time, undated = timestamp.read(original)
        files = {notebook: intake.notebook(self.released() if found.cells is None else found.cells)}
        files |= {timestamp.FILE: time.encode()} if time else {}
        if self.thing() is None:
            self.put(files)
        digests = {name: digest(raw) for name, raw in files.items()}
        record = {"original": number, "verdict": found.verdict, "notes": found.notes + undated, "files": digests}
        self.record.parent.mkdir(parents=True, exist_ok=True)
        cohort.whole(self.record, json.dumps(record, indent=1, ensure_ascii=False).encode())

    def released(self):
        return intake.cells(cohort.released(self.assignment))

    def put(self, files):
        half = self.record.with_suffix(HALF)
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        for name, raw in files.items():
            cohort.whole(half / name, raw)
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(half, self.folder)
        except OSError:
            if self.thing() is None:
                raise  # else another upload came in between: the next round keeps it


def written(folder: Path):
    """The digests of the files in a folder, as a record keeps them; None where there is what we never write."""
    if kind(folder) != "a folder":
        return None
    try:
        names = [name for name in submitted.entries(folder) if not by_a_tool(folder / name)]
        return {name: digest(content(folder / name, intake.FILE_BYTES)) for name in names} if len(names) < 3 else None
    except Refused:
        return None


def by_a_tool(path):
    """Whether it is what Jupyter and file managers leave where somebody looked."""
    return path.name == ".ipynb_checkpoints" or (path.name.startswith(".") and kind(path) == "a file")


def is_file(path, wanted):
    try:
        return digest(content(path, intake.FILE_BYTES)) == wanted
    except Refused:
        return False


def digest(raw):
    return hashlib.sha256(raw).hexdigest()
