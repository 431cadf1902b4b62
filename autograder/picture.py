"""Where the error lies: how wrong each entry of an output is, over its two last axes; query × key for weights."""

import html
from dataclasses import dataclass

import torch

from .trial import distance

SHADES = " ░▒▓█"
SIDE = 14  # pixels of an entry
LARGEST = 24  # entries along an axis


@dataclass(frozen=True)
class Picture:
    title: str
    error: tuple  # rows of numbers from 0 (right) to 1 (as wrong as any); the worst along the other axes

    def text(self):
        rows = ["".join(SHADES[round(4 * e)] * 2 for e in row) for row in self.error]
        return [self.title, *(f"  |{row}|" for row in rows)]

    def svg(self):
        width, height = SIDE * len(self.error[0]), SIDE * len(self.error)
        squares = "".join(
            f'<rect x="{SIDE * j}" y="{SIDE * i}" width="{SIDE}" height="{SIDE}" fill="#d55e00" fill-opacity="{e:.2f}"'
            ' stroke="currentColor" stroke-opacity="0.3"/>'
            for i, row in enumerate(self.error)
            for j, e in enumerate(row)
        )
        title = html.escape(self.title)
        return (
            f'<svg role="img" aria-label="{title}" width="{width}" height="{height}">{squares}</svg>'
            f"<br><small>{title}</small>"
        )


def picture(rows):
    """Of the first failing case that has an output to draw; weights before other outputs. None when there is none."""
    drawn = [made for row in rows if not row.ok for made in pictures(row)]
    return min(drawn, key=lambda p: not p.title.startswith("weights"), default=None)


def pictures(row):
    want, case = row.trial.reference, row.trial.case
    outputs = zip(row.trial.named.items(), row.seen.outputs, want.seen.outputs, want.tolerance, strict=False)
    for (name, axes), a, b, tolerance in () if case.gradient else outputs:
        small = a.shape == b.shape and len(axes) == b.ndim >= 2 and max(b.shape[-2:]) <= LARGEST
        if small and distance(a, b, tolerance) > 1:
            error = torch.where(a == b, 0.0, a - b).abs().nan_to_num(torch.inf).reshape(-1, *b.shape[-2:]).amax(0)
            title = f"{name} ({case.name.replace('_', ' ')}): {axes[-2]} down, {axes[-1]} across; dark is wrong"
            yield Picture(title, shades(error, tolerance))


def shades(error, tolerance):
    """0 within tolerance, else from ¼ to 1 on the scale of the largest finite error."""
    finite = error[error.isfinite()]
    top = max(finite.max().item() if finite.numel() else 0.0, tolerance)
    return tuple(
        tuple(0.0 if e <= tolerance else min(1.0, 0.25 + 0.75 * e / top) for e in row) for row in error.tolist()
    )
