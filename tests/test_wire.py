"""The wire between judge and worker: values arrive as they were sent, and nothing malformed is believed."""

import contextlib
import json
import math
import os
import random
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from autograder import wire
from autograder.wire import BadFrame, Gone, Late, Peer


class Ends:
    """A peer that serves `functions` in a thread, a peer that calls it, and the bare descriptors between them."""

    def __init__(self, *functions):
        a, b = os.pipe(), os.pipe()
        self.descriptors = [*a, *b]
        self.near, self.far = Peer(a[0], b[1]), Peer(b[0], a[1], functions)

    def __enter__(self):
        self.thread = threading.Thread(target=self.far.serve, daemon=True)
        self.thread.start()
        return self.near

    def __exit__(self, *_):
        os.close(self.near.channel.writer)
        self.thread.join(5)
        for descriptor in set(self.descriptors) - {self.near.channel.writer}:
            os.close(descriptor)


def echo(value):
    return value


def same(a, b):
    if isinstance(a, torch.Tensor):
        alike = min(a.shape, default=2) < 2 or a.stride() == b.stride()  # axes of size 1 may have any stride
        return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b) and alike
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def bits(t):
    return t.contiguous().reshape(-1).view(torch.uint8).tolist()


tensors = some.builds(
    lambda dtype, shape, seed: (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 9).to(dtype),
    some.sampled_from(list(wire.DTYPES.values())),
    some.lists(some.integers(0, 4), max_size=4),
    some.integers(0, 99),
)
whole_numbers = some.integers(-(2**63), 2**63 - 1)
texts = some.text(some.characters(exclude_categories=["Cs"]))
lists = partial(some.lists, max_size=4)
values = some.recursive(
    some.none() | some.booleans() | whole_numbers | some.floats() | texts | tensors,
    lambda inner: lists(inner) | lists(inner).map(tuple) | some.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(some.lists(values, max_size=6))
def test_values_arrive_as_they_were_sent(given_values):
    with Ends(echo) as peer:
        for value in given_values:
            assert same(value, peer.call("echo", value))


def test_a_transposed_tensor_arrives_transposed_and_a_slice_whole():
    x = torch.randn(2, 3, 5).transpose(0, 2)
    sliced = torch.arange(20.0).reshape(4, 5)[:, 1:3]
    with Ends(echo) as peer:
        assert same(x, peer.call("echo", x))
        assert torch.equal(sliced, peer.call("echo", sliced))
        assert torch.equal(torch.ones(1).expand(3, 4), peer.call("echo", torch.ones(1).expand(3, 4)))


def test_numpy_arrives_as_tensors_and_numbers():
    with Ends(echo) as peer:
        assert peer.call("echo", np.arange(6.0).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
        assert peer.call("echo", np.float32(0.5)) == 0.5 and peer.call("echo", np.bool_(True)) is True


def test_half_a_character_is_replaced_when_sent():
    with Ends(echo) as peer:
        assert peer.call("echo", "a\ud800b") == "a?b"


@pytest.mark.parametrize("value", [object(), 1 << 64, {1: 2}, 1j, torch.ones(2) * 1j, b"raw"])
def test_what_cannot_be_sent_is_refused_on_this_side(value):
    with Ends(echo) as peer:
        with pytest.raises(TypeError, match="cannot be sent"):
            peer.call("echo", value)
        assert peer.call("echo", 1) == 1


def test_functions_call_back_and_forth():
    def double(f):
        return lambda x: 2 * f(x)

    def apply(f, x, key=0):
        return f(x) + key

    with Ends(apply, double) as peer:
        assert peer.call("apply", lambda x: x + 1, torch.ones(2), key=3).tolist() == [5, 5]

        def planted(student_callback):  # runs here, and calls a function that lives over there
            return student_callback(20) + 1

        def over_there(planted):
            return planted(lambda x: x + 1)

        with Ends(over_there) as other:
            assert other.call("over_there", planted) == 22


def test_exceptions_travel_by_type_and_message():
    def fails(kind):
        raise {"value": ValueError, "exit": SystemExit, "own": type("Own", (Exception,), {})}[kind]("no such head")

    with Ends(fails, echo) as peer:
        with pytest.raises(ValueError, match="no such head"):
            peer.call("fails", "value")
        with pytest.raises(RuntimeError, match="SystemExit: no such head"):
            peer.call("fails", "exit")
        with pytest.raises(RuntimeError, match="Own: no such head"):
            peer.call("fails", "own")
        assert peer.call("echo", 1) == 1


def test_a_function_is_lent_for_one_call_only():
    kept = []

    def keep(f):
        kept.append(f)

    def use():
        return kept[0](1)

    with Ends(keep, use) as peer:
        peer.call("keep", lambda x: x)
        with pytest.raises(RuntimeError, match="which is over"):
            peer.call("use")


def test_calls_are_counted_and_do_not_nest_for_ever(monkeypatch):
    def again(f, n):
        return f(n)

    with Ends(again) as peer:

        def deeper(n):
            return peer.call("again", deeper, n + 1)

        with pytest.raises(RecursionError, match="within one another"):
            peer.call("again", deeper, 0)
    monkeypatch.setattr(wire, "CALLBACKS", 50)

    def often(f):
        return sum(f(i) for i in range(100))

    with Ends(often) as peer, pytest.raises(RecursionError, match="to and fro"):
        peer.call("often", lambda i: i)


def test_a_late_answer_is_not_waited_for_and_never_read():
    def slow():
        time.sleep(0.5)

    with Ends(slow) as peer:
        start = time.monotonic()
        with pytest.raises(Late):
            peer.call("slow", seconds=0.1)
        assert time.monotonic() - start < 0.4
        with pytest.raises(Late):
            peer.call("slow", seconds=9)


def test_the_end_of_the_other_side_is_an_exception():
    a, b = os.pipe(), os.pipe()
    os.close(a[1])
    with pytest.raises(Gone):
        Peer(a[0], b[1]).call("anything")


def reply(header, body=b"", size=None, **peer):
    """What a peer makes of these raw bytes as the answer to a call."""
    a, b = os.pipe(), os.pipe()
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    raw = (len(header) if size is None else size).to_bytes(4, "little") + header + body
    writer = threading.Thread(target=lambda: (os.write(a[1], raw), os.close(a[1])), daemon=True)
    writer.start()
    try:
        return Peer(a[0], b[1], **peer).call("echo", 1, seconds=5)
    finally:
        writer.join(5)
        for descriptor in (a[0], *b):
            os.close(descriptor)


deep = b'{"return": ' + b"[" * 5000 + b"]" * 5000 + b"}"
MALFORMED = {
    "no JSON": b"{",
    "no object": b"[1]",
    "two keys": b'{"return": 1, "raise": 2}',
    "no key": b"{}",
    "another kind": b'{"give": 1}',
    "no UTF-8": b'{"return": "\xff"}',
    "half a character": b'{"return": "\\ud800"}',
    "bare NaN": b'{"return": NaN}',
    "deep": deep,
    "a little too deep": b'{"return": ' + b"[" * 40 + b"]" * 40 + b"}",
    "a number of 5000 digits": b'{"return": ' + b"9" * 5000 + b"}",
    "a number of 65 bits": b'{"return": 36893488147419103232}',
    "another tag": b'{"return": {"pickle": "gASVAAAA"}}',
    "two tags": b'{"return": {"tuple": [], "dict": {}}}',
    "a float with a name": b'{"return": {"float": "1"}}',
    "a function without a number": b'{"return": {"function": "os.system"}}',
    "an exception without a message": b'{"raise": ["ValueError"]}',
    "a call of what is not served": b'{"call": ["echo", [], {"dict": {}}]}',
    "a call of nothing": b'{"call": []}',
    "a call without keywords": b'{"call": [1, []]}',
    "an unknown dtype": {"return": {"tensor": ["complex64", [1], [0], 8]}},
    "a negative size": {"return": {"tensor": ["int8", [-1, -1], [0, 1], 1]}},
    "a size that is no whole number": {"return": {"tensor": ["int8", [1.0], [0], 1]}},
    "a huge size": {"return": {"tensor": ["int8", [1 << 40], [0], 1 << 40]}},
    "a huge empty size": {"return": {"tensor": ["int8", [0, 1 << 62], [0, 1], 0]}},
    "too many axes": {"return": {"tensor": ["int8", [1] * 17, list(range(17)), 1]}},
    "entries on one another": {"return": {"tensor": ["int8", [2, 2], [0, 1], 4]}},
    "a stride too few": {"return": {"tensor": ["int8", [1, 1], [1], 1]}},
    "a negative stride": {"return": {"tensor": ["int8", [2], [-1], 2]}},
    "strides beyond all bounds": {"return": {"tensor": ["int8", [2], [1 << 40], 2]}},
    "a stride that is no number": {"return": {"tensor": ["int8", [2], ["1"], 2]}},
    "fewer bytes than the shape": {"return": {"tensor": ["float32", [2], [0], 4]}},
    "more bytes than are read in all": {"return": [{"tensor": ["int8", [1 << 26], [0], 1 << 26]}] * 2},
    "tensors in an exception": {"raise": ["ValueError", {"tensor": ["int8", [1], [0], 1]}]},
}


@pytest.mark.parametrize("header", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_refused(header):
    body = b"\0" * (1 << 26 if "67108864" in str(header) else 64)
    with pytest.raises(BadFrame):
        reply(header, body)


def test_a_long_header_is_not_read():
    with pytest.raises(BadFrame, match="at most"):
        reply(b"", size=wire.HEADER + 1)


def test_a_boolean_is_zero_or_one():
    with pytest.raises(BadFrame, match="boolean"):
        reply({"return": {"tensor": ["bool", [2], [0], 2]}}, b"\1\2")


def test_a_call_may_carry_less_than_an_answer():
    with pytest.raises(BadFrame, match="more bytes"):
        reply({"call": [1, [{"tensor": ["int8", [99], [0], 99]}], {"dict": {}}]}, b"\0" * 99, call_bytes=64)


@pytest.mark.parametrize(
    ("shapes", "elements"),
    [([], 1), ([()], 1), ([(3, 1, 5), (4, 1)], 3 * 4 * 5 * 5), ([(8, 1, 9, 1), (1, 8, 9, 1)], 8 * 8 * 9 * 9)],
)
def test_what_a_function_of_ours_could_make_of_a_call_is_bounded(shapes, elements):
    """Attention makes N × S of (…, N, D) and (…, S, D), whose other axes may be broadcast against each other."""
    assert wire.reach([torch.empty(shape) for shape in shapes]) == elements
    with pytest.raises(BadFrame, match="too large"):
        reply({"call": [1, [{"tensor": ["int8", [99], [1], 99]}], {"dict": {}}]}, b"\0" * 99, call_elements=99)


def test_strides_cost_what_they_span():
    far = {"tensor": ["float64", [2], [(1 << 23) - 2], 16]}
    with pytest.raises(BadFrame, match="more bytes"):
        reply({"return": [far, far]}, bytes(32))


def test_a_broken_peer_stays_broken():
    a, b = os.pipe(), os.pipe()
    os.write(a[1], (1).to_bytes(4, "little") + b"{" + (13).to_bytes(4, "little") + b'{"return": 1}')
    peer = Peer(a[0], b[1])
    for _ in range(2):
        with pytest.raises(BadFrame):
            peer.call("echo")


def test_noise_never_raises_anything_else():
    """Frames with bytes changed at random: refused, or read as a value, or too short."""
    pick = random.Random(0)
    value = [{"tensor": ["float32", [2, 3], [1, 0], 24]}, {"dict": {"a": {"tuple": [1, "b", None]}}}]
    header = json.dumps({"return": value}).encode()
    for _ in range(400):
        noisy = bytearray(header)
        for _ in range(pick.randint(1, 4)):
            noisy[pick.randrange(len(noisy))] = pick.choice(b'0129{}[]",:. \xff' + bytes([pick.randrange(256)]))
        with contextlib.suppress(BadFrame, Gone):
            reply(bytes(noisy), bytes(24))


def test_an_alarm_does_not_tear_a_frame():
    """The worker's deadline may strike while its answer calls back: the exchange is finished first."""

    class Rings(BaseException):
        pass

    def ring(*_):
        raise Rings

    before = signal.signal(signal.SIGALRM, ring)

    def slow(x):
        time.sleep(0.01)
        return x

    try:
        with Ends(slow) as peer:
            for n in range(60):
                signal.setitimer(signal.ITIMER_REAL, 0.001 + n / 8000, 0.1)
                try:
                    peer.call("slow", torch.ones(100_000))
                    time.sleep(0.05)
                except Rings:
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert peer.call("slow", n) == n
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_infinities_and_nan():
    with Ends(echo) as peer:
        found = peer.call("echo", [math.inf, -math.inf, math.nan])
    assert found[:2] == [math.inf, -math.inf] and math.isnan(found[2])
