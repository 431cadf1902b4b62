"""The drawings of page 02. Each function returns a figure and its description in words, for `figures.show`."""

from itertools import pairwise

import matplotlib.pyplot as plt
from figures import INK, KEY, MASK, QUERY, VALUE, WEIGHT, arrow, box, canvas, matrix


def said(names, rows, form="{:g}"):
    """The named rows of a matrix in words."""
    return "; ".join(f"{name}: {', '.join(form.format(x) for x in row)}" for name, row in zip(names, rows, strict=True))


def frame(ax, at, width):
    """Frame the row of `width` cells that begins at `at`."""
    ax.add_patch(plt.Rectangle(at, width, 1, fill=False, edgecolor=INK, linewidth=2.4))


def projections(words, x, q, k, v):
    """X at the left; an arrow leads from it to each of Q, K and V; the last row of each is framed."""
    fig, ax = canvas(14.4, 13.6)
    matrix(ax, x, INK, (1.5, 5.5), "X  (N, E)", rows=words)
    frame(ax, (1.5, 7.5), x.shape[1])
    for name, width, values, colour, top, label_at in (
        ("Q", "D", q, QUERY, 0.9, (7.3, 3.4)),
        ("K", "D", k, KEY, 5.5, (8.35, 6.5)),
        ("V", "Dv", v, VALUE, 10.1, (7.3, 10.6)),
    ):
        matrix(ax, values, colour, (10.2, top), f"{name}  (N, {width})")
        frame(ax, (10.2, top + 2), values.shape[1])
        arrow(ax, (6.7, 7), (10.0, top + 1.5))
        ax.text(*label_at, f"× W_{name}", ha="center", va="center")
    rows = ". ".join(
        f"{name} has the rows {said(words, m.tolist())}" for name, m in zip("XQKV", (x, q, k, v), strict=True)
    )
    return fig, f"Three arrows lead from X to Q, K and V. {rows}. The last row of each is framed."


def score_matrix(words, q, k):
    """Q at the left, Kᵀ above, the scores where they meet; the last query's row is framed."""
    scores = q @ k.T
    fig, ax = canvas(10.6, 10.6, cell=0.42)
    matrix(ax, q, QUERY, (1.4, 7.2), "Q  (N, D)", rows=words)
    matrix(ax, k.T, KEY, (6.6, 1.7), "Kᵀ  (D, S)", columns=words)
    matrix(ax, scores, WEIGHT, (6.6, 7.2), "QKᵀ  (N, S)")
    frame(ax, (6.6, 9.2), 3)
    return fig, (
        "Q stands at the left, K transposed above, their product where they meet. "
        f"The product has the rows {said(words, scores.tolist())}. The last row is framed."
    )


def one_row(words, scores, scaled, weights, v, output):
    """Above: scores, scaled scores and weights of one query. Below: the values in the plane, and their average."""
    fig, (top, plane) = plt.subplots(2, 1, figsize=(4.8, 5.6), height_ratios=[5.9, 7], layout="constrained")
    top.set(xlim=(0, 11.4), ylim=(5.9, 0))
    top.axis("off")
    matrix(top, [scores], WEIGHT, (3.2, 1), rows=["scores"], columns=words, wide=2.2)
    matrix(top, [scaled], WEIGHT, (3.2, 2.6), rows=["÷ √D"], wide=2.2)
    matrix(top, [weights], WEIGHT, (3.2, 4.2), rows=["softmax"], form="{:.3f}".format, wide=2.2)

    plane.add_patch(plt.Polygon(v, facecolor=(VALUE, 0.15), edgecolor=VALUE))
    plane.plot(*v.T, "o", color=VALUE, markersize=8)
    for (across, up), word in zip(v.tolist(), words, strict=True):
        side, align = (-0.2, "right") if across < 0 else (0.2, "left")
        plane.text(across + side, up, f"value of {word}", ha=align, va="center")
    plane.plot(*output, "D", color=INK, markersize=8)
    plane.text(output[0] - 0.1, output[1] - 0.16, "output", ha="right", va="top")
    plane.set(xlim=(-4.4, 4.4), xticks=[-4, -2, 0, 2, 4], xlabel="first component")
    plane.set(ylim=(-1.4, 1.5), yticks=[-1, 0, 1], ylabel="second component")
    names, rows = ("scores", "divided by root D", "weights"), (scores, scaled, weights)
    return fig, (
        f"The row in numbers. {said(names, [row.tolist() for row in rows], '{:.3g}')}. "
        f"The values of {', '.join(words)} are the corners of a triangle; the output lies inside it."
    )


