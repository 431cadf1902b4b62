"""Stop Python code that takes too long.

A single long torch call is not interrupted: that takes killing its process, which is the work of whoever started it.
"""

import contextlib
import ctypes
import signal
import threading
import time

AGAIN = 0.1  # seconds: raised again and again, since an answer may swallow it


class OutOfTime(BaseException):
    """Not an Exception: `except Exception` in an answer must not swallow it."""


@contextlib.contextmanager
def deadline(seconds):
    """Raise OutOfTime in this thread after `seconds`, again every tenth of a second, and once more at the end."""
    message = f"no answer after {seconds:g} s"
    main = threading.current_thread() is threading.main_thread()
    began = time.monotonic()
    with alarm(seconds, message) if main and hasattr(signal, "SIGALRM") else watchdog(seconds, message):
        yield
    if time.monotonic() - began > seconds:  # swallowed
        raise OutOfTime(message)


@contextlib.contextmanager
def alarm(seconds, message):
    def stop(*_):
        raise OutOfTime(message)

    before, timer = signal.signal(signal.SIGALRM, stop), (0.0, 0.0)
    try:
        timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)  # the caller's own


@contextlib.contextmanager
def watchdog(seconds, message):
    """Where there is no alarm (Windows, other threads): another thread raises it here. Cannot interrupt a sleep."""
    me, over = threading.get_ident(), threading.Event()
    stop = type("OutOfTime", (OutOfTime,), {"__str__": lambda self: message})  # raised by class: it takes no message

    def watch():
        wait = seconds
        while not over.wait(wait):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(me), ctypes.py_object(stop))
            wait = AGAIN

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
