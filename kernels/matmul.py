"""The third step: a program computes one tile of a matrix product, and walks along the axis that is summed over.

Each step loads a tile of a and a tile of b and hands both to the tensor cores. Programs run in the order of their
numbers, more or less: those that share tiles should run close together, so that they find them in the cache. The
numbers therefore go down a band of GROUP rows of tiles before they move on by one column.
"""

import torch
import triton
import triton.language as tl


def reference(a, b):
    return a @ b


def matmul(a, b, BLOCK_M=128, BLOCK_N=128, BLOCK_K=32, GROUP=8, num_warps=8, num_stages=3):
    """a (M, K) times b (K, N), any strides; summed in float32, returned at a's dtype. float32 is summed as it is."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty(M, N, dtype=a.dtype, device=a.device)
    if out.numel():
        tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
        matmul_kernel[(tiles,)](
            a, b, out, a.stride(), b.stride(), M, N, K, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP=GROUP,
            num_warps=num_warps, num_stages=num_stages,
        )  # fmt: skip
    return out


@triton.jit
def matmul_kernel(
    a, b, out, a_stride, b_stride, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    m, n = tile_of(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    rows, columns, inner = (
        m * BLOCK_M + tl.arange(0, BLOCK_M),
        n * BLOCK_N + tl.arange(0, BLOCK_N),
        tl.arange(0, BLOCK_K),
    )
    a += rows.to(tl.int64)[:, None] * a_stride[0] + inner[None, :] * a_stride[1]
    b += inner[:, None] * b_stride[0] + columns.to(tl.int64)[None, :] * b_stride[1]
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        there = start + inner < K
        left = tl.load(a, mask=(rows < M)[:, None] & there[None, :], other=0.0)
        right = tl.load(b, mask=there[:, None] & (columns < N)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a += BLOCK_K * a_stride[1]
        b += BLOCK_K * b_stride[0]
    mine = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out + rows.to(tl.int64)[:, None] * N + columns[None, :], total.to(out.dtype.element_ty), mask=mine)


@triton.jit
def tile_of(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Which tile a program computes: down a band of GROUP rows of tiles, then one column on."""
    across = tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP * across) * GROUP
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - first, GROUP)  # the last band may be lower
    within = pid % (GROUP * across)
    return first + within % height, within // height
