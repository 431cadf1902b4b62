"""Every wrong access is found where it is made, and a kernel without one is left alone."""

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpreterError

from kernels.check.memory import checked

# A fault comes out of the interpreter as an InterpreterError that quotes it.


@triton.jit
def copy(x, out, count, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = i < count if MASKED else i >= 0
    tl.store(out + i, tl.load(x + i, mask=there), mask=there)


@triton.jit
def all_to_one_place(out):
    tl.store(out + tl.program_id(0) // 2, 1.0)


@triton.jit
def twice_at_once(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i // 2, i.to(tl.float32))


@triton.jit
def reads_its_neighbour(x):
    i = tl.program_id(0)
    tl.store(x + i, tl.load(x + (i + 1) % 4) + 1)


@triton.jit
def careless(x, out, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(x + i, mask=i < count), 0))


@triton.jit
def order_of_programs(out, count):
    """Which program came last, if programs ran one after another."""
    tl.atomic_xchg(out, tl.program_id(0))


@triton.jit
def by_descriptor(x, out, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]))


def alone(*size):
    """Numbers amid memory that is nobody's, so that a stray address is not by chance another tensor's."""
    return torch.randn(3 * size[0], *size[1:])[size[0] : 2 * size[0]]


def test_a_clean_kernel_passes_and_its_stores_are_counted():
    x, out = torch.randn(100), torch.empty(100)
    with checked() as report:
        copy[(2,)](x, out, 100, 64, True)
    assert torch.equal(x, out) and (report.written(out) == 1).all() and not report.written(x).any()


def test_a_load_beyond_the_end_is_found():
    with checked(), pytest.raises(InterpreterError, match=r"a load of 28 lanes lies outside every tensor"):
        copy[(2,)](alone(100), alone(128), 100, 64, False)


def test_a_store_outside_the_view_is_found_though_the_storage_goes_on():
    whole = torch.empty(128)
    with checked(), pytest.raises(InterpreterError, match="a store of 28 lanes lies outside"):
        copy[(2,)](alone(128), whole[:100], 128, 64, False)
    with checked(), pytest.raises(InterpreterError, match="outside"):
        copy[(1,)](alone(64), whole[::2], 64, 64, True)


def test_two_programs_that_store_to_one_element_are_found():
    with checked(), pytest.raises(InterpreterError, match="stores where another program stored, in out"):
        all_to_one_place[(4,)](torch.empty(2))


def test_a_store_that_writes_an_element_twice_is_found():
    with checked(), pytest.raises(InterpreterError, match="stores twice at once"):
        twice_at_once[(1,)](torch.empty(8), 16)


def test_a_load_of_what_another_program_stored_is_found():
    with checked(), pytest.raises(InterpreterError, match="loads what another program stored in x"):
        reads_its_neighbour[(4,)](torch.zeros(4))


def test_lanes_that_a_mask_leaves_out_are_nan():
    out = torch.empty(1)
    careless[(1,)](torch.ones(16), out, 10, 16)
    assert out.item() == 10  # as the interpreter has it
    with checked():
        careless[(1,)](torch.ones(16), out, 10, 16)
    assert out.isnan()


def test_shuffled_programs_run_in_another_order():
    last = set()
    for seed in range(8):
        out = torch.full((1,), -1, dtype=torch.int32)
        with checked(shuffle=seed):
            order_of_programs[(6,)](out, 6)
        last.add(out.item())
    assert len(last) > 2


def test_descriptors_are_watched_too():
    x, out = alone(40, 16), alone(40, 16)
    with checked() as report:
        by_descriptor[(3,)](x, out, 40, 16, 16)
    assert torch.equal(x, out) and (report.written(out) == 1).all()
    with checked(), pytest.raises(InterpreterError, match="outside every tensor"):
        by_descriptor[(3,)](x, out, 48, 16, 16)


def test_afterwards_the_interpreter_is_as_it_was():
    out = torch.empty(2)
    with checked(), pytest.raises(InterpreterError):
        all_to_one_place[(4,)](out)
    all_to_one_place[(4,)](out)
    assert out.tolist() == [1, 1]
