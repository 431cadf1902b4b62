"""Attacks on the connection between the grader and the process in which a student's code runs.

The process may write to it whatever it likes: bytes that are no frame, frames that are none of its business, answers
before they are asked for. It loses the exercise whose judging it disturbs, and gains nothing.
"""

# ruff: noqa: F821, SIM105 (a submission defines names, and does not mind)

import os
import struct
import time

from .attack import WRONG, answer, cell

TOOLS = '''
import json
import os
import select
import socket
import stat
import struct


def ends():
    """Every descriptor to which something can be written."""
    for number in range(3, 256):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
            yield number


def say(data):
    """Write all of it to every end."""
    for number in ends():
        left = memoryview(data)
        while left and select.select([], [number], [], 1)[1]:
            try:
                left = left[os.write(number, left) :]
            except OSError:
                break


def framed(header, payload=b""):
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(data)) + data + payload


def claims(outputs=(), **other):
    """A frame as the worker sends one, about an answer with these tensors."""
    tensors = [{"tensor": ["float64", list(t.shape), list(t.stride()), 8 * t.numel()]} for t in outputs]
    about = {"outputs": {"tuple": tensors}, "kinds": {"tuple": ["float32"] * len(tensors)}, "error": None,
             "changed": {"tuple": []}, "largest": 0, "kept": 0, "launches": 0, "late": False} | other
    return framed({"return": {"dict": about}}, b"".join(t.double().contiguous().numpy().tobytes() for t in outputs))
'''


@cell(before=TOOLS, stock=True)
def junk():
    """Random bytes on every descriptor, while a cell runs."""
    say(os.urandom(4096))


@answer("project_qkv", gets=14, before=TOOLS, stock=True)
def junk_in_an_answer(*inputs):
    """The same while an answer runs, and then the right answer."""
    say(b"\x00" * 4096)
    return inputs[0] @ inputs[1], inputs[0] @ inputs[2], inputs[0] @ inputs[3]


@answer("project_qkv", gets=14, before=TOOLS)
def a_frame_of_4_gb(*inputs):
    """The length of a header is given as four gigabytes."""
    say(struct.pack("<I", 0xFFFFFFFF) + b"x" * 100_000)


@answer("project_qkv", gets=14, before=TOOLS)
def brackets(*inputs):
    """A header of half a million brackets, for a parser that calls itself."""
    say(framed(b'{"return": ' + b"[" * 500_000))


@answer("project_qkv", gets=14, before=TOOLS)
def a_number_of_a_million_digits(*inputs):
    """A number that takes hours to read, NaN and Infinity that JSON does not have, the same key a thousand times."""
    for value in (b"9" * 1_000_000, b"NaN", b"-Infinity", b"1e999", b'{"dict": {' + b'"a": 1, ' * 9999 + b'"a": 1}}'):
        say(framed(b'{"return": ' + value + b"}"))


@answer("dot_product_variance", gets=14, before=TOOLS)
def a_tensor_of_exabytes(q, k):
    """Shapes whose product overflows, is zero, or is more than is sent."""
    for shape in ([1 << 62, 0], [1 << 31, 1 << 31, 1 << 31], [0] * 16, [-1, -1], [1 << 40]):
        say(framed({"return": {"dict": {"outputs": {"tuple": [{"tensor": ["float64", shape, [0] * len(shape), 0]}]}}}}))


@answer("dot_product_variance", gets=14, before=TOOLS)
def promises_more(q, k):
    """A tensor of which half is sent, and then nothing."""
    say(framed({"return": {"tensor": ["float64", [1 << 20], [1], 8 << 20]}}, b"x" * 1000))
    os.closerange(3, 256)
    time.sleep(900)


