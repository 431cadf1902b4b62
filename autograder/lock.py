"""One grader at a time in a class: two would take each other's files away."""

import fcntl
import time
from contextlib import contextmanager

from . import cohort
from .errors import BadInput

LOOK = 0.1  # seconds between two tries
held = []  # the folders whose lock this process has


@contextmanager
def alone(seconds=2.0):
    """Hold the class's lock; it ends with this process at the latest. `seconds`: how long to wait for another's."""
    data = cohort.data()
    if data in held:
        yield
        return
    data.mkdir(parents=True, exist_ok=True)
    with open(data / "lock", "w") as lock:
        until = time.monotonic() + seconds
        while not taken(lock):
            if time.monotonic() > until:
                raise BadInput(f"Another grader is at work in {cohort.shown(data)}; wait until it has finished.")
            time.sleep(LOOK)
        held.append(data)
        try:
            yield
        finally:
            held.remove(data)


def taken(lock):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        place = cohort.shown(cohort.data())
        raise BadInput(f"{place} cannot be locked ({problem.strerror}); keep the class on a local disk.") from None
    return True
