"""Attacks by processes, threads and signals."""

# ruff: noqa: F821, SIM105, SIM115 (a submission defines names, and does not mind)

import os
import signal

from .attack import MARK, RIGHT, answer, breach, cell


@cell(stock=True)
def forks_without_end():
    """A fork bomb: every process forks until it may not, and then waits."""
    import os
    import time

    me = os.getpid()
    try:
        for _ in range(14):
            os.fork()
    except OSError:
        pass
    if os.getpid() != me:
        time.sleep(900)


@cell()
def forks_that_compute():
    """As many processes as are allowed, each in a session of its own, take all the processor time for six seconds."""
    import contextlib
    import os
    import time

    until = time.monotonic() + 6
    for _ in range(200):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            with contextlib.suppress(OSError):  # it is refused
                os.setsid()
            while time.monotonic() < until:
                pass
            os._exit(0)


@cell()
def threads_without_end():
    """Threads, each with a large stack, until no more can be started."""
    import threading
    import time

    threading.stack_size(64 << 20)
    try:
        for _ in range(5000):
            threading.Thread(target=time.sleep, args=(900,), daemon=True).start()
    except RuntimeError:
        pass


@cell(stock=True)
def outlives():
    """Processes leave their session and their parent, ignore every signal and wait for the grader to go."""
    import contextlib
    import os
    import signal
    import time

    for _ in range(3):
        if os.fork() == 0:
            with contextlib.suppress(OSError):  # it is refused
                os.setsid()
            if os.fork() == 0:
                for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                    signal.signal(number, signal.SIG_IGN)
                os.closerange(0, 4096)
                time.sleep(900)
            os._exit(0)


@cell()
def outlives_by_another_program():
    """The same by programs that do not share this process's memory: a shell, nohup, setsid."""
    import subprocess
    import sys

    sleeping = [sys.executable, "-c", f"import time; time.sleep(900)  # {MARK}"]
    for before in ([], ["setsid"], ["nohup"], ["sh", "-c", '"$@" & "$@" & exit', "sh"]):
        for apart in (True, False):
            try:
                subprocess.Popen([*before, *sleeping], start_new_session=apart)
            except OSError:
                pass


@cell(stock=True)
def kills_its_parents():
    """Everything that a signal can reach is killed, the parent first."""
    import os
    import signal

    for target in (os.getppid(), 1, 2, *range(3, 400)):
        if target != os.getpid():
            try:
                os.kill(target, signal.SIGKILL)
            except OSError:
                pass
    for target in (os.getppid(), 1):
        try:
            os.killpg(target, signal.SIGKILL)
        except OSError:
            pass


@cell()
def kills_everything():
    """kill(-1, SIGKILL): every process that this one may signal."""
    import os
    import signal

    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass


@cell()
def stops_everything():
    """kill(-1, SIGSTOP), and the parent and the first process by name: who is stopped answers no more."""
    import os
    import signal

    for target in (-1, os.getppid(), 1):
        try:
            os.kill(target, signal.SIGSTOP)
        except OSError:
            pass


@cell()
def looks_at_other_processes():
    """Other processes are traced, read, written to, and asked for their files, through the kernel and through /proc."""
    import ctypes
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(64)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
    others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    for pid in {*others, os.getppid(), 1} - {0}:
        if libc.ptrace(16, pid, 0, 0) == 0:
            breach(f"ptrace attached to {pid}")
        if libc.process_vm_readv(pid, local, 1, local, 1, 0) > 0:
            breach(f"the memory of {pid} was read")
        for name in ("mem", "maps", "environ", "root/etc/shadow", "fd/0", "stack", "syscall"):
            try:
                open(f"/proc/{pid}/{name}", "rb").read(1)
            except OSError:
                continue
            breach(f"/proc/{pid}/{name} can be read")
        pidfd = libc.syscall(434, pid, 0)
        for number in range(20):
            if pidfd >= 0 and libc.syscall(438, pidfd, number, 0) >= 0:
                breach(f"file {number} of {pid} was taken")
    for name in ("/dev/mem", "/dev/kmem", "/proc/kcore", "/proc/kmsg", "/dev/kmsg"):
        if os.access(name, os.R_OK):
            breach(f"{name} can be read")


@answer("project_qkv", gets=14, stock=True)
def ends_in_an_answer(*inputs):
    """os._exit(0) in an answer: the process is gone, without an exception."""
    os._exit(0)


