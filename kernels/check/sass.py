"""The instructions of a compiled kernel (SASS, the GPU's machine code), and what a trip through its hot loop costs.

The disassembler comes with Triton. A loop is found as compilers find it: a jump back to an instruction that every way
into the loop passes. Mere position would mislead, for blocks that are seldom run are put behind the end of the code and
jump back from there.
"""

import re
import subprocess
import tempfile
from collections import defaultdict, namedtuple

from triton import knobs

LABEL = re.compile(r"(\.L_\w+):")
CODE = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(@\S+)?\s*([A-Z][\w.]*)\s*([^;]*);")
TARGET = re.compile(r"`\((\.L_\w+)\)")

Instruction = namedtuple("Instruction", "opcode then")  # then: the positions of those that may come next


def ask(tool, contents, *options):
    """What one of NVIDIA's tools says about a file with these contents."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(contents)
        file.flush()
        done = subprocess.run([tool.path, *options, file.name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def instructions(compiled):
    places, code = {}, []
    for line in ask(knobs.nvidia.nvdisasm, compiled.asm["cubin"], "-c").splitlines():
        if label := LABEL.match(line):
            places[label[1]] = len(code)
        elif instruction := CODE.match(line):
            code.append(instruction.groups())
    return [Instruction(line[1], successors(i, *line, places)) for i, line in enumerate(code)]


def successors(i, predicate, opcode, operands, places):
    name = opcode.split(".")[0]
    jump = [places[TARGET.search(operands)[1]]] if name == "BRA" else []
    always = predicate is None and (operands.startswith("`") if jump else name in ("EXIT", "RET", "BRX"))
    return jump if always else [*jump, i + 1]


def hot_loops(compiled):
    """The innermost loops that hold tensor-core instructions, each a list of Instructions."""
    code = instructions(compiled)
    bodies = [body for body in loops(code) if any(is_tensor(code[i].opcode) for i in body)]
    innermost = [body for body in bodies if not any(other < body for other in bodies)]
    return [[code[i] for i in sorted(body)] for body in innermost]


def loops(code):
    """The positions in each loop, as a set: whatever leads to a jump back without passing where it goes, the head."""
    before, jumps_back = defaultdict(list), defaultdict(list)
    for i, instruction in enumerate(code):
        for j in instruction.then:
            before[j].append(i)
            if j <= i:
                jumps_back[j].append(i)
    for head, tails in jumps_back.items():
        body, waiting = {head}, tails
        while waiting:
            i = waiting.pop()
            if i not in body:
                body.add(i)
                waiting += before[i]
        if all(before[i] for i in body - {head}):  # else the entry is among them: a way in that misses the head
            yield body


def is_tensor(opcode):
    return "MMA" in opcode.split(".")[0]


def cost(loop, warps):
    """Instructions of a trip, and the cycles for which `warps` warps that make it keep each unit of a multiprocessor.

    A cycle is 2048 flop of HMMA (A100) or 4096 of HGMMA (H100) on 16-bit numbers, 16 exponentials, or 4 instructions.
    The units work side by side: a trip takes the largest of the three at least, and their sum if nothing overlaps.
    """
    return {
        "instructions": len(loop),
        "tensor": warps * sum(tensor_cycles(i.opcode) for i in loop),
        "exp2": warps * 2 * sum(i.opcode.startswith("MUFU") for i in loop),
        "issue": warps / 4 * len(loop),
    }


def tensor_cycles(opcode):
    """Of one warp. HMMA.168K is a product of 16 × 8 × K; HGMMA.64xNxK is shared by four warps, and K fills 32 bytes."""
    if not is_tensor(opcode):
        return 0
    if size := re.match(r"HGMMA\.64x(\d+)x", opcode):
        return int(size[1]) / 8
    if size := re.match(r"HMMA\.168(\d+)\.", opcode):
        return int(size[1]) / 8 * (2 if "TF32" in opcode else 1)
    raise ValueError(
        f"cost cannot read off the name {opcode} how long it takes, as it can for HMMA and HGMMA: "
        "compile for another card than sm_100."
    )
