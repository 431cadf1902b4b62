"""python -m kernels.bench [--json] [--out FOLDER]: the kernels verified and timed on one GPU, beside PyTorch's own.

Needs torch 2.10 or later and Triton 3.6 or 3.7, and takes a few minutes. Every time is the median of many runs. What
counts are ratios to what was measured in the same run: PyTorch's flash and cuDNN backends, each forced, and the card's
own rates of multiplying and copying. Operations are counted as is usual: 4 B H N S D for the forward pass, half of
that where it is causal, and 2.5 times as much for the backward pass.
"""

import argparse
import contextlib
import datetime
import json
import sys
from pathlib import Path

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from triton.testing import do_bench

from .attention import flash_attention, flash_attention_decode
from .roofline import roofline
from .verify import unchosen, verify

TOKENS, WIDTH = 16_384, 2048  # B · N, and H · D
LENGTHS = (1024, 2048, 4096, 8192, 16_384)
PROVIDERS = {"ours": None, "flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
OTHERS = ("pointers", "specialised")  # forward kernels that flash_attention might choose on Hopper, and does not yet
TARGETS = {  # what is measured: the ratio that it should reach
    "forward D64 full / flash": 1.25,
    "forward D64 causal / flash": 1.17,
    "forward D128 full / flash": 1.3,
    "forward D128 causal / flash": 1.3,
    "forward D128 full / cudnn": 0.8,
    "forward D128 causal / cudnn": 0.8,
    "backward D64 full / flash": 1.0,
    "backward D64 causal / flash": 1.0,
    "backward D128 full / flash": 1.0,
    "backward D128 causal / flash": 1.0,
    "decode / copy": 0.85,
}
LEADERBOARD = 6.5  # milliseconds for forward and backward at B 1, H 16, D 64, N 16 384, causal


def median(run):
    """Milliseconds."""
    return do_bench(run, quantiles=[0.5])


def rates(device):
    """What the card does at best: TFLOP/s of a bfloat16 product, TB/s of a copy, read and written."""
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))  # zeros would be faster
    x, y = (torch.empty(2**30, device=device, dtype=torch.uint8) for _ in range(2))
    return {
        "matmul_tflops": 2 * 8192**3 / median(lambda: a @ b) / 1e9,
        "copy_tbs": 2 * 2**30 / median(lambda: y.copy_(x)) / 1e9,
    }


def attention_rows(device):
    """Forward and backward of each provider on each shape. A backend that refuses a shape has no row; ours may not."""
    for D in (64, 128):
        for causal in (False, True):
            for N in LENGTHS:
                shape = TOKENS // N, WIDTH // D, N, D
                q, k, v, d_out = (torch.randn(shape, device=device, dtype=torch.bfloat16) for _ in range(4))
                for provider in PROVIDERS:
                    with contextlib.suppress(*() if provider == "ours" else (RuntimeError,)):
                        yield from passes(provider, q, k, v, d_out, causal)
                for name, run in unchosen(q, k, v, causal):
                    yield row("forward", name, q, causal, median(run))


def passes(provider, q, k, v, d_out, causal):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    run = attention(provider, q, k, v, causal)
    with torch.no_grad():
        forward = median(run)
    out = run()
    backward = median(lambda: torch.autograd.grad(out, (q, k, v), d_out, retain_graph=True))
    yield row("forward", provider, q, causal, forward)
    yield row("backward", provider, q, causal, backward)


def row(direction, provider, q, causal, ms):
    B, H, N, D = q.shape
    operations = 4 * B * H * N * N * D / (2 if causal else 1) * (2.5 if direction == "backward" else 1)
    about = {"pass": direction, "provider": provider, "B": B, "H": H, "N": N, "D": D, "causal": causal}
    return {**about, "ms": ms, "tflops": operations / ms / 1e9}


def attention(provider, q, k, v, causal):
    def run():
        if provider == "ours":
            return flash_attention(q, k, v, causal)
        with sdpa_kernel(PROVIDERS[provider]):
            return scaled_dot_product_attention(q, k, v, is_causal=causal)

    return run