@answer("project_qkv", gets=14)
def ends_by_a_signal(*inputs):
    """An answer kills its own process."""
    os.kill(os.getpid(), signal.SIGKILL)


@answer("attention_backward", gets=12)
def crashes(*inputs):
    """An answer reads address 0."""
    import ctypes

    ctypes.string_at(0)


@answer("dot_product_variance", gets=14)
def overflows_the_stack(q, k):
    """Recursion through the interpreter's own functions, without a limit, ends in a crash."""
    import sys

    sys.setrecursionlimit(1 << 30)

    def deeper(x):
        return max([x], key=deeper)

    return deeper(1)


@cell(stock=True)
def ends_in_a_cell():
    """os._exit(0) in a cell: all that is defined below it might be lost."""
    import os

    os._exit(0)


ENDS = RIGHT["project_qkv"] + "\n\nimport os\n\nos._exit(3)\n"


@cell(gets=14, answers=RIGHT | {"project_qkv": ENDS}, reason="project_qkv")
def ends_where_an_answer_is_defined():
    """A cell with an answer ends the process as soon as it is run: that answer is lost, and no other."""


LATER = (
    "calls = []\n"  # the first call, by the cell that tries the answer, does nothing: it would cost as much time again
)


@answer("scaled_dot_product_attention", gets=8, before=LATER)
def stops_itself(*inputs):
    """SIGSTOP cannot be caught: the process neither answers nor ends, and no alarm wakes it."""
    if len(calls) > 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    calls.append(inputs)


@cell(gets=None)
def plays_with_alarms():
    """The alarm is sent a thousand times, and handled by nobody, while the answers are judged."""
    import os
    import signal
    import threading
    import time

    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)

    def ring():
        for _ in range(1000):
            os.kill(os.getpid(), signal.SIGALRM)
            time.sleep(0.001)

    threading.Thread(target=ring, daemon=True).start()


@cell(gets=None)
def dies_later():
    """A thread ends the process a moment after the cell, so that another seems to have done it, again and again."""
    import os
    import threading

    threading.Timer(0.1, os._exit, (0,)).start()


@cell(gets=None)
def handles_signals():
    """Every signal is handled by code that does nothing; children are never waited for."""
    import signal

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@cell()
def closes_everything():
    """Every file descriptor is closed, among them the one over which the grader asks."""
    import os

    os.closerange(0, 4096)


@answer("project_qkv", gets=14)
def closes_in_an_answer(*inputs):
    """The same in an answer."""
    os.closerange(0, 4096)
    return inputs[0] @ inputs[1], inputs[0] @ inputs[2], inputs[0] @ inputs[3]


@cell()
def becomes_another_program():
    """The process is replaced by a shell that sleeps."""
    import os

    os.execv("/bin/sh", ["sh", "-c", "sleep 900"])


@cell(gets=None)
def ruins_the_interpreter():
    """Builtins and modules that everything needs are gone."""
    import builtins
    import gc
    import sys

    sys.setrecursionlimit(60)
    sys.setswitchinterval(1000)
    gc.disable()
    for name in ("isinstance", "len", "getattr", "open", "type", "print", "__build_class__", "RuntimeError"):
        setattr(builtins, name, None)
    for name in ("os", "json", "torch", "autograder", "time", "signal", "__main__"):
        sys.modules.pop(name, None)


@cell()
def a_thread_that_never_ends():
    """A thread that is no daemon, and a handler of the interpreter's end that sleeps."""
    import atexit
    import threading
    import time

    threading.Thread(target=time.sleep, args=(900,)).start()
    atexit.register(time.sleep, 900)


@cell(gets=None)
def lowers_its_limits():
    """Limits are set so low that the process may die at any moment."""
    import resource

    for kind, most in ((resource.RLIMIT_CPU, 1), (resource.RLIMIT_NOFILE, 3), (resource.RLIMIT_STACK, 1 << 16)):
        resource.setrlimit(kind, (most, most))


@cell()
def raises_its_limits():
    """Limits are set higher than the grader set them."""
    import os
    import resource

    for name in ("DATA", "NPROC", "FSIZE", "NOFILE", "CPU", "CORE", "MEMLOCK"):
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY:
            breach(f"RLIMIT_{name} is not limited")
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
            breach(f"RLIMIT_{name} was raised")
        except (OSError, ValueError):
            pass
    try:
        os.nice(-1)
        breach("nice went up")
    except OSError:
        pass
