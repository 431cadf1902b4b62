"""What grading a class costs: python benchmarks/grading.py [COPIES]

The honest submissions of the demonstration class that end by themselves, COPIES times over (3 by default), graded by
stock nbgrader (its own preprocessors; the checks run in the student's kernel), and by this course: cold, then again
with nothing changed. Same notebooks, same machine, one run. Seconds a
submission are those of the whole command, start included, over the number of submissions.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from autograder import cohort, demo


def main():
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="attention-grading-") as folder:
        ours, stock = Path(folder, "ours"), Path(folder, "stock")
        names = hand_in(ours, copies)
        shutil.copytree(ours / "submitted", stock / "submitted")
        print(f"{len(names)} submissions, {os.cpu_count()} cores", flush=True)
        row("stock nbgrader", nbgrader(stock), len(names))
        grade = [sys.executable, "-m", "autograder", "grade", demo.ASSIGNMENT, "--jobs", str(os.cpu_count())]
        row("ours, cold", run(grade, cohort.ROOT, COURSE_DATA=str(ours)), len(names))
        row("ours, unchanged", run(grade, cohort.ROOT, COURSE_DATA=str(ours)), len(names))


def hand_in(data, copies):
    """The submissions, each under several names. An odd notebook would stop stock nbgrader, and an endless loop is paid
    for by the clock alone: neither takes part."""
    typed = {path.stem for path in (demo.STUDENTS / demo.ASSIGNMENT).glob("*.py")}
    wanted = {name: want for name, want in demo.expected().items() if name in typed and not want["hostile"]}
    chosen = [
        name for name, want in wanted.items() if want["verdict"] == "graded" and "no answer" not in want["reason"]
    ]
    demo.hand_in(data, chosen)
    for name in chosen:
        for copy in range(1, copies):
            shutil.copytree(data / "submitted" / name, data / "submitted" / f"{name}{copy}", symlinks=True)
    (data / "roster.csv").unlink()
    return sorted(path.name for path in (data / "submitted").iterdir())


def nbgrader(root):
    """A stock course of the same assignment: its source made known, then every submission graded."""
    source = cohort.ROOT / "_build" / "source"
    subprocess.run([sys.executable, "-m", "autograder", "notebooks"], cwd=cohort.ROOT, check=True, capture_output=True)
    shutil.copytree(source, root / "source")
    (root / "nbgrader_config.py").write_text(f"c = get_config()\nc.CourseDirectory.root = {str(root)!r}\n", "utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # it looks for alembic there
    environment = {**os.environ, "PATH": path}
    subprocess.run(command("generate_assignment"), cwd=root, env=environment, check=True, capture_output=True)
    spent = run(command("autograde"), root, PATH=path)
    assert len(list((root / "autograded").iterdir())) == len(list((root / "submitted").iterdir())), "it gave up"
    return spent


def command(name):
    return [sys.executable, "-m", "nbgrader", name, demo.ASSIGNMENT]


def run(arguments, folder, **variables):
    """Seconds of wall clock and of processors that a command takes, and megabytes of its largest worker."""
    before, began = os.times(), time.monotonic()
    process = subprocess.Popen(
        arguments, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    largest = Largest(process.pid)
    process.wait()
    after = os.times()
    processors = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.monotonic() - began, "processors": processors, "megabytes": largest.stop()}


class Largest:
    """The most memory of a child of a process, with all that it started (PSS: pages that are shared count by share)."""

    def __init__(self, pid):
        self.pid, self.most, self.over = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.over.wait(0.2):
            below = children()
            for child in below.get(self.pid, []):
                self.most = max(self.most, sum(map(proportional, family(child, below))))

    def stop(self):
        self.over.set()
        self.thread.join()
        return self.most / 1024


def children():
    """Process -> its children."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        found.setdefault(parent, []).append(int(status.parent.name))
    return found


def family(pid, below):
    return [pid, *(one for child in below.get(pid, []) for one in family(child, below))]


def proportional(pid):
    """Kilobytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def row(name, spent, count):
    print(
        f"{name:16} {spent['wall'] / count:8.3f} s a submission  {spent['processors'] / count:8.3f} s of processors"
        f"  {spent['megabytes']:6.0f} MB a worker",
        flush=True,
    )


if __name__ == "__main__":
    main()