@answer(gets=0, answers=WRONG, before=TOOLS, stock=True)
def forged_answers(*inputs):
    """Frames with outputs that are zero, one and NaN, without error, are sent before the answer and instead of it."""
    shape = [*inputs[0].shape[:-1], inputs[-1].shape[-1]]
    for value in (0.0, 1.0, float("nan")):
        say(claims([torch.full(shape, value)] * (1 if len(inputs) == 2 else 3)))
    os._exit(0)


@answer(gets=0, answers=WRONG, before=TOOLS)
def calls_the_grader(*inputs):
    """Calls of the grader's functions by name and by number, deep within one another, with large arguments."""
    for target in ("judge", "run", "observe", "ready", "record", "__class__", *range(50), -1, 1 << 62):
        say(framed({"call": [target, ["x" * 900_000], {"dict": {}}]}))


@answer(gets=0, answers=WRONG, before=TOOLS)
def speaks_for_the_grader(*inputs):
    """The process calls itself: frames are sent back to where they came from, and read in the grader's place."""
    for number in ends():
        try:
            socket.socket(fileno=os.dup(number)).recv(1 << 20, socket.MSG_DONTWAIT)
        except OSError:
            pass
    say(claims([inputs[0]] * 3))


@answer("project_qkv", gets=14, before=TOOLS)
def sends_descriptors(*inputs):
    """File descriptors by the hundred are sent along with bytes, until the reader has no room for its own."""
    for number in ends():
        one = socket.socket(fileno=os.dup(number))
        for _ in range(20):
            socket.send_fds(one, [b"\x00" * 4], [0] * 200)


@answer("scaled_dot_product_attention", gets=8, before=TOOLS)
def answers_ahead(q, k, v, mask=None):
    """Two answers to one question: every later answer is one late, and says what the next question will be."""
    say(claims([v] * 2))
    return v, v


@cell(gets=0, answers=WRONG)
def serves_in_its_place():
    """The worker's own object that serves the grader is found and given another function to serve."""
    import gc

    def observe(name, inputs, look, given=None):
        return {"outputs": (torch.zeros(3, dtype=torch.float64),) * 3, "kinds": ("float32",) * 3, "error": None,
                "changed": (), "largest": 0, "kept": 0, "launches": 0, "late": False}  # fmt: skip

    for thing in gc.get_objects():
        if type(thing).__name__ == "Peer" and "observe" in getattr(thing, "served", {}):
            thing.served["observe"] = observe


@answer("project_qkv", gets=14)
def what_cannot_be_sent(*inputs):
    """Objects of kinds that no frame holds: modules, sparse and quantised tensors, generators, functions."""
    return torch.eye(3).to_sparse(), (i for i in inputs), print


@answer("dot_product_variance", gets=14, before=TOOLS)
def far_apart(q, k):
    """Tensors of two numbers that lie half a gigabyte apart: eight of them."""
    spread = {"tensor": ["float64", [2], [(64 << 20) - 1], 16]}
    outputs = {"tuple": [spread] * 8}
    about = {"outputs": outputs, "error": None, "after": {"dict": {}}, "largest": 0, "kept": 0, "launches": 0}
    say(framed({"return": {"dict": {**about, "late": False}}}, bytes(16 * 8)))
    os._exit(0)


@cell(gets=None, before=TOOLS)
def a_picture_of_60_mb():
    """A cell's reply with ten pictures of six megabytes, which no worker sends."""
    pictures = [{"tensor": ["uint8", [6 << 20], [1], 6 << 20]}] * 10
    say(framed({"return": {"dict": {"text": "", "error": None, "pictures": pictures}}}, bytes(60 << 20)))
    os._exit(0)


@cell(gets=None, before=TOOLS)
def raises_in_the_grader():
    """A frame that says that the worker itself failed, while a cell runs: an exception in the grader's process?"""
    say(framed({"raise": ["MemoryError", ""]}))


@cell(gets=None)
def no_memory_for_the_worker():
    """So much memory is kept that the worker cannot send what a cell printed."""
    global kept
    kept, size = [], 64 << 20
    while size > 64:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            size //= 2
    print("x" * 10)
