"""The binary that a GPU would run, on a machine without one, and facts about it.

    with compile_only(90) as kernels:
        flash_attention(q, k, v)  # an ordinary launch
    facts(kernels[0][1], 90)["spill_stores"]

Triton makes another binary when a size is a multiple of 16, a pointer is aligned or an argument is 1. Therefore the
ordinary launcher is run, and what it would have launched is compiled. Only addresses, shapes and strides of its tensors
are looked at, never their elements: those of device "meta" take no memory.

Line numbers are left out of the binary, and with them the folder: the same sources give the same bytes everywhere.
"""

import inspect
import re
from contextlib import contextmanager
from functools import wraps

import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from .sass import ask, instructions

KB = 1024
SHARED_LIMIT = {80: 163 * KB, 86: 99 * KB, 89: 99 * KB, 90: 227 * KB, 100: 227 * KB, 120: 99 * KB}  # bytes a program

COUNTED = {
    "spill_stores": "STL",
    "spill_loads": "LDL",
    "hmma": "HMMA",  # tensor cores: a warp's product
    "hgmma": "HGMMA",  # sm_90: four warps'
    "utcmma": "UTC.MMA",  # sm_100: a whole program's
    "tma": "UTMA|UBLKCP",
    "setmaxreg": "USETMAXREG",  # registers move between warps: the loop is warp-specialised
}


class AbsentCard:
    """As much of Triton's driver as the compiler asks for."""

    def __init__(self, sm):
        self.sm = sm

    def get_current_target(self):
        return GPUTarget("cuda", self.sm, 32)

    def get_current_device(self):
        return f"sm_{self.sm}"  # kernels are kept by device: a card that is present has a number

    def get_current_stream(self, device):
        return None

    def get_benchmarker(self):
        raise RuntimeError(
            "compile_only launches nothing, so @triton.autotune cannot time its configurations: give it one."
        )


@contextmanager
def compile_only(sm):
    """Inside, kernels are compiled for a card and not launched. Yields a list: (name, CompiledKernel) of each launch.

    One inside another compiles for its own card, into its own list.
    """
    shared_limit(sm)
    if knobs.runtime.interpret or not isinstance(tl.cdiv, JITFunction):
        raise RuntimeError(
            "TRITON_INTERPRET is set, or was when triton was imported, so kernels are interpreted: "
            "unset it before Python starts, and compile_only can compile them."
        )
    compiled, run, active = [], JITFunction.run, driver._active  # driver.active would look for a card
    launch = inspect.unwrap(run)

    @wraps(launch)
    def compile_it(kernel, *args, **kwargs):
        compiled.append((kernel.__name__, launch(kernel, *args, **kwargs | {"warmup": True})))
        return compiled[-1][1]

    try:
        JITFunction.run = compile_it
        driver.set_active(AbsentCard(sm))
        with knobs.compilation.scope():
            knobs.compilation.disable_line_info = True
            yield compiled
    finally:
        JITFunction.run = run
        driver.set_active(active)


def shared_limit(sm):
    if sm not in SHARED_LIMIT:
        raise ValueError(f"sm is {sm!r}; known are {', '.join(map(str, SHARED_LIMIT))}: the compute capability × 10.")
    return SHARED_LIMIT[sm]


def facts(compiled, sm):
    """What is known of a CompiledKernel before it runs on a card; spills and the like are counted in instructions."""
    opcodes = [instruction.opcode for instruction in instructions(compiled)]
    return {
        "registers": registers(compiled),
        "shared_bytes": compiled.metadata.shared,
        "shared_limit": shared_limit(sm),
        **{fact: sum(bool(re.match(opcode, o)) for o in opcodes) for fact, opcode in COUNTED.items()},
        "notes": notes(compiled),
        "instructions": len(opcodes),
    }


def registers(compiled):
    """Of a thread."""
    usage = ask(knobs.nvidia.cuobjdump, compiled.asm["cubin"], "--dump-resource-usage")
    return int(re.search(r"REG:(\d+)", usage)[1])


def notes(compiled):
    """Codes of the assembler's warnings of slow code. C7511: products wait for each other, as registers are short."""
    ptx = compiled.asm["ptx"]
    card = re.search(r"\.target (\w+)", ptx)[1]
    said = ask(
        get_ptxas(compiled.metadata.target.arch), ptx.encode(), "-v", f"--gpu-name={card}", "--output-file=/dev/null"
    )
    return sorted(set(re.findall(r"\((C7\d+)\)", said)))
