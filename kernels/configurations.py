"""Tile sizes, warps and pipeline stages of each kernel, by architecture, head dimension and dtype.

Found by compiling every candidate: those that spill no registers and fit into the card's shared memory, and of these
the one with the fewest instructions a score. `python -m kernels.facts` shows what each compiles to.
"""

from dataclasses import dataclass

import torch
import triton

ARCHITECTURES = (80, 86, 90)  # by shared memory for one program: 163 KB, 99 KB, 227 KB


@dataclass(frozen=True)
class Config:
    BLOCK_N: int  # queries in a tile; in decoding, they are the query heads that share a key head, and this is not read
    BLOCK_S: int  # keys in a tile
    num_warps: int
    num_stages: int

    def options(self, D):
        return vars(self) | {"BLOCK_D": block_d(D)}


def block_d(D):
    """Columns of a tile: a matrix instruction takes a power of two, 16 at least."""
    return max(16, triton.next_power_of_2(D))


INTERPRETED = Config(32, 32, 4, 1)
# (kernel, BLOCK_D): one for each architecture. float16 and bfloat16:
HALF = {
    ("forward", 16): [(128, 64, 4, 3), (128, 64, 4, 3), (128, 128, 8, 2)],
    ("forward", 32): [(128, 128, 8, 3), (128, 128, 8, 3), (128, 128, 8, 3)],
    ("forward", 64): [(128, 64, 4, 3), (128, 64, 4, 2), (128, 128, 8, 3)],
    ("forward", 128): [(128, 64, 8, 3), (128, 64, 8, 2), (128, 128, 8, 2)],
    ("forward", 256): [(64, 32, 8, 3), (64, 32, 8, 2), (64, 64, 8, 2)],
    ("hopper", 16): [None, None, (128, 128, 8, 2)],
    ("hopper", 32): [None, None, (128, 128, 8, 3)],
    ("hopper", 64): [None, None, (128, 128, 8, 3)],
    ("hopper", 128): [None, None, (128, 128, 8, 2)],
    ("hopper", 256): [None, None, (64, 64, 8, 2)],
    ("specialised", 64): [None, None, (128, 128, 4, 2)],
    ("specialised", 128): [None, None, (128, 128, 4, 2)],
    ("queries", 16): [(64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2)],
    ("queries", 32): [(128, 64, 8, 2), (128, 64, 8, 2), (128, 64, 8, 2)],
    ("queries", 64): [(128, 64, 8, 3), (128, 64, 8, 2), (128, 64, 8, 3)],
    ("queries", 128): [(64, 64, 8, 2), (64, 64, 8, 2), (128, 64, 8, 2)],
    ("queries", 256): [(64, 32, 8, 1), (64, 32, 8, 1), (32, 64, 8, 1)],
    ("keys", 16): [(64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2)],
    ("keys", 32): [(64, 128, 8, 2), (64, 128, 8, 2), (64, 128, 8, 2)],
    ("keys", 64): [(64, 128, 8, 3), (64, 128, 8, 3), (64, 128, 8, 3)],
    ("keys", 128): [(64, 64, 8, 2), (32, 64, 8, 2), (64, 64, 8, 2)],
    ("keys", 256): [(64, 32, 8, 1), (32, 32, 8, 1), (64, 32, 8, 1)],
    ("decode", 16): [(16, 128, 4, 3), (16, 128, 4, 3), (16, 128, 4, 3)],
    ("decode", 32): [(16, 128, 4, 3), (16, 128, 4, 3), (16, 128, 4, 3)],
    ("decode", 64): [(16, 64, 4, 3), (16, 64, 4, 3), (16, 64, 4, 3)],
    ("decode", 128): [(16, 64, 4, 3), (16, 64, 4, 2), (16, 64, 4, 3)],
    ("decode", 256): [(16, 32, 4, 3), (16, 32, 4, 2), (16, 32, 4, 3)],
}

# float32, summed without tensor cores, which would round both sides to tf32:
FLOAT = {
    ("forward", 16): [(64, 32, 4, 1)] * 3,
    ("forward", 32): [(64, 32, 4, 1)] * 3,
    ("forward", 64): [(32, 32, 4, 1)] * 3,
    ("forward", 128): [(32, 32, 8, 1)] * 3,
    ("forward", 256): [(32, 16, 8, 1)] * 3,
    ("queries", 16): [(64, 32, 4, 1)] * 3,
    ("queries", 32): [(64, 32, 4, 1)] * 3,
    ("queries", 64): [(32, 32, 4, 1)] * 3,
    ("queries", 128): [(32, 32, 8, 1)] * 3,
    ("queries", 256): [(32, 16, 8, 1)] * 3,
    ("keys", 16): [(64, 32, 4, 1)] * 3,
    ("keys", 32): [(64, 32, 4, 1)] * 3,
    ("keys", 64): [(32, 32, 4, 1)] * 3,
    ("keys", 128): [(32, 32, 8, 1)] * 3,
    ("keys", 256): [(16, 16, 8, 1)] * 3,
    ("decode", 16): [(16, 64, 4, 1)] * 3,
    ("decode", 32): [(16, 64, 4, 1)] * 3,
    ("decode", 64): [(16, 32, 4, 1)] * 3,
    ("decode", 128): [(16, 32, 4, 1)] * 3,
    ("decode", 256): [(16, 16, 8, 1)] * 3,
}


def configuration(kernel, architecture, q):
    """The Config of a kernel for tensors like q on that architecture."""
    if architecture == "interpreter":
        return INTERPRETED
    return Config(*entry(kernel, architecture, q.shape[-1], q.dtype))


def listed(kernel, architecture, D, dtype):
    return entry(kernel, architecture, D, dtype) is not None


def entry(kernel, architecture, D, dtype):
    table = FLOAT if dtype == torch.float32 else HALF
    return table.get((kernel, block_d(D)), [None] * 3)[ARCHITECTURES.index(architecture)]
