"""The sandbox: what code in it can see, reach, use up and leave behind, as root and as an ordinary user."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from autograder import box as boxes
from autograder import cohort, confine
from autograder.box import Box
from autograder.boxed import Worker
from autograder.errors import BadInput

MACHINE = ("x86_64", "aarch64").index(os.uname().machine)
CALL = """
import ctypes
library = ctypes.CDLL(None, use_errno=True)
print(library.syscall({}, {}, 0, 0, 0, 0), ctypes.get_errno())
"""
MARK = "box-survivor"  # the name of a process


@pytest.fixture(scope="module")
def place():
    with closing(Box()) as made:
        yield made


@pytest.fixture
def run(place):
    """Run cells in a worker of its own: the text that each prints, its exception included."""
    with Worker(place) as worker:

        def run(source, seconds=20.0):
            text, error, _ = worker.run(textwrap.dedent(source), seconds)
            return text.strip() if error is None else f"{text}{error[0]}: {error[1]}".strip()

        yield run


def eventually(true, seconds=20):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def processes(name):
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has just ended
            found += [path] if path.read_text().strip() == name else []
    return found


# --- what it sees -----------------------------------------------------------------------------------------------------


def test_of_the_course_it_sees_a_stub_and_what_it_runs_on(run):
    assert set(run("import os\nprint(*os.listdir('/course/autograder'))").split()) == {*boxes.FILES, "__init__.py"}
    for place in (cohort.ROOT / "solutions", cohort.ROOT / "autograder", cohort.data(), Path.home() / ".bash_history"):
        assert "FileNotFoundError" in run(f"import os\nos.stat({str(place)!r})"), place


def test_a_course_below_what_is_shown_is_hidden(tmp_path, monkeypatch):
    """Somebody may keep the course below /usr, and a class there too."""
    monkeypatch.setattr(boxes, "SYSTEM", (str(tmp_path),))
    monkeypatch.setattr(boxes, "ROOT", tmp_path / "course")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "course" / ".venv"))
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "class"))
    words = " ".join(boxes.view())
    order = f"--ro-bind-try {tmp_path} ", f"--tmpfs {tmp_path}/course ", f"--ro-bind {tmp_path}/course/.venv "
    places = [words.rindex(word) for word in order]
    assert places == sorted(places) and words.rindex(f"--tmpfs {tmp_path}/class ") > places[0]


def test_no_file_of_others_and_no_variable_of_the_graders(run, monkeypatch):
    assert "No such file" in run("open('/etc/shadow')") and "No such file" in run("open('/etc/hostname')")
    assert run("import socket\nprint(socket.gethostname())") == "box"
    monkeypatch.setenv("LMS_TOKEN", "s3cret")
    with closing(Box()) as fresh, Worker(fresh) as worker:
        text = worker.run("import os\nprint(dict(os.environ))")[0]
    assert "s3cret" not in text and str(Path.home()) not in text.replace(os.environ["PATH"], "")


def test_only_its_own_processes(run):
    assert set(run("import os\nprint(*[name for name in os.listdir('/proc') if name.isdigit()])").split()) == {"1", "2"}


def test_it_is_nobody_and_cannot_become_somebody(run):
    lines = dict(line.split(":\t") for line in run("print(open('/proc/self/status').read())").splitlines())
    assert {int(lines[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
    assert lines["NoNewPrivs"] == "1" and lines["Seccomp"] == "2" and "0" not in lines["Uid"].split()
    assert "PermissionError" in run("import os\nos.setuid(0)") or "OSError" in run("os.setuid(0)")


@pytest.mark.parametrize("name", sorted(confine.REFUSED))
def test_a_system_call_that_no_exercise_needs_is_refused(run, name):
    assert run(CALL.format(confine.REFUSED[name][MACHINE], 0)) == f"-1 {confine.EPERM}"


def test_no_namespaces_by_clone_either(run):
    assert run(CALL.format(confine.SPECIAL["clone"][MACHINE], 0x10000000 | 17)) == f"-1 {confine.EPERM}"
    assert run(CALL.format(confine.SPECIAL["clone3"][MACHINE], 0)) == f"-1 {confine.ENOSYS}"


# --- what it reaches --------------------------------------------------------------------------------------------------


def test_no_network(run):
    """No interface, and no socket that could wait for one."""
    assert run("import os\nprint(*os.listdir('/sys'))") in ("devices", "") or "FileNotFound" in run(
        "os.listdir('/sys')"
    )
    assert run("print(open('/proc/net/dev').read().count(':'))") == "1"  # lo
    for kind in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK"):
        assert "PermissionError" in run(f"import socket\nsocket.socket(socket.{kind}, socket.SOCK_DGRAM)"), kind
    assert "PermissionError" in run("socket.socketpair()") and "gaierror" in run("socket.getaddrinfo('a.org', 80)")


def test_it_may_write_below_tmp_only(run):
    assert run("open('here', 'w').close()\nimport os\nprint(os.getcwd())") == "/tmp/work"
    for place in ("/", "/dev", "/course", "/usr", sys.prefix, sys.base_prefix, "/proc/sys/kernel", "/sys"):
        said = run(f"open({place + '/probe'!r}, 'w')")
        assert any(word in said for word in ("PermissionError", "OSError", "FileNotFoundError")), place


# --- what it uses up --------------------------------------------------------------------------------------------------

BOMBS = {
    "bytes": "x = bytearray(8 << 30)",
    "numpy": "import numpy\nx = numpy.ones(1 << 30)",
    "torch": "import torch\nx = torch.ones(1 << 30, dtype=torch.float64)",
    "little by little": "x = []\nwhile True: x.append(bytearray(1 << 24))",
}
TOGETHER = """
    import os, time
    for i in range(8):
        if os.fork() == 0:
            x = bytearray(1 << 30)
            time.sleep(60)
    time.sleep(60)
