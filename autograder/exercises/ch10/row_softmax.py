"""Softmax of each row as a Triton kernel, run in Triton's interpreter."""

import torch
import triton
import triton.language as tl

from autograder.exercise import exercise


@exercise(
    "ch10",
    points={"values": 2, "stability": 1, "kernel": 1},
    takes="x: M N",
    returns="weights: M N",
    see="10-a-flash-kernel#row-softmax",
)
def row_softmax(x):
    """Each row's exponentials over their sum, its largest entry taken off first."""
    rows = [(row - row.max()).exp() for row in x]
    return torch.stack([e / e.sum() for e in rows])


@row_softmax.case("values")
def ragged_rows(draw):  # lengths that are no power of two: the last lanes hang over
    return {"x": draw.normal(3, draw.choice((7, 13, 21)))}


@row_softmax.case("values")
def rows_of_a_wider_matrix(draw):  # a row's start is a stride away, not a length
    return {"x": draw.normal(3, 29)[:, 3 : 3 + draw.choice((9, 11, 19))]}


@row_softmax.case("values")
def negative_rows(draw):  # padding counted as 0 outweighs them
    return {"x": draw.normal(2, 11, mean=-6.0)}


@row_softmax.case("stability")
def rows_to_ten_thousand(draw):
    return {"x": draw.normal(3, 13, scale=3.0) + 1e4 * draw.normal(3, 1)}


@row_softmax.case("kernel", launches=True)
def a_kernel_ran(draw):
    return {"x": draw.normal(2, 10)}


@triton.jit
def softmax_kernel(x, out, stride, N, other, MAXIMUM: tl.constexpr, NORMALISE: tl.constexpr, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    inside = columns < N
    values = tl.load(x + row * stride + columns, mask=inside, other=other)
    if MAXIMUM:
        values -= tl.max(values, 0)
    e = tl.exp(values)
    if NORMALISE:
        e /= tl.sum(e, 0)
    tl.store(out + row * N + columns, e, mask=inside)


def launch(x, *, other=-float("inf"), maximum=True, normalise=True, contiguous=False, transpose=False):
    """One launcher with a knob for each slip."""
    x = x.mT.contiguous() if transpose else x
    out, stride = torch.empty(x.shape, dtype=x.dtype, device=x.device), x.shape[1] if contiguous else x.stride(0)
    softmax_kernel[(len(x),)](x, out, stride, x.shape[1], other, maximum, normalise, triton.next_power_of_2(x.shape[1]))
    return out.mT if transpose else out


slip = row_softmax.slips(launch)
slip("padding_counted", "Lanes beyond the row are loaded as 0, and e⁰ = 1 joins the sum. Load them as −∞.", other=0.0)
slip("no_maximum", "exp overflows. Take the row's largest entry off first.", maximum=False)
slip("not_normalised", "The exponentials are not divided by their sum.", normalise=False)
slip("stride_taken_for_granted", "Rows are taken to lie one length apart. They lie x.stride(0) apart.", contiguous=True)
slip("over_columns", "You normalise each column. Normalise each row.", transpose=True)


@row_softmax.mistake
def without_a_kernel(x):
    """The values are right, but no Triton kernel ran: the library's softmax was called."""
    return x.softmax(-1)


@triton.jit
def two_pass_kernel(x, out, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest, total = -float("inf"), 0.0
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + columns, mask=columns < N, other=-float("inf"))
        higher = tl.maximum(largest, tl.max(values, 0))
        total = total * tl.exp(largest - higher) + tl.sum(tl.exp(values - higher), 0)
        largest = higher
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * stride + columns, mask=columns < N, other=0.0)
        tl.store(out + row * N + columns, tl.exp(values - largest) / total, mask=columns < N)


@triton.jit
def many_rows_kernel(x, out, stride, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    values = tl.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=-1e30)
    e = tl.exp(values - tl.max(values, 1)[:, None])
    e = tl.where(columns[None, :] < N, e, 0.0)
    tl.store(out + rows[:, None] * N + columns[None, :], e / tl.sum(e, 1)[:, None], mask=inside)


@row_softmax.right
def two_passes(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    two_pass_kernel[(len(x),)](x, out, x.stride(0), x.shape[1], BLOCK=8)
    return out


@row_softmax.right
def rows_by_the_four(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    many_rows_kernel[(triton.cdiv(len(x), 4),)](
        x, out, x.stride(0), *x.shape, ROWS=4, BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return out
