"""Frames between the judge and a worker: a small JSON header, then the raw bytes of its tensors. Nothing is unpickled.

A frame is 4 bytes (the header's length), the header {"call" | "return" | "raise": value}, and the bytes of the tensors
in the order in which the header names them. A value is plain JSON, or an object with one key that says what it is:
"tuple", "dict", "float" (NaN and infinities), "tensor" ([dtype, shape, strides, size], the bytes in row-major order) or
"function" (a number under which the other side may call it back).

The other side is not trusted: the reader decides how much it reads, and whatever is malformed raises BadFrame.
"""

import builtins
import contextlib
import json
import math
import os
import select
import signal
import threading
import time
from itertools import zip_longest
from math import prod

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64"
DTYPES = {name: getattr(torch, name) for name in NAMES.split()}
ERRORS = """
    ArithmeticError AssertionError AttributeError IndexError KeyError LookupError MemoryError NameError
    NotImplementedError OverflowError RecursionError RuntimeError TypeError ValueError ZeroDivisionError
"""
RAISED = {name: getattr(builtins, name) for name in ERRORS.split()}
HEADER = 1 << 20  # bytes of a header
PAYLOAD = 64 << 20  # bytes of the tensors of a frame
CHUNK = 1 << 20
AXES = 16
DEPTH = 32  # of lists in lists
MESSAGE = 2000  # characters of an exception's message
CALLBACKS = 10_000  # calls that one call may cause
NESTING = 8  # calls within calls


class BadFrame(Exception):
    """The other side sent what no honest side sends."""


class Gone(Exception):
    """The other side closed its end."""


class Late(Exception):
    """The other side did not answer in time."""