def causal(words, allowed, weights):
    """A mask and the weights under it, side by side."""
    fig, ax = canvas(12.2, 5.2, cell=0.42)
    matrix(ax, allowed, MASK, (1.4, 1.9), "may attend", rows=words, columns=words, form={1: "yes", 0: "no"}.get)
    matrix(ax, weights, WEIGHT, (8.2, 1.9), "weights", rows=words, columns=words, form="{:.2f}".format)
    return (
        fig,
        f"Each token may attend to itself and those before it. The weights: {said(words, weights.tolist(), '{:.2f}')}.",
    )


def variances(measured):
    """Measured variances, a dict from D, with and without scaling, on the lines D and 1."""
    widths, found = list(measured), list(measured.values())
    fig, ax = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    ax.loglog(widths, widths, color=INK, linewidth=1)
    ax.loglog(widths, [1] * len(widths), color=INK, linewidth=1)
    ax.loglog(widths, found, "o", color=KEY)
    ax.loglog(widths, [variance / d for d, variance in measured.items()], "s", color=WEIGHT)
    ax.text(90, 420, "q · k", ha="right")
    ax.text(90, 1.6, "q · k / √D", ha="right")
    ax.minorticks_off()
    ax.set(xlabel="D", xticks=widths[::2], xticklabels=widths[::2])
    ax.set(ylabel="variance of the score", ylim=(0.4, 2500), yticks=[1, 10, 100, 1000], yticklabels=[1, 10, 100, 1000])
    return fig, (
        "On logarithmic axes the variance of the score climbs along the line y = D, "
        f"from {found[0]:.2f} to {found[-1]:.0f}. Divided by root D it stays at 1 for every D."
    )


def saturation(d, panels):
    """Rows of weights; `panels` maps a title to the rows and to the typical largest weight."""
    fig, ax = canvas(12.2, 11.4, cell=0.38)
    ax.text(6.1, 0.35, f"D = {d}", ha="center", va="center")
    for top, (title, (rows, largest)) in zip((1.7, 7.2), panels.items(), strict=True):
        matrix(ax, rows, WEIGHT, (1.1, top), title, form=None, largest=1)
        ax.text(11.1, top - 0.25, f"largest: {largest:.2f}", ha="right", va="bottom")
    typical = " and ".join(f"{largest:.2f} in {title}" for title, (_, largest) in panels.items())
    return fig, f"D = {d}. The largest weight of a row is typically {typical}."


def gradients(multiples, at_scores, at_query):
    """Quartiles of gradient norms against c·√D, at the scores and at the query, for D = 64."""
    fig, ax = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
    for quartiles, colour, style, fill in (
        (at_scores, WEIGHT, "o-", (WEIGHT, 0.08)),
        (at_query, QUERY, "s--", "none"),  # hollow and dashed, so that the two stay apart where they overlap
    ):
        low, middle, high = zip(*quartiles, strict=True)
        ax.fill_between(multiples, low, high, facecolor=fill, edgecolor=colour, linestyle=style[1:], linewidth=1)
        ax.loglog(multiples, middle, style, color=colour, markersize=4)
    for place, name in ((1 / 8, "c = 1/D"), (1, "c = 1/√D"), (8, "c = 1")):
        ax.axvline(place, color=MASK, linewidth=1, linestyle=":")
        ax.text(place, 4, name, ha="center", va="bottom")
    ax.text(0.035, 0.3, "at the scores")
    ax.text(0.16, 0.011, "at the query")
    ax.minorticks_off()
    ax.set(xlabel="c · √D", xticks=multiples[::2], xticklabels=["1/32", "1/8", "1/2", "2", "8", "32"])
    ax.set(ylabel="norm of the gradient", ylim=(1e-6, 3))
    ax.set(yticks=[1e-6, 1e-4, 1e-2, 1], yticklabels=["0.000001", "0.0001", "0.01", "1"])
    return fig, (
        "The median gradient at the scores stays level while c is small, and falls by orders of magnitude "
        "once c is several times one over root D. The median gradient at the query rises with c, "
        "is largest at four times one over root D, and then falls too."
    )


