"""Triton's interpreter, brought to the numbers that a GPU gives and to what a GPU refuses.

The interpreter runs a kernel with numpy, one program after another. As it comes, it differs from a card:

    bfloat16          is held as bits in uint16, and arithmetic works on the bits; rounding to it cuts off
    float32 products  are exact, where tensor cores round both sides to tf32 unless asked for "ieee" or "tf32x3"
    maximum, minimum  of a number and NaN is NaN, where a card gives the number
    device_assert     does nothing, and neither do checks for an overflow of int32
    small products    are computed, where a matrix instruction takes at least 16 along the axis summed over
    the grid          may be of any size, where a card takes 65 535 at most along its second and third axis

`gpu_like` mends these. It also lets Triton 3.6 read a loop's bound from a tensor under numpy 2.4 (triton#9171).
"""

from dataclasses import replace

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.runtime.interpreter import InterpreterBuilder as Builder
from triton.runtime.interpreter import TensorHandle

CASTS = ("si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc", "int_cast")
BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
GRID = 65_535
PLAIN = {}  # what stood in Triton


def gpu_like():
    """Mend the interpreter of this process, once."""
    if PLAIN:
        return
    mended = (binary_op, unary_op, ternary_op, cast_impl, create_fp_to_fp, create_fma, create_fabs, create_dot)
    for function in (*mended, create_assert, set_grid_dim):
        PLAIN[function.__name__] = getattr(Builder, function.__name__)
        setattr(Builder, function.__name__, function)
    for name in CASTS:
        setattr(Builder, f"create_{name}", lambda self, source, kind, *_: self.cast_impl(source, kind))
    Builder.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
    Builder.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)
    made = interpreter.interpreter_builder
    made.options = replace(made.options, debug=True)  # device_assert, and overflow of int32
    made.codegen_fns["min_dot_size"] = lambda left, right: (1, 1, 32 if left.scalar.primitive_bitwidth == 8 else 16)
    PLAIN["_patch_lang_tensor"] = interpreter._patch_lang_tensor
    interpreter._patch_lang_tensor = patch_tensor


# --- numbers ----------------------------------------------------------------------------------------------------------


def from_bfloat16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(x):
    """To the nearest, ties to even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded.astype(np.uint16))


def to_tf32(x):
    """To ten bits of mantissa, ties away from 0, as cvt.rna.tf32 does."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)


def is_bfloat16(handle):
    return isinstance(handle, TensorHandle) and handle.dtype.scalar == tl.bfloat16


def widened(handle):
    return TensorHandle(from_bfloat16(handle.data), tl.float32) if is_bfloat16(handle) else handle


def narrowed(data):
    return TensorHandle(to_bfloat16(data), tl.bfloat16)


# --- what takes the place of Triton's own -----------------------------------------------------------------------------


def binary_op(self, left, right, op):
    if not is_bfloat16(left) or op in BITWISE:
        return PLAIN["binary_op"](self, left, right, op)
    result = op(from_bfloat16(left.data), from_bfloat16(right.data))
    return TensorHandle(result, tl.bfloat16) if result.dtype == bool else narrowed(result)


def unary_op(self, x, op):
    return narrowed(op(from_bfloat16(x.data))) if is_bfloat16(x) else PLAIN["unary_op"](self, x, op)


def ternary_op(self, x, y, z, op):
    if not is_bfloat16(z) or op is np.where:
        return PLAIN["ternary_op"](self, x, y, z, op)
    return narrowed(op(*(from_bfloat16(one.data) for one in (x, y, z))))


def create_fma(self, x, y, z):
    if not is_bfloat16(z):
        return PLAIN["create_fma"](self, x, y, z)
    x, y, z = (from_bfloat16(one.data) for one in (x, y, z))
    return narrowed(x * y + z)


def create_fabs(self, x):
    return TensorHandle(x.data & np.uint16(0x7FFF), tl.bfloat16) if is_bfloat16(x) else PLAIN["create_fabs"](self, x)


def cast_impl(self, source, kind):
    if source.dtype.scalar == kind.scalar:
        return source
    if kind.scalar == tl.bfloat16:
        return narrowed(source.data.astype(np.float32))
    source = widened(source)
    return source if source.dtype.scalar == kind.scalar else PLAIN["cast_impl"](self, source, kind)


def create_fp_to_fp(self, source, kind, rounding):
    if rounding is None and tl.bfloat16 in (source.dtype.scalar, kind.scalar):
        return self.cast_impl(source, kind)
    return PLAIN["create_fp_to_fp"](self, source, kind, rounding)


def create_dot(self, a, b, total, precision, imprecise):
    tf32 = a.dtype.scalar == tl.float32 and str(precision).upper().endswith("TF32")
    a, b = (TensorHandle(to_tf32(x.data), tl.float32) if tf32 else widened(x) for x in (a, b))
    return PLAIN["create_dot"](self, a, b, total, precision, imprecise)


def create_assert(self, condition, message):
    if not np.all(condition.data):
        raise AssertionError(message)


def set_grid_dim(self, *size):
    if max(size[1:]) > GRID:
        raise ValueError(f"the grid is {size}; a GPU takes at most {GRID} along its second and third axis")
    PLAIN["set_grid_dim"](self, *size)


def patch_tensor(tensor, scope):
    PLAIN["_patch_lang_tensor"](tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
