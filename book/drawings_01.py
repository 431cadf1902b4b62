"""The drawings of page 01. Each function returns a figure and its description in words, for `figures.show`."""

import matplotlib.pyplot as plt
from figures import INK, KEY, MASK, QUERY, VALUE, WEIGHT, arrow, box, canvas, matrix


def embedding(words, vocabulary, table):
    """A sentence at the left; from each word an arrow to its row of the table."""
    fig, ax = canvas(13.6, 7.2)
    ax.text(0.3, 1.15, "tokens", weight="bold", va="bottom")
    ax.text(3.4, 1.15, "index", weight="bold", va="bottom", ha="center")
    top, rows = 1.4, {word: 1.4 + i for i, word in enumerate(vocabulary)}
    matrix(ax, table, VALUE, (9.2, top), "table  (V, E)", rows=vocabulary, form=None)
    for i, word in enumerate(words):
        y = top + 0.5 + 1.1 * i
        ax.text(0.3, y, word, va="center")
        ax.text(3.4, y, str(vocabulary.index(word)), va="center", ha="center")
        arrow(ax, (4.0, y), (7.5, rows[word] + 0.5))
    pairs = ", ".join(f"{word} to row {vocabulary.index(word)}" for word in words)
    return fig, f"An arrow leads from each token to its row of the table: {pairs}. The two tokens 'the' share a row."


def lookup(temperature, names, keys, values, query, weights, mixture):
    """Keys and query in the plane, a bar for each weight, and the colour that comes out."""
    fig, (plane, bars) = plt.subplots(2, 1, figsize=(4.6, 5.3), height_ratios=[2.7, 2.6], layout="constrained")
    for name, (x, y) in zip(names, keys.tolist(), strict=True):
        plane.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": KEY, "linewidth": 1.6})
        plane.text(1.14 * x, 1.14 * y, name, ha="left" if x > 0 else "right", va="center")
    x, y = query.tolist()
    plane.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": QUERY, "linewidth": 2.6})
    plane.text(1.14 * x, 1.14 * y, "the query", ha="left", va="center", weight="bold")
    plane.set(xlim=(-2.1, 2.1), ylim=(-1.2, 1.15), xticks=[], yticks=[], aspect="equal")
    plane.set(xlabel="bluish  →  reddish", ylabel="dark  →  light")

    for i, (name, weight) in enumerate(zip(names, weights.tolist(), strict=True)):
        bars.add_patch(plt.Rectangle((-0.1, i - 0.32), 0.08, 0.64, facecolor=values[i].tolist(), edgecolor=INK))
        bars.barh(i, weight, color=WEIGHT, height=0.6)
        bars.text(weight + 0.015, i, f"{weight:.3f}", va="center")
        bars.text(-0.13, i, name, va="center", ha="right")
    bars.add_patch(plt.Rectangle((-0.1, 5.0), 1.1, 0.9, facecolor=mixture.tolist(), edgecolor=INK))
    bars.text(-0.13, 5.45, "output", va="center", ha="right", weight="bold")
    bars.set(xlim=(-0.42, 1.17), ylim=(6.0, -0.6))
    bars.axis("off")
    shares = ", ".join(f"{name} {weight:.3f}" for name, weight in zip(names, weights.tolist(), strict=True))
    red, green, blue = mixture.tolist()
    return fig, (
        f"Temperature {temperature}. The weights are {shares}. "
        f"The output has red {red:.2f}, green {green:.2f}, blue {blue:.2f}."
    )


def retrieval(found, wanted):
    """Rows of weights over the articles: `found` maps a question to {temperature: weights}, `wanted` to its article."""
    cell, left = 0.36, 2.1
    fig, ax = canvas(14.6, 4.9 * len(found) + 0.3)
    for block, (question, rows) in enumerate(found.items()):
        top = 4.9 * block + 1.2
        ax.text(left, top - 0.3, question, va="bottom", weight="bold")
        for i, (temperature, weights) in enumerate(rows.items()):
            for j, weight in enumerate(weights.tolist()):
                corner, face = (left + cell * j, top + i), (WEIGHT, weight)
                ax.add_patch(plt.Rectangle(corner, cell, 1, facecolor=face, edgecolor=WEIGHT, linewidth=0.5))
            ax.text(left - 0.2, top + i + 0.5, f"T = {temperature}", ha="right", va="center", size=10)
            ax.text(left + 30 * cell + 0.2, top + i + 0.5, f"{weights.max():.3f}", va="center", size=10)
        corner = (left + cell * (wanted[question] - 1), top)
        ax.add_patch(plt.Rectangle(corner, cell, len(rows), fill=False, edgecolor=INK, linewidth=1.8, zorder=3))
        ax.text(left - 0.2, top + 3.15, "article", ha="right", va="top", size=10)
        for number in (1, *range(5, 31, 5)):
            ax.text(left + cell * (number - 0.5), top + 3.15, str(number), ha="center", va="top", size=10)
    said = "; ".join(
        f"{question} most on Article {weights.argmax() + 1}, with {weights.max():.2f}"
        for question, rows in found.items()
        for temperature, weights in rows.items()
        if temperature == 0.1
    )
    return fig, f"Rows of weights over thirty articles, sharper as the temperature falls. At 0.1: {said}."


