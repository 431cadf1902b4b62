"""python -m kernels.facts [--json]: what every shipped kernel compiles to, on a machine with no GPU.

A line for each kernel, architecture, head dimension, dtype, causal or not: registers of a thread, registers spilled,
shared memory beside the card's limit, matrix instructions, and what the assembler notes.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import torch

from .backward import backward
from .check.compiled import compile_only, facts
from .configurations import ARCHITECTURES, configuration, listed
from .decode import decode
from .forward import forward
from .hopper import forward as hopper_forward

KERNELS = {
    "forward": "forward_kernel",
    "hopper": "hopper_kernel",
    "specialised": "hopper_kernel",
    "queries": "queries_kernel",
    "keys": "keys_kernel",
    "decode": "decode_kernel",
}
HEAD_DIMS = (16, 32, 40, 64, 80, 96, 128, 256)
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
SIZES = {"B": 2, "H": 8, "N": 1024}  # for which it is compiled: multiples of 16, as they nearly always are


def shipped():
    """(kernel, architecture, head dimension, dtype, causal) of all; decoding is never causal."""
    every = product(KERNELS, ARCHITECTURES, HEAD_DIMS, DTYPES, (False, True))
    return [one for one in every if listed(*one[:4]) and (one[0] != "decode" or not one[-1])]


def measure(kernel, architecture, D, dtype, causal):
    """The row of one configuration."""
    B, H, N = SIZES.values()
    q, k, v, out, d_out = (torch.empty(B, H, N, D, dtype=dtype, device="meta") for _ in range(5))
    config, scale = configuration(kernel, architecture, q), D**-0.5
    with compile_only(architecture) as compiled:
        if kernel == "forward":
            forward(q, k, v, causal, scale, config)
        elif kernel in ("hopper", "specialised"):
            hopper_forward(q, k, v, causal, scale, config, specialised=kernel == "specialised")
        elif kernel == "decode":
            lengths = torch.empty(B, dtype=torch.int32, device="meta")
            decode(q[:, :, 0], k, v, lengths, scale, config, programs=264)
        else:
            lse = torch.empty(B, H, N, device="meta")
            backward(q, k, v, out, lse, d_out, causal, scale, config, config)
    found = facts(dict(compiled)[KERNELS[kernel]], architecture)
    name = str(dtype).removeprefix("torch.")
    about = {"kernel": kernel, "arch": f"sm_{architecture}", "head_dim": D, "dtype": name, "causal": causal}
    return about | found


def rows(wanted):
    """The rows of many, in as many processes as there are cores."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        return list(pool.map(measure, *zip(*wanted, strict=True)))


def table(found):
    columns = list(found[0])
    lines = [[str(row[column]) for column in columns] for row in found]
    widths = [max(map(len, (column, *values))) for column, *values in zip(columns, *lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in [columns, *lines])


def main():
    parser = argparse.ArgumentParser(prog="python -m kernels.facts", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    found = rows(shipped())
    print(json.dumps(found, indent=1) if parser.parse_args().json else table(found))


if __name__ == "__main__":
    main()