"""
TABLES = """
    import ctypes
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    file = open('/tmp/work/large', 'wb+')
    file.truncate(60 << 20)
    while True:
        place = library.mmap(None, ctypes.c_size_t(60 << 20), 1, 1, file.fileno(), ctypes.c_long(0))
        for i in range(0, 60 << 20, 1 << 21):
            ctypes.string_at(place + i, 1)
"""
THREADS = """
    import threading, time
    count = 0
    try:
        while count < 500:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    except RuntimeError:
        print(count)
"""
PROGRAMS = """
    import subprocess
    started = []
    try:
        while len(started) < 500:
            started.append(subprocess.Popen(['sleep', '60']))
    except OSError:
        print(len(started))
"""


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_memory_of_a_process_is_limited(run, bomb):
    said = run(bomb)
    assert "MemoryError" in said or "can't allocate memory" in said
    assert run("1") == "1"


@pytest.mark.parametrize("bomb", [TOGETHER, TABLES], ids=["together", "the kernel's tables"])
def test_memory_is_limited_in_all(place, bomb):
    with Worker(place) as worker:
        assert "it used too much memory" in worker.run(textwrap.dedent(bomb), 60)[1][1]


def test_memory_that_stays_when_it_is_not_mapped_is_refused(run):
    assert "PermissionError" in run("import mmap\nmmap.mmap(-1, 4096)")
    assert "OSError" in run("mmap.mmap(open('/dev/zero', 'rb+').fileno(), 4096)")


@pytest.mark.parametrize("many", [THREADS, PROGRAMS], ids=["threads", "programs"])
def test_processes_are_limited(run, many):
    assert 10 < int(run(many)) <= confine.PROCESSES
    assert run("1") == "1"


def test_a_fork_bomb_is_survived(place):
    with Worker(place) as worker:
        worker.run("import os\nwhile True: os.fork()", 2)
    with Worker(place) as worker:
        assert worker.run("1")[0] == "1\n"


def test_files_are_limited(run):
    assert "File too large" in run("with open('a', 'wb') as file:\n    for i in range(99): file.write(bytes(1 << 20))")
    for kind in ("/dev/shm", "/tmp"):
        full = "for i in range(20):\n    with open(f'{}/{{i}}', 'wb') as file: file.write(bytes(50 << 20))"
        assert "No space left" in run(full.format(kind))


def test_a_full_disk_leaves_room_for_the_next_cell(run):
    run("import os\nfor i in range(20000): open(f'/tmp/work/n{i}', 'w').close()")
    run("for i in range(9):\n    with open(f'/tmp/{i}', 'wb') as file: file.write(bytes(50 << 20))")
    assert run("def f():\n    return 3\nprint(f())") == "3"


def test_numbers_of_files_are_limited(run):
    assert "No space left" in run("import os\nfor i in range(20000): open(f'/dev/shm/n{i}', 'w').close()")
    assert "Too many open files" in run("x = [open('/dev/null') for i in range(999)]")


# --- what it leaves ---------------------------------------------------------------------------------------------------

LEAVE = f"""
    import ctypes, os, time, torch
    for folder in ('/tmp', '/tmp/work', '/dev/shm'):
        open(folder + '/left', 'w').close()
    torch.left = True
    os.environ['LEFT'] = '1'
    if os.fork() == 0:
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(15, b'{MARK}')
            time.sleep(600)
        os._exit(0)
