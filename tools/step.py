"""Run one long command behind one line that moves.

    python tools/step.py "Building the book" _build/book.log jupyter-book build .

What the command prints goes to the log. Meanwhile a terminal shows the time and the command's latest words on one
line; anything else gets such a line every ten seconds. When the command fails, the end of the log is shown and its
exit status is returned. Only the standard library is used, since this also runs the installation.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SHOWN_ON_FAILURE = 40  # lines


class Output(threading.Thread):
    """Copies a command's output to the log and remembers its latest line."""

    def __init__(self, stream, log: Path):
        super().__init__(daemon=True)
        self.stream, self.log, self.latest = stream, log, ""

    def run(self):
        with self.log.open("w", encoding="utf-8") as log:
            for line in self.stream:
                log.write(line)
                log.flush()
                words = " ".join(TERMINAL_CODES.sub("", line).split())
                if re.search(r"\w", words) and "WARNING" not in words:  # others do not tell where the command is
                    self.latest = words


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def follow(process: subprocess.Popen, output: Output, started: float) -> int:
    """Show where the command is until it ends; return its exit status."""
    terminal = sys.stdout.isatty()
    while True:
        try:
            return process.wait(timeout=0.2 if terminal else 10)
        except subprocess.TimeoutExpired:
            width = shutil.get_terminal_size().columns - 1
            line = f"  {clock(time.monotonic() - started)}  {output.latest}"[:width]
            print(f"\r{line.ljust(width)}\r" if terminal else line, end="" if terminal else "\n", flush=True)


def run(title: str, log: Path, command: list[str]) -> int:
    print(f"{title} …", flush=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    output = Output(process.stdout, log)
    output.start()
    status = follow(process, output, started)
    output.join()
    if sys.stdout.isatty():
        print("\x1b[K", end="")
    took = clock(time.monotonic() - started)
    if status == 0:
        print(f"  {took}  done")
        return 0
    print("\n".join(log.read_text(encoding="utf-8").splitlines()[-SHOWN_ON_FAILURE:]))
    print(f"{title} failed after {took}: above are the last lines of {log}.")
    return status


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
    except KeyboardInterrupt:  # the command got the same signal
        sys.exit(130)
