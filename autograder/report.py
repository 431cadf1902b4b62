"""What a check says: points by property, the mistake, where the error lies. As text, HTML, a number for nbgrader."""

import html
import os
import sys
import textwrap
from dataclasses import dataclass

from .picture import Picture

WIDTH = 80
BUILT = "../../_build/html"  # seen from a notebook
CELL = '<td style="text-align:left;padding:0 1em 0 0">'
NARROW = CELL.replace(";padding", ";white-space:nowrap;padding")  # "2 of 2" in one line, on a phone too
NO_FORMULA = "mathjax_ignore tex2jax_ignore"  # to MathJax 3, and to 2: what an exception says is a student's
RIGHT, WRONG = "#009e73", "#d55e00"  # told apart by colour-blind readers too


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

    @property
    def title(self):
        return f"{self.name}: {self.points:g} of {self.max_points:g} points"

    @property
    def read(self):
        """The section to read, when there is something left to learn there."""
        return self.see if self.points < self.max_points else ""

    def __str__(self):
        rows = [
            f"  {state:8} {points:g} of {worth:g}   {name}" for name, (points, worth, state) in self.properties.items()
        ]
        said = [line for part in self.message.split("\n") for line in textwrap.wrap(part, WIDTH)]
        picture = [line[:WIDTH] for line in self.picture.text()] if self.picture else []
        return "\n".join([self.title, *rows, *said, *picture, *([f"Read: {self.read}"] if self.read else [])])

    def __repr__(self):
        """Under a Jupyter kernel the number of points, which nbgrader reads as partial credit; elsewhere the text."""
        return f"{self.points:g}" if under_kernel() else str(self)

    def _repr_html_(self):
        return self.html()

    def html(self):
        rows = "".join(
            f"<tr>{CELL}{html.escape(name)}</td>{NARROW}{points:g} of {worth:g}</td>{CELL}{state}</td></tr>"
            for name, (points, worth, state) in self.properties.items()
        )
        parts = [f"<p><b>{html.escape(self.title)}</b></p>", f"<table>{rows}</table>"]
        parts += [f"<p>{html.escape(line)}</p>" for line in self.message.split("\n")]
        parts += [self.picture.svg()] if self.picture else []
        parts += (
            [f'<p><a href="{html.escape(address(self.read, beside()))}">Read: {html.escape(self.read)}</a></p>']
            if self.read
            else []
        )
        colour = RIGHT if self.points == self.max_points else WRONG
        style = f"border-left:4px solid {colour};padding:0 1em"
        return f'<div class="{NO_FORMULA}" style="{style}">{"".join(parts)}</div>'


def beside():
    """Where the book lies, seen from a page with reports: grading says it for feedback, which lies elsewhere."""
    return os.environ.get("COURSE_BOOK_BESIDE", BUILT)


def address(see, beside=BUILT):
    """Where the section is in the built book, whose address $COURSE_BOOK names; by default beside the notebooks."""
    page, _, section = see.partition("#")
    return f"{book(beside)}/book/{page}.html#{section}"


def book(beside=BUILT):
    return os.environ.get("COURSE_BOOK", beside).rstrip("/")


def under_kernel():
    return hasattr(shell(), "kernel")


def shell():
    """IPython's shell, when there is one."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