def decode_row(device, B=16, Hq=64, Hkv=8, S=16_384, D=128):
    """One step over a cache of a gigabyte."""
    q = torch.randn(B, Hq, D, device=device, dtype=torch.bfloat16)
    k, v = (torch.randn(B, Hkv, S, D, device=device, dtype=torch.bfloat16) for _ in range(2))
    lengths = torch.full((B,), S, device=device)
    ms = median(lambda: flash_attention_decode(q, k, v, lengths))
    read = 2 * k.numel() * k.element_size()
    return {"B": B, "Hq": Hq, "Hkv": Hkv, "S": S, "D": D, "ms": ms, "tbs": read / ms / 1e9}


def leaderboard(device):
    """Milliseconds of forward and backward together, on the shape of a course's contest (Stanford CS336, 2025)."""
    q, k, v, d_out = (torch.randn(1, 16, 16_384, 64, device=device, dtype=torch.bfloat16) for _ in range(4))
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    return median(lambda: torch.autograd.grad(flash_attention(q, k, v, True), (q, k, v), d_out))


def ratios(found):
    """Measured beside each target: the geometric mean over the lengths from 4096 on."""
    for name in TARGETS:
        if name == "decode / copy":
            yield name, found["decode"]["tbs"] / found["rates"]["copy_tbs"]
            continue
        (direction, D, kind, _, rival) = name.split()
        of = {"pass": direction, "D": int(D[1:]), "causal": kind == "causal"}
        rows = [row for row in found["attention"] if row["N"] >= 4096 and of.items() <= row.items()]
        ours, theirs = ({r["N"]: r["tflops"] for r in rows if r["provider"] == p} for p in ("ours", rival))
        both = [ours[n] / theirs[n] for n in ours if n in theirs]
        yield name, torch.tensor(both).log().mean().exp().item() if both else None


def measured(device):
    properties = torch.cuda.get_device_properties(device)
    found = {
        "date": datetime.date.today().isoformat(),
        "card": properties.name,
        "versions": {"torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]},
        "rates": rates(device),
        "attention": list(attention_rows(device)),
        "decode": decode_row(device),
        "leaderboard_ms": leaderboard(device),
    }
    return found | {"ratios": dict(ratios(found))}


def text(found):
    """The rates, a line for each shape, and what was to be reached."""
    lines = [f"{found['card']}, {found['date']}, " + ", ".join(f"{k} {v}" for k, v in found["versions"].items())]
    lines += [f"{name} {value:.2f}" for name, value in found["rates"].items()]
    names = {name: max(8, len(name) + 2) for name in (*PROVIDERS, *OTHERS)}  # and their widths
    lines += ["", "TFLOP/s   D    causal     N" + "".join(f"{name:>{width}}" for name, width in names.items())]
    shapes = dict.fromkeys((row["pass"], row["D"], row["causal"], row["N"]) for row in found["attention"])
    for direction, D, causal, N in shapes:
        of = {"pass": direction, "D": D, "causal": causal, "N": N}
        by = {row["provider"]: row["tflops"] for row in found["attention"] if of.items() <= row.items()}
        cells = "".join(f"{by[name]:{n}.0f}" if name in by else f"{'–':>{n}}" for name, n in names.items())
        lines.append(f"{direction:9} {D:<4} {causal!s:7}{N:>6}{cells}")
    lines += [
        "",
        f"decode {found['decode']['tbs']:.2f} TB/s; contest {found['leaderboard_ms']:.2f} ms (at most {LEADERBOARD})",
    ]
    for name, ratio in found["ratios"].items():
        said = "not measured" if ratio is None else f"{ratio:.2f}, wanted {TARGETS[name]}"
        lines.append(f"{name:32} {said}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="python -m kernels.bench", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument("--out", type=Path, help="also write measurements.json, table.txt and roofline.svg here")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("There is no CUDA GPU here; the times are those of one. python -m kernels.facts needs none.")
    device = torch.device("cuda")
    if faults := verify(device):
        sys.exit("\n".join(faults))
    found = measured(device)
    print(json.dumps(found, indent=1) if options.json else text(found))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "measurements.json").write_text(json.dumps(found, indent=1) + "\n")
        (options.out / "table.txt").write_text(text(found) + "\n")
        (options.out / "roofline.svg").write_text(roofline(found))


if __name__ == "__main__":
    main()
