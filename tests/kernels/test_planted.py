"""Faults planted in the kernels, as they were made elsewhere: each that changes a result is found."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest
import torch
from comparing import agrees, cache, decodes, inputs, layouts
from triton.runtime.interpreter import InterpreterError

import kernels
from kernels.check.memory import checked

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, at infinities that the faults make
OUTSIDE = ("(d < D)[None, :], other=0.0", "(d < BLOCK_D)[None, :], other=0.0")
STORED = "tl.store(there, values.to(x.dtype.element_ty), mask=(rows < count)[:, None] & (d < D)[None, :])"
FAULTS = {  # what is wrong: the file, what stands there, and what is planted
    "causal aligned top-left": ("forward", "rows + (S - N) if CAUSAL", "rows if CAUSAL"),
    "a query does not see the last of its keys": ("forward", "<= last[:, None]", "< last[:, None]"),
    "hidden scores are 0": ("forward", 'last[:, None], scores, -float("inf"))', "last[:, None], scores, 0.0)"),
    "the wrong keys for a group of heads": ("forward", "row(k, k_stride, b, h // GROUP", "row(k, k_stride, b, h % 1"),
    "the output is not scaled down": ("forward", "acc * fade[:, None]", "acc"),
    "the sum is not scaled down": ("forward", "l * fade + tl.sum", "l + tl.sum"),
    "the largest score starts at 0": ("forward", '[BLOCK_N], -float("inf"), tl', "[BLOCK_N], 0.0, tl"),
    "masks end too early": ("forward", "maximum(first + 1 + S - N, 0)", "maximum(first + BLOCK_N + S - N, 0)"),
    "keys are left out": ("forward", "maximum(first + BLOCK_N + S - N, 0)", "maximum(first + S - N, 0)"),
    "an empty row is divided by 0": ("forward", "tl.where(l == 0, 1, l)", "l"),
    "an empty row takes infinity from infinity": ("forward", "if MASKED else higher", "if False else higher"),
    "lse in powers of two": ("forward", "(m + tl.log2(l)) * LN_2", "m + tl.log2(l)"),
    "scores in tf32": ("forward", 'keys.T, input_precision="ieee")', "keys.T)"),
    "rows are taken to be dense": ("tiles", "rows[:, None] * stride[2]", "rows[:, None] * BLOCK_D"),
    "every sequence is the first": ("tiles", "x + b * stride[0]", "x + 0 * stride[0]"),
    "offsets in 32 bits": ("tiles", "tl.cast(stride[1], tl.int64) * UNIT", "stride[1] * UNIT"),
    "columns beyond D are read": ("tiles", *OUTSIDE),
    "columns beyond D are stored": ("tiles", STORED, STORED.replace("d < D", "d < BLOCK_D")),
    "rows beyond the end are stored": ("tiles", STORED, STORED.replace("rows < count", "rows >= 0")),
    "an empty row weighs in the gradient": ("backward", "powers == -", "powers != powers - "),
    "dq lacks the scale": ("backward", "acc * scale, D", "acc, D"),
    "dk lacks the scale": ("backward", "acc_k * scale, D", "acc_k, D"),
    "only the first head of a group counts": ("backward", "tl.range(GROUP)", "tl.range(1)"),
    "delta is not taken off": ("backward", "(d_weights - deltas[:, None])", "d_weights"),
    "queries are left out": ("backward", "first + N - S, 0), N)", "first + N - S + BLOCK_S, 0), N)"),
    "queries before the keys weigh": ("backward", "rows[:, None] <= last[None, :]", "rows[:, None] >= 0"),
    "the cache is read beyond its filling": ("decode", "(heads) + (end - 1)", "(heads) + end"),
    "parts overlap": ("decode", "tl.minimum(begin + part, length)", "tl.minimum(begin + part + 1, length)"),
    "an empty part is divided by 0": ("decode", "tl.where(l == 0, 1, l)", "l"),
    "an empty cache is divided by 0": ("decode", "tl.where(total == 0, 1, total)", "total"),
    "parts are not weighted": ("decode", "rows * shares[:, None]", "rows"),
    "one part belongs to another head": ("decode", "GROUP + heads) * splits + split", "GROUP + heads) + split"),
}


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Makes a copy of the package with a fault in it."""
    monkeypatch.syspath_prepend(tmp_path)

    def plant(file, old, new):
        shutil.copytree(
            Path(kernels.__file__).parent, tmp_path / "planted", ignore=shutil.ignore_patterns("__pycache__")
        )
        path = tmp_path / "planted" / f"{file}.py"
        text = path.read_text("utf8")
        assert old in text, f"{old} no longer stands in {file}.py"
        path.write_text(text.replace(old, new), "utf8")
        return importlib.import_module("planted")

    yield plant
    for name in [name for name in sys.modules if name.split(".")[0] == "planted"]:
        del sys.modules[name]


def right(package, file):
    """A few of the questions that every other test here asks in more detail, with every address watched."""
    return decoding(package) if file == "decode" else attending(package)


def decoding(package):
    with checked():
        filled = decodes(*cache(), torch.tensor([300, 131, 0]), package=package)
        return filled and decodes(*cache(B=1, S=700), torch.tensor([129]), package=package)


def attending(package):
    ragged = inputs(B=2, Hq=4, Hkv=2, N=37, S=70, D=40)
    empty = inputs(N=40, S=25)
    low = inputs(seed=1)
    low[0][..., 0], low[1][..., 0] = 40, -40
    with checked():
        watched = (
            all(agrees(*one, causal=True, package=package) for one in (ragged, empty))
            and agrees(*ragged, package=package)
            and agrees(*low, times=100, package=package)
            and agrees(*(layouts(x)[i % 3] for i, x in enumerate(ragged)), package=package)
        )
    q, k, v = far_apart()
    return watched and torch.equal(package.flash_attention(q, k, v), package.flash_attention(q, k.contiguous(), v))


def far_apart():
    """Heads 2³⁰ elements apart, the third beyond 32 bits; only what is written to takes memory."""
    q, k, v, _ = inputs(Hq=3, N=16, D=16, dtype=torch.float16)
    place = torch.empty(2**31 + 4096, dtype=torch.float16).as_strided(k.shape, (0, 2**30, 16, 1))
    place.copy_(k)
    return q, place, v


def test_without_a_fault_nothing_is_found(planted):
    package = planted("forward", "acc", "acc")
    assert decoding(package) and attending(package)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(planted, fault):
    package = planted(*FAULTS[fault])
    try:
        found = not right(package, FAULTS[fault][0])
    except InterpreterError:
        found = True
    assert found