"""
LOOK = """
    import os, torch
    found = [*os.listdir('/tmp'), *os.listdir('/tmp/work'), *os.listdir('/dev/shm')]
    print('left' in found, hasattr(torch, 'left'), 'LEFT' in os.environ)
    print(len([name for name in os.listdir('/proc') if name.isdigit()]))
"""
GRADER = f"""
import time
from autograder.box import Box
from autograder.boxed import Worker
worker = Worker(Box())
worker.run('import ctypes; ctypes.CDLL(None).prctl(15, b"{MARK}")')
print("up", flush=True)
time.sleep(60)
"""


def test_nothing_survives_it(place):
    before = {*os.listdir("/dev/shm"), *os.listdir("/tmp")}
    with Worker(place) as worker:
        assert worker.run(textwrap.dedent(LEAVE))[1] is None
        assert eventually(lambda: processes(MARK))
    assert not processes(MARK)
    with Worker(place) as worker:
        assert worker.run(textwrap.dedent(LOOK))[0] == "False False False\n2\n"
    assert "left" not in {*os.listdir("/dev/shm"), *os.listdir("/tmp")} - before


@pytest.mark.parametrize(
    "attack",
    [
        "import os\nos.kill(-1, 9)",
        "import os\nos.kill(1, 9)\nos.kill(os.getppid(), 15)\nos.killpg(0, 9)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import os\nos.closerange(0, 300)",
    ],
)
def test_what_it_kills_is_itself(place, attack, monkeypatch):
    monkeypatch.setattr("autograder.boxed.GRACE_SECONDS", 0.5)
    with Worker(place) as worker:
        worker.run(attack, 1)
    with Worker(place) as worker:
        assert worker.run("1")[0] == "1\n"


def test_when_the_grader_is_killed_the_box_ends():
    grader = subprocess.Popen([sys.executable, "-c", GRADER], cwd=cohort.ROOT, stdout=subprocess.PIPE)
    assert grader.stdout.readline() == b"up\n" and processes(MARK)
    grader.kill()
    grader.wait()
    assert eventually(lambda: not processes(MARK))


def test_a_box_that_was_killed_is_made_anew(place):
    with Worker(place) as worker:
        place.process.kill()
        assert eventually(lambda: worker.run("1")[1] and worker.died)
    with Worker(place) as worker:
        assert worker.run("1")[0] == "1\n"


# --- where there is none ----------------------------------------------------------------------------------------------


def test_here_there_is_one():
    boxes.available.cache_clear()
    assert boxes.available() == ""


def test_bubblewrap_that_may_not_do_all_is_told_by_trying(monkeypatch):
    boxes.available.cache_clear()
    monkeypatch.setattr(boxes, "namespaces", lambda: ["--unshare-all", "--cap-drop", "ALL"])
    assert "not as it has to" in boxes.available() and "AppArmor" in boxes.available()
    boxes.available.cache_clear()


def test_without_bubblewrap_one_sentence_refuses(monkeypatch):
    boxes.available.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(BadInput, match="apt-get install bubblewrap"):
        boxes.require()
    boxes.available.cache_clear()


def test_unboxed_the_same_worker_runs_and_leaves_nothing():
    with closing(Box(boxed=False)) as made, Worker(made) as worker:
        assert worker.run("x = 2\nx + 1")[0] == "3\n"
        worker.run("import subprocess\nchild = subprocess.Popen(['sleep', '600'])")
        child, folder = worker.run("import os\nprint(child.pid, os.getcwd())")[0].split()
        os.kill(int(child), 0)
    status = Path(f"/proc/{child}/stat")
    assert eventually(lambda: not status.exists() or status.read_text().split()[2] == "Z")
    assert not Path(folder).exists()


# --- as another user --------------------------------------------------------------------------------------------------

AS_SOMEBODY = """
set -e
for place in $2; do mkdir -p $1$place; mount --rbind $place $1$place; done
mount -t tmpfs none /root
chmod 755 /root
for place in $2; do mkdir -p $place; mount --rbind $1$place $place; done
shift 2
exec setpriv --reuid 4321 --regid 4321 --clear-groups env HOME=/home/somebody "$@"
"""


def test_all_this_holds_for_an_ordinary_user_too():
    """Slow: all tests above once more. What of Python lies in root's home is shown to that user for as long."""
    if os.geteuid() != 0:
        return  # one has just run them
    shown = " ".join(place for place in {str(cohort.ROOT), sys.base_prefix} if place.startswith("/root/"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/t", "-k", "not ordinary_user"]
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", AS_SOMEBODY, "-", folder, shown, sys.executable, *tests, __file__],
            cwd=cohort.ROOT, env={**os.environ, "COURSE_DATA": f"{folder}/class"}, capture_output=True, text=True,
            timeout=400,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