class Channel:
    """Bytes over two file descriptors until a deadline. Once broken it stays broken: half a frame may be left."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.until, self.broken = reader, writer, None, None
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)

    def read(self, size):
        data = bytearray()
        while len(data) < size:
            chunk = self.step(self.reader, select.POLLIN, os.read, min(size - len(data), CHUNK))
            if not chunk:
                self.fail(Gone("it ended"))
            data += chunk
        return data

    def write(self, data):
        left = memoryview(data)
        while left:
            left = left[self.step(self.writer, select.POLLOUT, os.write, left[:CHUNK]) :]

    def step(self, descriptor, event, action, argument):
        self.wait(descriptor, event)
        try:
            return action(descriptor, argument)
        except OSError as problem:
            self.fail(Gone(f"it ended ({problem.strerror})"))

    def wait(self, descriptor, event):
        if self.broken:
            raise self.broken
        left = None if self.until is None else self.until - time.monotonic()
        poll = select.poll()
        poll.register(descriptor, event)
        if (left is not None and left <= 0) or not poll.poll(None if left is None else left * 1000 + 1):
            self.fail(Late("it did not answer in time"))

    def fail(self, problem):
        self.broken = problem
        raise problem


class Peer:
    """One side of the wire. While it waits for a value it serves the calls that the other side makes on the way."""

    def __init__(self, reader, writer, served=(), call_bytes=PAYLOAD, call_elements=None):
        self.channel = Channel(reader, writer)
        self.served = {function.__name__: function for function in served}
        self.limits = {"call": call_bytes, "return": PAYLOAD, "raise": 0}
        self.call_elements = call_elements
        self.lent, self.numbers = {}, 0
        self.depth, self.callbacks, self.alarms = 0, 0, Alarms()

    def call(self, target, *arguments, seconds=None, **keywords):
        """What a function of the other side returns or raises; or Late, Gone, BadFrame, after which all calls fail."""
        if not self.depth:
            self.channel.until = None if seconds is None else time.monotonic() + seconds
        with self.deeper(RecursionError), self.alarms.waiting():
            self.send("call", [target, list(arguments), keywords])
            while (frame := self.receive())[0] == "call":
                self.answer(frame[1])
        return self.value(*frame)

    def serve(self):
        """Answer calls until the other side closes its end."""
        with contextlib.suppress(Gone), self.alarms.waiting():
            while True:
                kind, value = self.receive()
                if kind != "call":
                    raise BadFrame(f"a {kind} came where a call was expected")
                self.answer(value)

    def answer(self, request):
        function, arguments, keywords = self.requested(request)
        with self.deeper(BadFrame):
            try:
                try:
                    self.alarms.loud()
                    result = function(*arguments, **keywords)
                finally:
                    self.alarms.quiet()
                frame = self.frame("return", result)
            except (BadFrame, Gone, Late):
                raise
            except BaseException as problem:  # SystemExit and deadlines too: the other side waits for a frame
                if self.call_elements and isinstance(problem, KeyboardInterrupt):
                    raise  # the person at the grader
                self.alarms.quiet()
                frame = self.frame("raise", [type(problem).__name__, str(problem)[:MESSAGE]])
            self.channel.write(frame)

    def requested(self, request):
        match request:
            case [str() | int() as target, list() as arguments, dict() as keywords] if not isinstance(target, bool):
                if isinstance(target, str) and target not in self.served:
                    raise BadFrame(f"a call of {target[:40]!r}, which is not served")
                if self.call_elements and reach([arguments, keywords]) > self.call_elements:
                    raise BadFrame("a call with tensors of which a function could make too large a one")
                return self.served.get(target) or self.lent.get(target) or expired, arguments, keywords
        raise BadFrame("a call that does not name a function, its arguments and its keywords")

    @contextlib.contextmanager
    def deeper(self, refusal):
        """Functions are lent until the outermost call is over; so many calls, nested so deep, and no more."""
        if not self.depth:
            self.callbacks = 0
        self.callbacks += 1
        if self.callbacks > CALLBACKS or self.depth >= NESTING:
            raise refusal(f"more than {CALLBACKS} calls to and fro, or more than {NESTING} within one another")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.lent.clear()

    def value(self, kind, value):
        if kind == "return":
            return value
        match value:
            case [str() as name, str() as message]:
                error = RAISED[name](message) if name in RAISED else RuntimeError(f"{name[:40]}: {message}")
                error.far = True  # raised over there, not here
                raise error
        raise BadFrame("an exception without a type and a message")

    def lend(self, function):
        self.numbers += 1
        self.lent[self.numbers] = function
        return self.numbers

    def frame(self, kind, value):
        tensors = []
        header = json.dumps({kind: pack(value, tensors, self.lend)}, allow_nan=False).encode()
        size = sum(map(len, tensors))
        if len(header) > HEADER or size > PAYLOAD:
            raise ValueError(f"{len(header) + size} bytes are more than a frame may hold")
        return b"".join([len(header).to_bytes(4, "little"), header, *tensors])

    def send(self, kind, value):
        self.channel.write(self.frame(kind, value))

    def receive(self):
        try:
            kind, value = parsed(self.header())
            if kind not in self.limits:
                raise BadFrame(f"a frame of the unknown kind {kind[:40]!r}")
            return kind, Reader(self, self.limits[kind]).unpack(value)
        except BadFrame as problem:
            self.channel.fail(problem)

    def header(self):
        size = int.from_bytes(self.channel.read(4), "little")
        if size > HEADER:
            raise BadFrame(f"a header of {size} bytes; at most {HEADER} are read")
        return self.channel.read(size)


class Reader:
    """Turns the value of a header into the value it stands for, reading the bytes of its tensors on the way."""

    def __init__(self, peer, limit):
        self.peer, self.left = peer, limit

    def unpack(self, value, depth=0):
        if depth > DEPTH:
            raise BadFrame(f"values nested more than {DEPTH} deep")
        match value:
            case None | bool() | float():
                return value
            case int() if fits(value):
                return value
            case str():
                return text(value)
            case list():
                return [self.unpack(x, depth + 1) for x in value]
            case {"tuple": list() as values, **rest} if not rest:
                return tuple(self.unpack(x, depth + 1) for x in values)
            case {"dict": dict() as values, **rest} if not rest:
                return {text(k): self.unpack(x, depth + 1) for k, x in values.items()}
            case {"float": "nan" | "inf" | "-inf" as name, **rest} if not rest:
                return float(name)
            case {"tensor": [str() as dtype, list() as shape, list() as strides, int() as size], **rest} if not rest:
                return self.tensor(dtype, shape, strides, size)
            case {"function": int() as number, **rest} if not rest and not isinstance(number, bool):
                return Lent(self.peer, number)
        raise BadFrame(f"a value that is none of those known: {str(value)[:60]}")

    def tensor(self, dtype, shape, strides, size):
        if dtype not in DTYPES:
            raise BadFrame(f"a tensor of dtype {dtype[:40]!r}")
        sizes = all(type(n) is int and n >= 0 for n in shape)
        if len(shape) > AXES or not sizes or prod(n or 1 for n in shape) > PAYLOAD:
            raise BadFrame(f"a tensor of shape {str(shape)[:60]}")
        span = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=False) if type(stride) is int)
        if len(strides) != len(shape) or not all(type(x) is int and x >= 0 for x in strides) or span > PAYLOAD:
            raise BadFrame(f"a tensor of strides {str(strides)[:60]}")
        if size != prod(shape) * DTYPES[dtype].itemsize:
            raise BadFrame(f"{size} bytes for a tensor of dtype {dtype} and shape {shape}")
        needed = max(size, span * DTYPES[dtype].itemsize)
        if needed > self.left:
            raise BadFrame(f"tensors of more bytes than are read, the last of shape {shape}")
        self.left -= needed
        return self.filled(DTYPES[dtype], shape, strides, size)

    def filled(self, dtype, shape, strides, size):
        if not size:
            return torch.empty(shape, dtype=dtype)
        data = self.peer.channel.read(size)
        if dtype == torch.bool and max(data) > 1:
            raise BadFrame("a boolean tensor with a byte that is neither 0 nor 1")
        return laid_out(torch.frombuffer(data, dtype=dtype).reshape(shape), strides)


def reach(values):
    """Elements of the largest tensor that broadcasting these, and a product of each with each, can give."""
    shapes = [t.shape for t in tree_leaves(values) if torch.is_tensor(t)]
    axes = [max(1, *sizes) for sizes in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)]
    return prod(axes) * max(axes, default=1)


class Lent:
    """A function of the other side."""

    __slots__ = ("_number", "_peer")

    def __init__(self, peer, number):
        self._peer, self._number = peer, number

    def __call__(self, *arguments, **keywords):
        return self._peer.call(self._number, *arguments, **keywords)


def expired(*_, **__):
    raise RuntimeError("this function was lent for one call, which is over")


def pack(value, tensors, lend, depth=0):
    """What stands for `value` in a header. Appends the bytes of its tensors to `tensors`, lends its functions."""
    if depth > DEPTH:
        raise ValueError(f"lists nested more than {DEPTH} deep cannot be sent")
    inner = lambda x: pack(x, tensors, lend, depth + 1)  # noqa: E731
    match value:
        case None | bool():
            return value
        case np.generic():
            return inner(value.item())
        case int() if fits(value):
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        case str():
            return value.encode("utf-8", "replace").decode()
        case torch.Tensor():
            return {"tensor": described(value, tensors)}
        case np.ndarray():
            return {"tensor": described(torch.from_numpy(np.ascontiguousarray(value)).reshape(value.shape), tensors)}
        case list():
            return [inner(x) for x in value]
        case tuple():
            return {"tuple": [inner(x) for x in value]}
        case dict() if all(isinstance(key, str) for key in value):
            return {"dict": {key.encode("utf-8", "replace").decode(): inner(x) for key, x in value.items()}}
    if callable(value):
        return {"function": lend(value)}
    raise TypeError(f"a {type(value).__name__} as {repr(value)[:40]} cannot be sent between grader and worker")


def described(t, tensors):
    """dtype, shape, strides and bytes; a transposed tensor or a slice arrives as one, for a kernel may depend on it."""
    t = t.detach().cpu()
    name = str(t.dtype).removeprefix("torch.")
    if name not in DTYPES or t.layout != torch.strided:
        raise TypeError(f"a tensor of dtype {name} and layout {t.layout} cannot be sent")
    strides = list(t.stride()) if min(t.stride(), default=1) > 0 else list(t.contiguous().stride())
    tensors.append(t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return [name, list(t.shape), strides, len(tensors[-1])]


def laid_out(t, strides):
    """The same values with these strides in memory of its own."""
    if t.stride() == tuple(strides):
        return t
    span = 1 + sum((n - 1) * stride for n, stride in zip(t.shape, strides, strict=True))
    try:
        return torch.zeros(span, dtype=t.dtype).as_strided(t.shape, strides).copy_(t)
    except RuntimeError:
        raise BadFrame(f"a tensor of shape {list(t.shape)} whose entries overlap, with strides {strides}") from None


def parsed(header):
    """The kind of a frame and the value it carries, still as JSON."""

    def refuse(constant):
        raise ValueError(constant)

    try:
        [(kind, value)] = json.loads(header.decode(), parse_constant=refuse).items()
    except (ValueError, RecursionError, AttributeError):
        raise BadFrame("a header that is not a JSON object with one key") from None
    return kind, value


def fits(number):
    return -(2**63) <= number < 2**63


def text(value):
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadFrame("a text with half a character in it") from None
    return value


class Alarms:
    """An alarm waits until a frame is over: raised between two halves of one, it would leave the rest in the pipe.

    The alarms of `deadline` ring again every tenth of a second, so one that is not heard is not lost, and one that
    strikes just before `quiet` leaves time to call it again. (A masked signal would be taken by another thread.)
    """

    def __init__(self):
        self.handlers = []

    def quiet(self):
        if main_thread():
            return signal.signal(signal.SIGALRM, unheard)

    def loud(self):
        if main_thread() and self.handlers:
            signal.signal(signal.SIGALRM, self.handlers[-1])

    @contextlib.contextmanager
    def waiting(self):
        self.handlers.append(self.quiet())
        try:
            yield
        finally:
            handler = self.handlers.pop()
            if handler is not None:
                signal.signal(signal.SIGALRM, handler)


def unheard(*_):
    pass


def main_thread():
    return threading.current_thread() is threading.main_thread()
