"""Several submissions examined at the same time, in processes of the grader's that end when it does."""

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing.connection import wait as ready

WAITING = 2  # tasks that stand ready beside those at work, so that no process is idle


def results(run, tasks, count):
    """For each of `tasks`, (name, arguments), as it ends: name and a finished future of run(*arguments).

    The tasks are taken one by one, as there is room. A process that is killed costs its own task: those that were at
    work beside it are done again, each alone.
    """
    tasks, broken = iter(tasks), []
    while True:
        with processes(count) as pool:
            yield from until_broken(pool, run, tasks, count, broken)
        if not broken:
            return
        while broken:
            name, arguments = broken.pop()
            yield name, by_itself(run, arguments)


def until_broken(pool, run, tasks, count, broken):
    """The same with one pool, until it ends or breaks; `broken` then has what was at work."""
    running = {}
    while not broken:
        for task in islice(tasks, count + WAITING - len(running)):
            try:
                running[submit(pool, run, task[1])] = task
            except BrokenExecutor:
                broken.append(task)
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            if isinstance(future.exception(), BrokenExecutor):
                broken.append(task)
            else:
                yield task[0], future
    broken += running.values()


def by_itself(run, arguments) -> Future:
    with processes(1) as pool:
        future = submit(pool, run, arguments)
        wait([future])
        return future


def submit(pool, run, arguments) -> Future:
    with undisturbed():
        return pool.submit(run, *arguments)


@contextlib.contextmanager
def undisturbed():
    """Ctrl-C waits until a process has been started, and does not come to that process before `begin` does.

    To block the signal is not enough here: another thread may take it, and it is raised in this one.
    """
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the new process inherits this
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


@contextlib.contextmanager
def processes(count):
    """An executor; any other would do whose workers see the class's folder."""
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=begin)
    try:
        yield pool
    except BaseException:  # also when nobody asks for what is left
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def begin():
    """In a new process: it ends with the grader, however that ends; Ctrl-C is the grader's; one core is enough."""
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=end_with_parent, daemon=True).start()


def end_with_parent():
    ready([multiprocessing.parent_process().sentinel])
    os._exit(1)
