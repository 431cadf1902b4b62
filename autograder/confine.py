"""Shut the calling process in: namespaces and mounts, limits, another user, no capabilities, fewer system calls.

Called in the box between fork and the first line of a student's code; what is given up here cannot be had back.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
import sys
import traceback
from functools import partial

MEMORY = 2 << 30  # bytes, of one process and of all together
PROCESSES = 64  # threads included
FILE = 64 << 20  # bytes of one file
DISK, CELLS, SHM = 256 << 20, 16 << 20, 64 << 20  # bytes of all files there
FILES = 10_000  # files and folders in each
OPEN = 128  # files and sockets of one process
CPU_SECONDS = 600
NICE = 5  # below the grader, which must not wait for what it watches

NEWNS, NEWIPC, NEWPID = 0x20000, 0x8000000, 0x20000000  # <sched.h>
PRIVATE = 0x44000  # <sys/mount.h>: MS_REC | MS_PRIVATE
HARMLESS, BIND = 0x6, 0x1000  # MS_NOSUID | MS_NODEV; MS_BIND
DUMPABLE, SECCOMP, DROP, SUBREAPER, NO_NEW_PRIVS = 4, 22, 24, 36, 38  # <sys/prctl.h>
EXIT_SIGNALLED = 128  # as a shell says it

libc = ctypes.CDLL(None, use_errno=True)


def call(function, *arguments):
    """A function of the C library, whose whole numbers are as wide as pointers; OSError where it fails."""
    wide = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    if getattr(libc, function)(*wide) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), function)


# --- processes --------------------------------------------------------------------------------------------------------


def forked(run, boxed):
    """Fork a process that ends with `run()`; boxed, as the second of a process namespace whose first waits for it.

    Killing the returned process kills, boxed, all that it ever started; else its process group.
    """
    if not boxed:
        return fork(partial(leading, run))
    call("prctl", SUBREAPER, 1, 0, 0, 0)
    reader, writer = os.pipe()
    between = fork(partial(between_namespaces, run, writer))
    os.close(writer)
    os.waitpid(between, 0)
    told = os.read(reader, 20)
    os.close(reader)
    if not told:
        raise OSError("no namespace for processes can be made in it")
    return int(told)


def fork(run):
    child = os.fork()
    if child == 0:
        os._exit(guarded(run))
    return child


def between_namespaces(run, writer):
    """A process whose next child is the first of a new namespace; ending at once, it leaves that to its own parent."""
    call("unshare", NEWPID)
    os.write(writer, b"%d" % fork(partial(first_process, run)))


def leading(run):
    os.setsid()
    run()


def first_process(run):
    """The first process of the namespace: it makes the mounts, starts the worker, and ends when the worker does."""
    call("unshare", NEWNS | NEWIPC)
    call("mount", None, b"/", None, PRIVATE, None)
    with contextlib.suppress(OSError):  # root of a container without rights may not; then the box's own stays
        call("mount", b"proc", b"/proc", b"proc", HARMLESS, None)
    os.umask(0o022)
    below = {place: os.open(place, os.O_PATH) for place in (sys.prefix, sys.base_prefix) if place.startswith("/tmp/")}
    for place, size in (("/tmp", DISK), ("/tmp/cells", CELLS), ("/dev/shm", SHM)):
        os.makedirs(place, exist_ok=True)
        options = f"size={size},nr_inodes={FILES},mode=1777".encode()
        call("mount", b"tmpfs", place.encode(), b"tmpfs", HARMLESS, options)
    for place, folder in below.items():  # Python, where it lies in what is now hidden
        os.makedirs(place, exist_ok=True)
        call("mount", b"/proc/self/fd/%d" % folder, place.encode(), None, BIND, None)
        os.close(folder)
    call("mount", b"/dev/null", b"/dev/zero", None, BIND, None)  # shared, it would be memory that nobody counts
    worker = fork(run)
    call("prctl", DUMPABLE, 0, 0, 0, 0)
    os.closerange(0, OPEN)
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else EXIT_SIGNALLED - code


def guarded(run):
    """The exit status that `run()` returns, 0 for None; nothing that it raises leaves the process."""
    try:
        return run() or 0
    except BaseException:
        traceback.print_exc()
        return 1


def ending(code):
    """In words, how a process ended: the exit status of `forked`."""
    number = -code if code < 0 else code - EXIT_SIGNALLED
    known = code < 0 or code > EXIT_SIGNALLED
    if known and number in signal.valid_signals() and number:
        return f"by {signal.Signals(number).name}"
    return f"with exit status {code}"


# --- what one process gives up ----------------------------------------------------------------------------------------


def home(folder):
    """The folders of a submission below `folder`; the one in which it runs."""
    work, cells = os.path.join(folder, "work"), os.path.join(folder, "cells")
    for made in (work, cells):
        os.makedirs(made, exist_ok=True)
        with contextlib.suppress(PermissionError):
            os.chown(made, user(), user())
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR", "TRITON_CACHE_DIR"), work))
    return work


def user():
    """A user of its own for each worker, where the box may give it one: so its processes alone are counted."""
    if os.getuid() != 0:
        return os.getuid()
    return 0x60000000 + os.stat("/proc/self/ns/mnt").st_ino % 0x0FFFFFFF


def confine():
    limit()
    call("prctl", NO_NEW_PRIVS, 1, 0, 0, 0)
    me = user()
    for capability in range(64):
        with contextlib.suppress(OSError):
            call("prctl", DROP, capability, 0, 0, 0)
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(me, me, me)
        os.setresuid(me, me, me)
    call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))
    call("prctl", DUMPABLE, 1, 0, 0, 0)
    filter_calls()


def limit():
    os.nice(NICE)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as first:
        first.write("1000")  # when the machine's memory ends, this goes before the grader
    for name, most in (
        ("DATA", in_use() + MEMORY), ("NPROC", PROCESSES), ("FSIZE", FILE), ("NOFILE", OPEN), ("CPU", CPU_SECONDS),
        ("CORE", 0), ("MSGQUEUE", 0), ("MEMLOCK", 1 << 20),
    ):  # fmt: skip
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            _, hard = resource.getrlimit(kind)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))


def in_use():
    """Bytes that count already."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
    except OSError:
        return 0


