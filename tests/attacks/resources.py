"""Attacks on memory, disk, descriptors and output."""

# ruff: noqa: F821 (what a submission defines)

from .attack import answer, breach, cell

FILL = """
def fill(folder):
    size = 0
    try:
        for i in range(64):
            with open(f"{folder}/{MARK}-{i}", "wb") as file:
                for _ in range(63):
                    size += file.write(b"x" * (1 << 20))
    except OSError:
        pass
    if size > 512 << 20:
        breach(f"{folder} took {size} bytes")
"""


@answer("project_qkv", gets=14)
def a_huge_list(*inputs):
    """A list of ten thousand million numbers."""
    return [0.0] * 10**10


@answer("attention_backward", gets=12, stock=True)
def takes_all_memory(*inputs):
    """Memory is taken piece by piece, and used, until there is no more."""
    kept = []
    while True:
        kept.append(torch.ones(16 << 20))


@cell()
def shares_its_memory():
    """Memory that is shared and has no file counts for no limit of a process: 6 GB of it."""
    import mmap

    kept = []
    try:
        for _ in range(96):
            kept.append(mmap.mmap(-1, 64 << 20))
            kept[-1].write(b"x" * (64 << 20))
    except OSError:
        pass


@cell()
def hides_its_memory():
    """Shared memory that is let go of keeps its content, and counts for no process: 6 GB of it."""
    import ctypes
    import mmap

    size, step = 6 << 30, 64 << 20
    kept = mmap.mmap(-1, size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(kept))
    for place in range(0, size, step):
        ctypes.memset(start + place, 1, step)
        kept.madvise(mmap.MADV_DONTNEED, place, step)


@cell()
def tables_of_pages():
    """Reading one byte every 2 MB of a mapping without memory fills the kernel's tables of pages: 6 GB of them."""
    import ctypes
    import mmap

    import numpy as np

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_size_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    step, size = 2 << 20, 3 << 40
    start = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, -1, 0)
    if start == 2**64 - 1:
        raise OSError("no such mapping")
    libc.madvise(start, size, 15)  # in small pages
    seen = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
    for place in range(0, size, 4096 * step):
        seen[place : place + 4096 * step : step].sum()


@cell(gets=None)
def many_that_take_memory():
    """Six processes take a gigabyte each, below the limit of one."""
    import os
    import time

    for _ in range(6):
        try:
            child = os.fork()
        except OSError:
            break
        if child == 0:
            kept = bytearray(b"x") * (1 << 30)
            time.sleep(900)
            del kept
    time.sleep(3)


@cell(before=FILL)
def files_in_memory():
    """Files that lie in memory and have no name: memfd, System V shared memory, /dev/shm: 4 GB of each."""
    import ctypes
    import os

    try:
        kept = [os.memfd_create(str(i)) for i in range(64)]
        for descriptor in kept:
            os.write(descriptor, b"x" * (64 << 20))
        breach("memfd_create")
    except OSError:
        pass
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    if (made := libc.shmget(0, 1 << 30, 0o1600)) >= 0:
        ctypes.memset(libc.shmat(made, None, 0), 1, 1 << 30)
        breach("shmget")
    fill("/dev/shm")


@cell(before=FILL)
def fills_the_disk():
    """Every folder that can be written is filled."""
    for folder in ("/tmp", "/var/tmp", ".", "/dev", "/run", "/"):
        fill(folder)


@cell()
def a_million_files():
    """Empty files cost the kernel memory that no quota of bytes counts."""
    import os
    import time

    began, made = time.monotonic(), 0
    try:
        while time.monotonic() - began < 4:
            os.close(os.open(f"{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError:
        pass
    if made > 50_000:
        breach(f"{made} files were made")


@cell()
def a_sparse_file():
    """A file of a terabyte that takes no room."""
    try:
        with open("sparse", "wb") as file:
            file.truncate(1 << 40)
        breach("a file of a terabyte was made")
    except OSError:
        pass


@cell()
def buffers_of_sockets():
    """The kernel keeps what was written to sockets and never read, for as many as 20 processes can open."""
    import os
    import socket
    import time

    def fill():
        kept = []
        while True:
            kept.append(socket.socketpair())
            for one in kept[-1]:
                one.setblocking(False)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                try:
                    while True:
                        one.send(b"x" * 65536)
                except BlockingIOError:
                    pass

    for _ in range(20):
        if os.fork() == 0:
            try:
                fill()
            except OSError:
                time.sleep(900)
    time.sleep(3)


@cell(stock=True)
def prints_without_end():
    """A line of 150 MB, a million lines, and as much past Python: to the descriptors, by other programs."""
    import os
    import subprocess
    import sys

    print("x" * (150 << 20))
    for i in range(100_000):
        print(i)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream:
            stream.write("x" * (20 << 20))
    for descriptor in (1, 2):
        os.write(descriptor, b"x" * (20 << 20))
    subprocess.run("yes | head -c 200000000; yes | head -c 200000000 >&2", shell=True)


@cell()
def a_value_that_shows_without_end():
    """The value of a cell has representations that are huge, raise, or end the process."""

    class Large:
        def __repr__(self):
            return "x" * (100 << 20)

        def _repr_html_(self):
            return "<b>" * (10 << 20)

        def _repr_png_(self):
            return b"\x89PNG" * (10 << 20)

        def _repr_mimebundle_(self, **_):
            return {"text/plain": "y" * (100 << 20), "application/json": list(range(1_000_000))}

    from IPython.display import display

    display(Large())
    Large()


@answer("project_qkv", gets=14)
def a_message_of_100_mb(*inputs):
    """An exception whose message is as long as memory allows, and whose name is too."""
    raise type("X" * (1 << 20), (ValueError,), {})("<b>" + "x" * (100 << 20))


@answer("dot_product_variance", gets=14)
def an_answer_of_60_mb(q, k):
    """An answer of sixty megabytes for each question."""
    return torch.zeros(7 << 20, dtype=torch.float64)


@answer("scaled_dot_product_attention", gets=8)
def answers_that_grow(*inputs):
    """Numbers of one byte, which the judge turns into eight: sixty-four megabytes of them for each question."""
    return [torch.zeros(1 << 24, dtype=torch.uint8)] * 4


@answer("dot_product_variance", gets=14)
def larger_than_it_is(q, k):
    """A tensor of a million million elements that holds one: expanded."""
    return torch.zeros(()).expand(1 << 40)
