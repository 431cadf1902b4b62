"""Figures for the book: drawings that take the page's text colour, and sliders that move without a kernel.

`show(fig, alt)`                         one drawing, described in words by `alt`
`paste(name=number)`                     a number for the text
`Frames(draw, options, label, start)`    a slider and a play button over one drawing per option
`canvas`, `matrix`, `box`, `arrow`       the parts of a diagram

A drawing is made once, in `INK` on no ground; `INK` becomes the page's text colour and `PAGE` that of its ground, so
light and dark need no second drawing.
"""

import hashlib
import html
import io
import os
import re

import matplotlib.pyplot as plt
from IPython.display import HTML
from matplotlib.patches import Rectangle
from myst_nb import glue
from scour.scour import parse_args, scourString

INK, PAGE = "#000000", "#ffffff"
# One colour for each thing, in every chapter: at least 3.2:1 against the light and the dark page, and far apart for
# colour-blind readers too (tests/test_colours.py).
QUERY, KEY, VALUE, WEIGHT, MASK = "#005EEB", "#D47600", "#29A360", "#C16EC0", "#656565"
SHADE = 0.55  # the fullest cell with ink on it: any fuller and the ink falls below 4.5:1 in one of the themes

plt.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "figures",  # the same ids in every build
        "font.sans-serif": ["DejaVu Sans"],  # the page puts its own in its place
        "savefig.transparent": True,
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "lines.linewidth": 2,
    }
)


def svg(fig, alt):
    """Close `fig` and return it as one <svg> element that a screen reader reads as `alt`."""
    out = io.StringIO()
    fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    plt.close(fig)
    text = out.getvalue().replace(INK, "currentColor").replace(PAGE, "var(--pst-color-background, white)")
    # The fill on the root is for what matplotlib leaves without one, since black is the default.
    named = f'<svg role="img" aria-label="{html.escape(alt)}" fill="currentColor" '
    return smaller(text, prefix=f"d{digest(alt)}").replace("<svg ", named, 1).replace("\n", " ")


def smaller(text, prefix):
    """A drawing at about half its bytes: places to a tenth of a point, and short ids, that no other drawing has."""
    places = re.sub(r' (?:d|x|y|transform)="[^"]*"', tenths, text[text.index("<svg") :])
    asked = "--strip-xml-prolog --indent=none --no-line-breaks --quiet --enable-id-stripping --shorten-ids"
    return scourString(places, parse_args([*asked.split(), f"--shorten-ids-prefix={prefix}"]))


def tenths(places):
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", places[0])


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def show(fig, alt):
    """Show `fig` in the page, described by `alt`."""
    return HTML(f'<div class="drawing">{svg(fig, alt)}</div>')


def paste(**values):
    """Hand each value to the text, where {glue:text}`name:.2f` writes it."""
    for name, value in values.items():
        glue(name, value, display=False)


class Frames:
    """A slider and a play button over precomputed drawings: `draw(option)` returns (figure, alt).

    In the built page it is plain HTML that `_static/figures.js` brings to life: no kernel, no widget library.
    Without scripts, and on paper, the drawing at `start` stands alone. In JupyterLab it is a live widget.
    """

    def __init__(self, draw, options, label, start=0):
        self.names, self.label, self.start = [str(option) for option in options], label, start
        self.drawings = [svg(*draw(option)) for option in options]

    def _repr_mimebundle_(self, **_):
        # Only a kernel started by a Jupyter server has this name; the kernel that builds the book does not.
        if "JPY_SESSION_NAME" in os.environ:
            return self.widget()._repr_mimebundle_()
        return {"text/html": self.page(), "text/plain": f"a slider over {self.label}: {', '.join(self.names)}"}

    def page(self):
        """The slider as HTML."""
        key = digest("".join(self.drawings))
        hidden = ["" if i == self.start else " hidden" for i in range(len(self.names))]
        drawings = "".join(
            f'<div class="drawing" data-name="{html.escape(name)}"{hide}>{drawing}</div>'
            for name, hide, drawing in zip(self.names, hidden, self.drawings, strict=True)
        )
        return (
            f'<div class="frames"><div class="frames-controls" hidden>'
            f'<label for="frames-{key}">{html.escape(self.label)}</label>'
            f'<input type="range" id="frames-{key}" min="0" max="{len(self.names) - 1}" value="{self.start}">'
            f'<output for="frames-{key}">{html.escape(self.names[self.start])}</output>'
            f'<button type="button">Play</button></div>{drawings}</div>'
        )

    def widget(self):
        """The slider as an ipywidgets widget."""
        import ipywidgets as w  # only JupyterLab needs it

        stack = w.Stack([w.HTML(drawing) for drawing in self.drawings], selected_index=self.start)
        options = [(name, i) for i, name in enumerate(self.names)]
        slider = w.SelectionSlider(options=options, index=self.start, description=self.label)
        play = w.Play(min=0, max=len(self.names) - 1, value=self.start, interval=700)
        w.jslink((slider, "index"), (stack, "selected_index"))
        w.jslink((play, "value"), (slider, "index"))
        return w.VBox([w.HBox([play, slider]), stack])


def canvas(width, height, cell=0.36):
    """An empty drawing, `width` × `height` cells of `cell` inches; (0, 0) is its upper left corner, y runs down."""
    fig, ax = plt.subplots(figsize=(width * cell, height * cell))
    fig.subplots_adjust(0, 0, 1, 1)
    ax.set(xlim=(0, width), ylim=(height, 0))
    ax.axis("off")
    return fig, ax


def matrix(ax, values, colour, at, title="", rows=(), columns=(), form="{:g}".format, largest=None, wide=1):
    """Draw `values` (rows of numbers) as shaded cells, the upper left one at `at`; a fuller shade is a larger number.

    `rows` and `columns` name the cells' rows and columns; `form` writes a number, None leaves the cells blank;
    `largest` is the number that gets the fullest shade (the largest one there, unless given); a cell is `wide` by 1.
    """
    left, top = at
    values = [[float(value) for value in row] for row in values]
    largest = largest or max(abs(value) for row in values for value in row) or 1.0
    fullest = 1.0 if not form else 0.2 if colour == INK else SHADE
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            face = (colour, fullest * min(1.0, abs(value) / largest))
            corner = (left + wide * j, top + i)
            ax.add_patch(Rectangle(corner, wide, 1, facecolor=face, edgecolor=colour, linewidth=0.8, clip_on=False))
            if form:
                ax.text(left + wide * (j + 0.5), top + i + 0.5, form(value), ha="center", va="center")
    for i, name in enumerate(rows):
        ax.text(left - 0.2, top + i + 0.5, name, ha="right", va="center")
    for j, name in enumerate(columns):
        ax.text(left + wide * (j + 0.5), top - 0.15, name, ha="center", va="bottom")
    ax.text(left, top - (1.05 if columns else 0.25), title, ha="left", va="bottom", weight="bold")


def box(ax, at, text, colour=INK, width=3.0, height=1.1):
    """Draw `text` in a box whose middle is at `at`."""
    x, y = at
    corner, fill = (x - width / 2, y - height / 2), "none" if colour == INK else (colour, 0.25)
    ax.add_patch(Rectangle(corner, width, height, facecolor=fill, edgecolor=colour, linewidth=1.4))
    ax.text(x, y, text, ha="center", va="center")


def arrow(ax, start, end, style="-"):
    """Draw an arrow from `start` to `end`, its line in matplotlib's `style`."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": INK, "linestyle": style, "linewidth": 1.3})