def backward():
    """The steps of attention as a graph: full arrows forward, dashed ones backward."""
    fig, ax = canvas(14.4, 9.2)
    nodes = {
        "Q": (1.2, 1.6, "(N, D)", QUERY),
        "K": (1.2, 5.4, "(S, D)", KEY),
        "A": (5.0, 3.5, "(N, S)", WEIGHT),
        "P": (9.4, 3.5, "(N, S)", WEIGHT),
        "V": (9.4, 7.3, "(S, Dv)", VALUE),
        "O": (13.2, 5.4, "(N, Dv)", INK),
    }
    for name, (x, y, shape, colour) in nodes.items():
        box(ax, (x, y), f"{name}\n{shape}", colour, width=2.1, height=1.8)
    for source, target, port in (
        ("Q", "A", -0.45),
        ("K", "A", 0.45),
        ("A", "P", 0),
        ("P", "O", -0.45),
        ("V", "O", 0.45),
    ):
        left, from_y = nodes[source][0] + 1.1, nodes[source][1]
        right, to_y = nodes[target][0] - 1.1, nodes[target][1] + port
        arrow(ax, (left, from_y - 0.18), (right, to_y - 0.18))
        arrow(ax, (right, to_y + 0.18), (left, from_y + 0.18), style="--")
        ax.text((left + right) / 2, (from_y + to_y) / 2 + 0.85, f"d{source}", ha="center", va="center")
    arrow(ax, (13.2, 8.9), (13.2, 6.4), style="--")
    ax.text(13.75, 8.0, "dO", ha="center", va="center")
    ax.text(7.2, 3.15, "softmax", ha="center", va="bottom")
    return fig, (
        "Q and K lead to A, A by softmax to P, P and V to O. "
        "Dashed arrows lead back: from dO to dP and dV, from dP to dA, from dA to dQ and dK."
    )


def block():
    """A pre-norm block: the residual stream runs upward, two branches leave it and are added to it."""
    fig, ax = canvas(13, 13.2)
    trunk, branch = 2.2, 8.4
    for start, end in ((12.6, 7.55), (6.65, 2.55), (1.65, 0.5)):
        arrow(ax, (trunk, start), (trunk, end))
    ax.text(trunk + 0.3, 12.5, "X  (N, E)", ha="left", va="center")
    ax.text(trunk + 0.3, 0.7, "to the next block", ha="left", va="center")
    attention = (("norm", INK, 11.4), ("Q, K, V  (+ positions)", QUERY, 10.0), ("attention, then W_O", WEIGHT, 8.6))
    feed_forward = (("norm", INK, 5.6), ("feed-forward", VALUE, 4.2))
    for joins, steps in ((7.1, attention), (2.1, feed_forward)):
        arrow(ax, (trunk, steps[0][2]), (branch - 3.5, steps[0][2]))
        for text, colour, y in steps:
            box(ax, (branch, y), text, colour, width=7.0, height=1.0)
        for (_, _, lower), (_, _, upper) in pairwise(steps):
            arrow(ax, (branch, lower - 0.5), (branch, upper + 0.5))
        ax.plot([branch, branch], [steps[-1][2] - 0.5, joins], color=INK, linewidth=1.3)
        arrow(ax, (branch, joins), (trunk + 0.45, joins))
        ax.plot(trunk, joins, "o", markersize=22, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1.4)
        ax.plot(trunk, joins, "+", markersize=11, color=INK, markeredgewidth=1.4)
    return fig, (
        "A line runs upward from X. It feeds a norm, then the projections to Q, K and V, then attention and W_O, "
        "whose result is added to the line; then a norm and a feed-forward part, whose result is added too; "
        "then the next block follows."
    )