def hard_and_soft(degrees, curves):
    """One component of the output against the direction of the query; `curves` maps a name to heights."""
    fig, ax = plt.subplots(figsize=(4.9, 3.5), layout="constrained")
    styles = [(INK, ":", 2.2), (WEIGHT, "-", 2), (WEIGHT, "--", 2)]
    for (name, heights), (colour, style, width) in zip(curves.items(), styles, strict=True):
        ax.plot(degrees, heights, color=colour, linestyle=style, linewidth=width, label=name)
    ax.set(xlabel="direction of the query, in degrees", xticks=range(0, 361, 60), xlim=(0, 360))
    ax.set(ylabel="red in the output", ylim=(0, 1.02))
    fig.legend(loc="outside upper center", ncols=3, handlelength=1.8, columnspacing=1.2)
    return fig, (
        "As the query turns, the hard lookup is flat and jumps five times; the soft ones rise and fall smoothly, "
        "the lower temperature with steeper slopes and longer flats."
    )


def slopes(gaps, curves):
    """The derivative of the weight of one of two keys against the gap of their scores."""
    fig, ax = plt.subplots(figsize=(4.9, 3.2), layout="constrained")
    for (temperature, heights), style in zip(curves.items(), ("-", "--", ":"), strict=True):
        ax.plot(gaps, heights, color=WEIGHT, linestyle=style, label=f"T = {temperature}")
    ax.set(xlabel="gap between the two scores", ylabel="slope of the weight", xlim=(-8, 8), ylim=(0, 1.05))
    ax.legend()
    peaks = ", ".join(f"{max(heights):.3f} at temperature {t}" for t, heights in curves.items())
    return fig, f"Three bells over the gap, highest where the scores are equal: {peaks}. The higher, the narrower."


def smoothing(h, x, y, grid, truth, fit, at, weights):
    """Above: points, the curve they were drawn from, and the kernel average. Below: the weights of one query."""
    fig, (top, low) = plt.subplots(2, 1, figsize=(4.9, 4.6), height_ratios=[3, 1.3], sharex=True, layout="constrained")
    top.plot(grid, truth, color=MASK, linestyle=":", label="the truth")
    top.plot(x, y, "o", color=VALUE, markersize=4.5, label="values at their keys")
    top.plot(grid, fit, color=QUERY, label="average")
    top.set(ylim=(-2.4, 2.8), yticks=[-2, 0, 2], ylabel="y")
    fig.legend(*top.get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.5, columnspacing=1)
    low.vlines(*zip(*((a, 0, w) for a, w in zip(x, weights, strict=True) if w > 0.002), strict=True), color=WEIGHT)
    low.set(ylim=(0, 1), yticks=[0, 0.5, 1], ylabel="weight", xlabel="x", xlim=(0, 6.3))
    for ax in (top, low):
        ax.axvline(at, color=INK, linewidth=0.9, linestyle="--")
    return fig, (
        f"Bandwidth {h}. The average runs from {min(fit):.2f} to {max(fit):.2f}; "
        f"for the query at {at} the largest of the forty weights is {max(weights):.2f}."
    )


def reach(distances, curves, shares, fits_at):
    """On a logarithmic axis: gradients of recurrences against distance, and attention's weights as dots."""
    fig, ax = plt.subplots(figsize=(4.9, 4.0), layout="constrained")
    for (gain, norms), style in zip(curves.items(), ("-", "--", "-."), strict=True):
        ax.semilogy(distances, norms, color=KEY, linestyle=style, label=f"recurrence, g = {gain}")
    ax.semilogy(distances, shares, ".", color=WEIGHT, markersize=6, label="attention")
    ax.annotate(
        "the key that fits", (fits_at, shares[fits_at - 1]), (fits_at - 20, 5000), ha="center",
        arrowprops={"arrowstyle": "-|>", "color": INK},
    )  # fmt: skip
    ax.minorticks_off()
    ax.set(xlabel="steps back", xlim=(0, 101), ylabel="size of the gradient", ylim=(1e-9, 5e4))
    ax.set(yticks=[1e-8, 1e-6, 1e-4, 1e-2, 1, 100], yticklabels=["10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1", "100"])
    fig.legend(loc="outside upper center", ncols=2, handlelength=2, columnspacing=1.2)
    ends = ", ".join(f"{norms[-1]:.1e} for g = {gain}" for gain, norms in curves.items())
    return fig, (
        f"The recurrences' gradients fall or rise in nearly straight lines, and after 100 steps are {ends}. "
        "Attention's are scattered in one band at every distance; "
        f"that of the key that fits, {fits_at} steps back, is {shares[fits_at - 1]:.2f}."
    )