# --- system calls that no exercise needs ------------------------------------------------------------------------------

# They reach other processes, the kernel's less trodden paths, memory that no limit counts (what waits in sockets, too),
# or a larger share of the processors (each session has one). Numbers: x86-64, arm64.
REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "open_by_handle_at": (304, 265),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "personality": (135, 92), "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "syslog": (103, 116), "swapon": (167, 224), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "socket": (41, 198), "socketpair": (53, 199), "setsid": (112, 157),
}  # fmt: skip
SPECIAL = {"clone": (56, 220), "clone3": (435, 435), "mmap": (9, 222)}
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # <linux/audit.h>
EPERM, ENOSYS = 1, 38
NAMESPACES = 0x7E020000  # every CLONE_NEW… that clone() knows
SHARED, ANONYMOUS = 0x1, 0x20  # of mmap(): such memory stays when it is not mapped any more
LOAD, EQUAL, ANY_BIT, AT_LEAST, GIVE = 0x20, 0x15, 0x45, 0x35, 0x06  # <linux/filter.h>
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000  # <linux/seccomp.h>
NUMBER, ARCHITECTURE, FIRST, FOURTH = 0, 4, 16, 40  # places in struct seccomp_data; of arguments


def filter_calls():
    """Refuse those system calls from here on, in this process and all that it starts (seccomp)."""
    program = b"".join(struct.pack("HBBI", *line) for line in rules(platform.machine()))
    buffer = ctypes.create_string_buffer(program, len(program))
    call("prctl", SECCOMP, 2, struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer)), 0, 0)


def rules(machine):
    """The filter's lines: (operation, lines to skip if true, if false, value)."""
    which = list(MACHINES).index(machine)
    number = {name: both[which] for name, both in {**REFUSED, **SPECIAL}.items()}
    error = lambda code: (GIVE, 0, 0, ERROR | code)  # noqa: E731
    lines = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, MACHINES[machine]), (GIVE, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        lines += [(AT_LEAST, 0, 1, 0x40000000), error(EPERM)]  # the same calls by other numbers
    for name in REFUSED:
        lines += [(EQUAL, 0, 1, number[name]), error(EPERM)]
    lines += [(EQUAL, 0, 1, number["clone3"]), error(ENOSYS)]  # its arguments cannot be seen; callers then use clone
    lines += [(EQUAL, 0, 3, number["clone"]), (LOAD, 0, 0, FIRST), (ANY_BIT, 0, 1, NAMESPACES), error(EPERM)]
    lines += [(LOAD, 0, 0, NUMBER), (EQUAL, 0, 4, number["mmap"]), (LOAD, 0, 0, FOURTH)]
    lines += [(ANY_BIT, 0, 2, ANONYMOUS), (ANY_BIT, 0, 1, SHARED), error(EPERM)]
    return [*lines, (GIVE, 0, 0, ALLOW)]
