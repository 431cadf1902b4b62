"""How far something is: one line that moves on a terminal, a line now and then elsewhere."""

import sys
import threading
import time

TERMINAL, ELSEWHERE = 0.5, 10.0  # seconds between two lines


class Progress:
    """A context; `step` says that one more is done. A clock runs in between, so that nothing seems to stand still."""

    def __init__(self, title, total):
        self.title, self.total, self.done, self.note = title, total, 0, ""
        self.began, self.over = time.monotonic(), threading.Event()
        self.moving = sys.stderr.isatty()

    def __enter__(self):
        self.show()
        self.clock = threading.Thread(target=self.run, daemon=True)
        self.clock.start()
        return self

    def run(self):
        while not self.over.wait(TERMINAL if self.moving else ELSEWHERE):
            self.show()

    def step(self, note=""):
        self.done, self.note = self.done + 1, note
        if self.moving:
            self.show()

    def show(self):
        line = f"{self.title}: {self.done} of {self.total}, {time.monotonic() - self.began:.0f} s  {self.note}".rstrip()
        print(
            f"\r{line[:79]:79}" if self.moving else line, end="" if self.moving else "\n", file=sys.stderr, flush=True
        )

    def __exit__(self, *_):
        self.over.set()
        self.clock.join()
        self.show()
        if self.moving:
            print(file=sys.stderr)