def windows(stacks):
    """What one output reads through layers of windows three wide; `stacks` maps a title to its dilations."""
    fig, ax = canvas(15.4, 12.1, cell=0.33)
    for top, (title, dilations) in zip((1.3, 7.3), stacks.items(), strict=True):
        ax.text(0.2, top - 0.65, title, weight="bold", va="center")
        reached = {15}  # places are counted in halves of a cell, so the middle of 15 places is 15
        levels = {0: set(reached)}
        for depth, dilation in enumerate(reversed(dilations)):
            below = {place + 2 * step for place in reached for step in (-dilation, 0, dilation)}
            for place in reached:
                for step in (-dilation, 0, dilation):
                    ends = [place / 2, place / 2 + step], [top + 1.35 * depth + 0.2, top + 1.35 * (depth + 1) + 0.2]
                    ax.plot(*ends, color=KEY, linewidth=1)
            reached = below
            levels[depth + 1] = below
        for depth, places in levels.items():
            for i in range(15):
                there = 2 * i + 1 in places
                face = KEY if there else "none"
                ax.plot(i + 0.5, top + 1.35 * depth + 0.2, "o", markersize=7, markerfacecolor=face, markeredgecolor=KEY)
    counts = ", ".join(f"{1 + 2 * sum(dilations)} inputs with {title}" for title, dilations in stacks.items())
    return fig, f"Lines lead from one output down through three layers of windows to {counts}."


def two_scores():
    """The additive score, and below it the dot product, as graphs."""
    fig, ax = canvas(14.2, 10.8)
    for top, title, joined in ((0.5, "additive", "+,  tanh"), (6.0, "dot product", "×,  sum")):
        ax.text(0.2, top, title, weight="bold", va="center")
        middle = top + 2.6
        for y, name, colour, side in ((middle - 1.2, "query", QUERY, -1), (middle + 1.2, "key", KEY, 1)):
            box(ax, (1.6, y), name, colour, width=2.4)
            arrow(ax, (2.8, y), (6.0, middle + 0.3 * side))
            ax.text(4.6, y + 0.15 * side, f"× W_{name[0]}", ha="center", va="bottom" if side < 0 else "top")
        box(ax, (7.2, middle), joined, width=2.4)
        arrow(ax, (8.4, middle), (11.0, middle))
        box(ax, (12.3, middle), "score", WEIGHT, width=2.6)
    ax.text(9.6, 2.8, "· v", ha="center", va="bottom")
    return fig, (
        "Additive: the query times W_q and the key times W_k are added, go through tanh, and meet v. "
        "Dot product: the query times W_q and the key times W_k are multiplied entry by entry and summed."
    )


def alignment(english, french, weights):
    """A heatmap: a row for each French word, a column for each English one; weights in percent."""
    fig, ax = canvas(12.0, 12.0, cell=0.38)
    left, top, side = 2.3, 2.3, 1.05
    percent = {i: f"{i}" if i >= 5 else "" for i in range(101)}
    cells = [[round(100 * w) for w in row] for row in weights.tolist()]
    for i, row in enumerate(cells):
        ax.text(left - 0.2, top + side * (i + 0.5), french[i], ha="right", va="center")
        for j, share in enumerate(row):
            corner = (left + side * j, top + side * i)
            shade = (WEIGHT, 0.55 * share / 100)
            ax.add_patch(plt.Rectangle(corner, side, side, facecolor=shade, edgecolor=WEIGHT, linewidth=0.8))
            ax.text(corner[0] + side / 2, corner[1] + side / 2, percent[share], ha="center", va="center")
    for j, word in enumerate(english):
        ax.text(left + side * (j + 0.35), top - 0.15, word, ha="left", va="bottom", rotation=50, rotation_mode="anchor")
    most = ", ".join(f"{word} on {english[row.argmax()]}" for word, row in zip(french, weights, strict=True))
    return fig, f"Each French word's largest weight: {most}."
