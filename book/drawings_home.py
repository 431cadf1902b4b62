"""The picture of the home page: one operation, and where each chapter works on it."""

from figures import INK, KEY, MASK, PAGE, QUERY, SHADE, VALUE, WEIGHT, arrow, canvas
from matplotlib.patches import Circle, Rectangle

TOKENS = 6
PINS = {
    1: (12.55, 4.6),
    2: (2.9, 5.0),
    3: (12.4, 2.1),
    4: (6.1, 3.4),
    5: (10.8, 3.7),
    6: (8.0, 1.45),
    7: (10.4, 5.6),
    8: (5.6, 8.1),
    9: (7.75, 6.75),
    10: (9.7, 11.3),
}


def the_course(written):
    """From the input to the output; a pin for each chapter, full for those that are `written`."""
    fig, ax = canvas(15, 12.2)
    for name, at, columns, colour, cell in (
        ("X", (0.4, 4.5), 4, INK, 0.5),
        ("Q", (4.2, 1.0), 2, QUERY, 0.5),
        ("K", (4.2, 4.9), 2, KEY, 0.5),
        ("V", (4.2, 8.6), 2, VALUE, 0.5),
        ("output", (13.6, 4.6), 2, INK, 0.5),
    ):
        label(ax, at[0] + columns * cell / 2, at[1] - 0.35, name)
        grid(ax, at, columns, cell, lambda i, j, colour=colour: (colour, 0.15 if colour == INK else 0.4))
    for shift in (0.5, 0.25):  # two more heads, behind the first
        right, top = 11.9 + shift, 2.6 - shift
        ax.plot(
            [7.4 + shift, 7.4 + shift, right, right, 11.9],
            [2.6, top, top, 7.1 - shift, 7.1 - shift],
            color=WEIGHT,
            lw=1,
        )
    grid(ax, (7.4, 2.6), TOKENS, 0.75, read)
    frame(ax, (8.9, 5.6), 1.5, 1.5, INK, "-", 2.4)  # a tile
    label(ax, 9.7, 1.45, "N × S")
    frame(ax, (3.8, 4.0), 1.8, 7.9, INK, ":", 1.3)  # what a cache keeps
    frame(ax, (6.7, 0.7), 6.3, 10.6, INK, "--", 1.3)  # what a kernel does
    for start, end in (
        ((2.6, 6.0), (4.0, 2.5)),
        ((2.6, 6.0), (4.0, 6.4)),
        ((2.6, 6.0), (4.0, 10.1)),
        ((5.4, 2.5), (7.2, 3.6)),
        ((5.4, 6.4), (7.2, 5.4)),
        ((5.4, 10.1), (13.4, 7.0)),
        ((12.0, 4.9), (13.4, 5.7)),
    ):
        arrow(ax, start, end)
    for number, at in PINS.items():
        pin(ax, number, at, number in written)
    return fig, (
        "The input X leads to Q, K and V. Q and K lead to a matrix of weights with more heads behind it; "
        "the weights and V lead to the output. Numbered pins show where the chapters work: 1 where values are mixed "
        "by weights; 2 where X becomes Q, K and V; 3 at the heads; 4 on the way of Q and K; 5 in the masked half of "
        "the matrix; 6 at its size, N by S; 7 at a tile of it; 8 at a frame around K and V; 9 at the pattern in it; "
        "10 at a frame around all that lies between Q, K and V and the output. "
        f"Full pins are chapters you can read: {', '.join(map(str, written))}."
    )


def read(i, j):
    """The shade of a weight: none above the diagonal, full on it and in the first column."""
    if j > i:
        return MASK, 0.12
    return WEIGHT, SHADE if j in (i, 0) else 0.2


def grid(ax, at, columns, cell, face):
    for i in range(TOKENS):
        for j in range(columns):
            colour, alpha = face(i, j)
            corner = (at[0] + cell * j, at[1] + cell * i)
            ax.add_patch(Rectangle(corner, cell, cell, facecolor=(colour, alpha), edgecolor=colour, linewidth=0.7))


def frame(ax, at, width, height, colour, style, line):
    ax.add_patch(Rectangle(at, width, height, fill=False, edgecolor=colour, linestyle=style, linewidth=line))


def label(ax, x, y, text):
    ax.text(x, y, text, ha="center", va="center", weight="bold")


def pin(ax, number, at, written):
    """A number on a disc: full when the chapter is there, hollow when it is to come."""
    ground, ink = (INK, PAGE) if written else (PAGE, INK)
    ax.add_patch(Circle(at, 0.48, facecolor=ground, edgecolor=INK, linewidth=1.4, zorder=3))
    ax.text(*at, number, color=ink, ha="center", va="center", weight="bold", zorder=4)
