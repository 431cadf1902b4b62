"""How far something is: one line redrawn in place on a terminal, every tenth on a line of its own elsewhere."""

import sys
import time


class Progress:
    def __init__(self, title, total, stream=None):
        self.title, self.total, self.done = title, total, 0
        self.stream = stream or sys.stderr
        self.began, self.shown = time.monotonic(), -1

    def __enter__(self):
        self.show()
        return self

    def step(self, note=""):
        self.done += 1
        self.show(note)

    def show(self, note=""):
        tenths = 10 * self.done // max(1, self.total)
        line = f"{self.title}: {self.done} of {self.total}, {time.monotonic() - self.began:.0f} s {note}"
        if self.stream.isatty():
            print(f"\r{line[:79]:79}", end="", file=self.stream, flush=True)
        elif tenths != self.shown:
            print(line.rstrip(), file=self.stream, flush=True)
        self.shown = tenths

    def __exit__(self, *_):
        if self.stream.isatty():
            print(file=self.stream)
