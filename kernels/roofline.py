"""The roofline of a card, drawn from what was measured on it (Williams, Waterman and Patterson 2009).

Across: operations done for each byte that has to be moved at least. Up: operations a second. Under the slope the
memory sets the pace, under the flat roof the tensor cores do.
"""

import math
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 420, 64, 48
ACROSS, UP = (0.5, 20_000), (0.5, 2_000)  # operations a byte, TFLOP/s


def roofline(found):
    """An SVG: the two roofs, and a point for every row of the kernels here."""
    peak, copy = found["rates"]["matmul_tflops"], found["rates"]["copy_tbs"]
    ridge = peak / copy
    roof = [(ACROSS[0], copy * ACROSS[0]), (ridge, peak), (ACROSS[1], peak)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in roof))
    marks = [mark(intensity(row), row["tflops"], label(row)) for row in found["attention"] if row["provider"] == "ours"]
    decode = found["decode"]
    group = decode["Hq"] / decode["Hkv"]  # operations a byte: two of each query head on a number of two bytes
    marks.append(mark(group, decode["tbs"] * group, "decode"))
    card = escape(found["card"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="Roofline of {card}"><rect width="{WIDTH}" height="{HEIGHT}" '
        f'fill="#fff"/>{"".join(axes())}<polyline points="{line}" fill="none" stroke="#000" stroke-width="2"/>'
        f'{"".join(marks)}<text x="{LEFT}" y="18">{card}, {found["date"]}: {peak:.0f} TFLOP/s, '
        f"{copy:.2f} TB/s</text></svg>"
    )


def place(across, up):
    """Where a point lies, on logarithmic axes."""
    x, y = (math.log(v / low) / math.log(high / low) for v, (low, high) in ((across, ACROSS), (up, UP)))
    return LEFT + x * (WIDTH - LEFT - 16), HEIGHT - BOTTOM - y * (HEIGHT - BOTTOM - 32)


def intensity(row):
    """Operations a byte, when q, k, v and the output, and in the backward pass their gradients, are moved once."""
    operations = 4 * row["N"] * row["D"] / (2 if row["causal"] else 1) * (2.5 if row["pass"] == "backward" else 1)
    return operations / (2 * row["D"] * (8 if row["pass"] == "backward" else 4))


def label(row):
    return f"{row['pass']} D {row['D']} N {row['N']} {'causal' if row['causal'] else 'full'}"


def mark(across, up, name):
    x, y = place(across, up)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#0072b2"><title>{name}: {up:.0f} TFLOP/s</title></circle>'


def axes():
    for across in (1, 10, 100, 1000, 10_000):
        x, _ = place(across, UP[0])
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="32" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{across}</text>'
    for up in (1, 10, 100, 1000):
        _, y = place(ACROSS[0], up)
        yield f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{up}</text>'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">operations a byte moved</text>'
    yield f'<text x="14" y="{HEIGHT / 2}" transform="rotate(-90 14 {HEIGHT / 2})" text-anchor="middle">TFLOP/s</text>'
