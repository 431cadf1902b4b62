"""The interpreter gives a GPU's numbers and refuses what a GPU refuses. Each kernel here is one line of arithmetic."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpreterError

from kernels.check.interpreter import gpu_like

gpu_like()
X, Y = torch.randn(2, 32, generator=torch.Generator().manual_seed(0))


@triton.jit
def arithmetic(x, y, out, OP: tl.constexpr):
    i = tl.arange(0, 32)
    a, b = tl.load(x + i), tl.load(y + i)
    if OP == "sum":
        c = a + b
    elif OP == "product":
        c = a * b
    elif OP == "exp":
        c = tl.exp(a)
    elif OP == "fma":
        c = tl.fma(a, b, a)
    elif OP == "abs":
        c = tl.abs(a)
    elif OP == "less":
        c = tl.where(a < b, a, b)
    elif OP == "maximum":
        c = tl.maximum(a, b)
    else:
        c = a.to(tl.float32)
    tl.store(out + i, c)


def done(operation, x, y, dtype=None):
    out = torch.empty(32, dtype=dtype or x.dtype)
    arithmetic[(1,)](x, y, out, operation)
    return out


@pytest.mark.parametrize(
    ("operation", "torchs"),
    [("sum", torch.add), ("product", torch.mul), ("less", torch.minimum), ("maximum", torch.maximum)],
)
def test_arithmetic_of_bfloat16_is_pytorchs(operation, torchs):
    x, y = X.bfloat16(), Y.bfloat16()
    assert torch.equal(done(operation, x, y), torchs(x, y))


def test_functions_of_bfloat16_are_rounded_once():
    x, y = X.bfloat16(), Y.bfloat16()
    assert torch.equal(done("fma", x, y), (x.float() * y.float() + x.float()).bfloat16())
    assert torch.equal(done("abs", x, y), x.abs())


def test_an_exponential_of_bfloat16_is_refused_as_the_compiler_refuses_it():
    with pytest.raises(InterpreterError, match="fp32"):
        done("exp", X.bfloat16(), Y.bfloat16())


def test_rounding_to_bfloat16_is_to_the_nearest_even():
    ties = torch.tensor([1 + k * 2**-8 for k in range(32)])  # every second lies half-way
    assert torch.equal(done("cast", ties, ties, torch.bfloat16), ties.bfloat16())
    odd = torch.tensor([np.inf, -np.inf, np.nan, 3.4e38] * 8)
    assert torch.equal(done("cast", odd, odd, torch.bfloat16).nan_to_num(7), odd.bfloat16().nan_to_num(7))


def test_a_maximum_with_nan_is_the_number():
    x = X.clone()
    x[::2] = torch.nan
    assert torch.equal(done("maximum", x, Y)[::2], Y[::2])


@triton.jit
def product(a, b, out, K: tl.constexpr, PRECISION: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, K)
    left, right = tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * 16 + i[None, :])
    tl.store(out + i[:, None] * 16 + i[None, :], tl.dot(left, right, input_precision=PRECISION))


def multiplied(dtype=torch.float32, precision="tf32", K=64):
    draw = torch.Generator().manual_seed(1)
    a, b, out = (
        torch.randn(16, K, generator=draw).to(dtype),
        torch.randn(K, 16, generator=draw).to(dtype),
        X.new_empty(16, 16),
    )
    product[(1,)](a, b, out, K, precision)
    exact = a.double() @ b.double()
    return ((out - exact).abs().max() / exact.abs().max()).item()


def test_products_of_bfloat16_are_summed_in_float32():
    assert multiplied(torch.bfloat16) < 1e-6


def test_products_of_float32_lose_what_tf32_loses_unless_asked_otherwise():
    assert 1e-4 < multiplied() < 1e-3
    assert multiplied(precision="ieee") < 1e-6 and multiplied(precision="tf32x3") < 1e-6


def test_a_product_over_fewer_than_sixteen_is_refused():
    with pytest.raises((InterpreterError, AssertionError), match="16"):
        multiplied(torch.float16, K=8)


@triton.jit
def asserting(x, out):
    i = tl.arange(0, 32)
    a = tl.load(x + i)
    tl.device_assert(a < 2, "an entry is 2 or more")
    tl.store(out + i, a)


def test_device_assert_stops_with_its_message():
    asserting[(1,)](X.clamp(max=1), X.clone())
    with pytest.raises(InterpreterError, match="an entry is 2 or more"):
        asserting[(1,)](X + 3, X.clone())


@triton.jit
def squares(out, n):
    i = tl.arange(0, 2)
    tl.store(out + i, (i + n) * (i + n))


def test_an_overflow_of_int32_is_an_error():
    squares[(1,)](torch.empty(2, dtype=torch.int32), 40_000)
    with pytest.raises(InterpreterError, match="overflow"):
        squares[(1,)](torch.empty(2, dtype=torch.int32), 50_000)


@triton.jit
def nothing(out):
    tl.store(out, 1.0)


def test_a_grid_that_no_gpu_takes_is_refused():
    with pytest.raises(ValueError, match="65535"):
        nothing[(1, 65_536)](torch.empty(1))


@triton.jit
def counted(bound, out):
    total = 0
    for i in range(0, tl.load(bound)):
        total += i
    tl.store(out, total)


def test_a_loops_bound_may_come_from_a_tensor():
    out = torch.empty(1, dtype=torch.int32)
    counted[(1,)](torch.tensor([5], dtype=torch.int32), out)
    assert out.item() == 10
