"""Builds a book as strictly as the course does."""

import subprocess
import sys
from pathlib import Path


def build(source, out):
    """Build the book in `source` into `out`; return the finished process."""
    tool = Path(sys.executable).with_name("jupyter-book")
    command = [tool, "build", source, "--path-output", out, "-W", "-n", "--keep-going"]
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
