"""Builds a book as strictly as the course does."""

import subprocess
import sys
from pathlib import Path

SECONDS = 600  # far beyond what the whole book takes; whoever goes through a link to / never ends


def build(source, out):
    """Build the book in `source` into `out`; return the finished process."""
    tool = Path(sys.executable).with_name("jupyter-book")
    command = [tool, "build", source, "--path-output", out, "-W", "-n", "--keep-going"]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS)
