"""What the attention kernels share: where a tile of a head's rows begins, and how it is loaded and stored.

A tile has BLOCK_D columns, a power of two; those from D on come as 0 and are never stored. A tile may begin more than
2³¹ elements away, so that its place is reckoned in 64 bits; within it 32 bits do, and cost fewer registers.

Strides are handed to a kernel in units of eight elements wherever they are whole such units. Multiplied by 8 again
there, they tell the compiler that rows begin on multiples of 16 bytes, which it cannot see of a stride of 40: only then
does it copy 16 bytes by one instruction.
"""

import triton
import triton.language as tl


def strides(*tensors):
    """The unit, and the strides of each tensor's leading three axes in it."""
    unit = 1 if any(step % 8 for x in tensors for step in x.stride()[:-1]) else 8
    return unit, [tuple(step // unit for step in (*x.stride()[:-1], 0)[:3]) for x in tensors]


@triton.jit
def elements(stride, UNIT: tl.constexpr):
    """Strides in elements; rows lie less than 2³¹ apart, sequences and heads perhaps more."""
    return tl.cast(stride[0], tl.int64) * UNIT, tl.cast(stride[1], tl.int64) * UNIT, stride[2] * UNIT


@triton.jit
def row(x, stride, b, h, n):
    """Where row n of a head begins."""
    return x + b * stride[0] + h * stride[1] + tl.cast(n, tl.int64) * stride[2]


@triton.jit
def load(x, stride, rows, count, D: tl.constexpr, BLOCK_D: tl.constexpr, RAGGED: tl.constexpr):
    """The tile that begins at x, (rows, BLOCK_D). RAGGED: rows from `count` on are not there, and come as 0."""
    d = tl.arange(0, BLOCK_D)
    there = x + rows[:, None] * stride[2] + d[None, :]
    if RAGGED:
        return tl.load(there, mask=(rows < count)[:, None] & (d < D)[None, :], other=0.0)
    if D < BLOCK_D:
        return tl.load(there, mask=(d < D)[None, :], other=0.0)
    return tl.load(there)


@triton.jit
def store(x, stride, rows, count, values, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """Store the first `count` rows, rounded to the dtype of x."""
    d = tl.arange(0, BLOCK_D)
    there = x + rows[:, None] * stride[2] + d[None, :]
    tl.store(there, values.to(x.dtype.element_ty), mask=(rows < count)[:, None] & (d < D)[None, :])
