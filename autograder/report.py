"""What a check says: points by property, the mistake by name, and where the error lies. Text, HTML, and a number for nbgrader."""

import html
import os
import sys
import textwrap
from dataclasses import dataclass

WIDTH = 80
SHADES = " ░▒▓█"


@dataclass(frozen=True)
class Picture:
    """How wrong each entry is, 0 to 1, over the two last axes of an output (the worst along the others)."""

    title: str
    rows: str  # the axes' letters
    columns: str
    error: list

    def text(self):
        lines = ["".join(SHADES[round(e * 4)] * 2 for e in row) for row in self.error]
        return [f"{self.title}: down {self.rows}, across {self.columns}; dark is wrong", *(f"  |{line}|" for line in lines)]

    def svg(self, side=14):
        height, width = side * len(self.error), side * len(self.error[0])
        squares = "".join(
            f'<rect x="{side * j}" y="{side * i}" width="{side}" height="{side}" fill="#d55e00" fill-opacity="{e:.2f}"'
            ' stroke="currentColor" stroke-opacity="0.3"/>'
            for i, row in enumerate(self.error)
            for j, e in enumerate(row)
        )
        label = html.escape(self.text()[0])
        return f'<svg role="img" aria-label="{label}" width="{width}" height="{height}">{squares}</svg><br><small>{label}</small>'


@dataclass(frozen=True)
class Report:
    name: str
    properties: dict  # property -> (points, worth, "earned" | "missed" | "pending")
    message: str
    diagnosis: str | None = None  # the mistake's name
    mistakes: tuple = ()  # every mistake that the message names
    see: str = ""  # page#section of the book
    picture: Picture | None = None

    @property
    def points(self):
        return sum(points for points, _, _ in self.properties.values())

    @property
    def max_points(self):
        return sum(worth for _, worth, _ in self.properties.values())

    @property
    def pending_points(self):
        return sum(worth for _, worth, state in self.properties.values() if state == "pending")

    def __str__(self):
        width = max(map(len, self.properties))
        rows = [f"  {state:8} {points:g} of {worth:g}   {name:{width}}" for name, (points, worth, state) in self.properties.items()]
        said = [line for part in self.message.split("\n") for line in textwrap.wrap(part, WIDTH) or [""]]
        more = self.picture.text() if self.picture else []
        read = [f"Read: {self.see}"] if self.see and self.points < self.max_points else []
        return "\n".join(line.rstrip() for line in [f"{self.name}: {self.points:g} of {self.max_points:g} points", *rows, *said, *more, *read])

    def __repr__(self):
        """Under a Jupyter kernel the number of points, which nbgrader reads as partial credit; elsewhere the text."""
        return f"{self.points:g}" if under_kernel() else str(self)

    def _repr_html_(self):
        return self.html()

    def html(self):
        rows = "".join(
            f'<tr><td style="text-align:left">{html.escape(name)}</td><td>{points:g} of {worth:g}</td><td>{state}</td></tr>'
            for name, (points, worth, state) in self.properties.items()
        )
        colour = "#009e73" if self.points == self.max_points else "#d55e00"
        message = "".join(f"<p>{html.escape(part)}</p>" for part in self.message.split("\n"))
        link = f'<p><a href="{html.escape(address(self.see))}">Read: {html.escape(self.see)}</a></p>' if self.see and self.points < self.max_points else ""
        return (
            f'<div style="border-left:4px solid {colour};padding:0 1em"><p><b>{html.escape(self.name)}: {self.points:g} of {self.max_points:g} points</b></p>'
            f"<table>{rows}</table>{message}{self.picture.svg() if self.picture else ''}{link}</div>"
        )


def address(see):
    """Where the section is in the built book; $COURSE_BOOK names its address, by default beside the notebooks."""
    page, _, section = see.partition("#")
    return f"{os.environ.get('COURSE_BOOK', '../../_build/html').rstrip('/')}/book/{page}.html#{section}"


def under_kernel():
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
