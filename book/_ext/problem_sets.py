"""What the pages say of the problem sets, taken from the problem sets and their exercises.

```{exercises} 02_queries_keys_values    a card for each exercise of the set, and how to open its notebook
{workload}`02_queries_keys_values`       "4 exercises, 16 points, 80 minutes"

A student's notebook is a page of the book as well; there its links to the book lead to the page's own sections.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective, SphinxRole

from autograder.exercises import get
from autograder.words import count

ROOT = Path(__file__).parents[2]
# As in a problem set:  # ## 1. Title   and below it   # {{ch02/NAME}} · easy · 5 minutes
ANNOUNCED = re.compile(r"^# ## (\d+)\. (.+)\n#\n# \{\{(ch\d\d/\w+)\}\}.* · (\w+) · (\d+) minutes$", re.MULTILINE)
TO_THE_BOOK = re.compile(r"\[[\w#-]+\]\([^)\s]*/book/[\w-]+\.html#([\w-]+)\)")
NUMBERED = re.compile(r"^## (\d+)\. ", re.MULTILINE)

INTRODUCTION = """\
{workload}.
*Open* shows an exercise as a page of the book.
To do it, [get the course's folder](#how-to-begin), start JupyterLab there, and open `{path}`.

```
.venv/bin/jupyter lab
```
"""
CARD = """\
::::{{grid-item-card}} {number}. {title}
{points} · {level} · {minutes} minutes

Rests on [](#{section})

:::{{card-footer}}
[Open](#{name}-{number}) · {{download}}`Download <../{path}>`
:::
::::
"""


@dataclass(frozen=True)
class Announced:
    """An exercise as its problem set announces it."""

    number: str
    title: str
    name: str
    level: str
    minutes: int

    @property
    def exercise(self):
        return get(self.name)


def announced(problem_set):
    """The exercises of a problem set, in its order; ValueError when there are none."""
    source = ROOT / "solutions" / f"{problem_set}.py"
    found = ANNOUNCED.findall(source.read_text("utf8")) if source.exists() else []
    if not found:
        raise ValueError(f"solutions/{problem_set}.py announces no exercise; name a set, as 02_queries_keys_values.")
    return [Announced(*words, int(minutes)) for *words, minutes in found]


def workload(exercises):
    points, minutes = sum(e.exercise.max_points for e in exercises), sum(e.minutes for e in exercises)
    return f"{count(len(exercises), 'exercise')}, {count(points, 'point')}, {minutes} minutes"


def notebook(problem_set):
    return f"notebooks/{problem_set}/{problem_set}.ipynb"


class Exercises(SphinxDirective):
    required_arguments = 1

    def run(self):
        [name] = self.arguments
        try:
            exercises = announced(name)
        except ValueError as error:
            raise self.error(str(error)) from None
        self.env.note_dependency(str(ROOT / "solutions" / f"{name}.py"))
        cards = "".join(card(name, one) for one in exercises)
        introduction = INTRODUCTION.format(workload=workload(exercises), path=notebook(name))
        text = f"{introduction}\n:::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{cards}:::::\n"
        holder = nodes.container(classes=["exercises"])
        self.state.nested_parse(StringList(text.splitlines(), self.get_source_info()[0]), self.content_offset, holder)
        return [holder]


def card(name, one):
    return CARD.format(
        **{**vars(one), "name": name},
        points=count(one.exercise.max_points, "point"),
        section=one.exercise.see.split("#")[1],
        path=notebook(name),
    )


class Workload(SphinxRole):
    def run(self):
        self.env.note_dependency(str(ROOT / "solutions" / f"{self.text}.py"))
        try:
            return [nodes.Text(workload(announced(self.text)))], []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


def as_a_page(app, docname, source):
    """A notebook's links to the built book become links to sections, and its exercises targets for the cards."""
    if not docname.startswith("notebooks/"):
        return
    read = json.loads(source[0])
    for cell in read["cells"]:
        if cell["cell_type"] == "markdown":
            text = TO_THE_BOOK.sub(r"[](#\1)", "".join(cell["source"]))
            cell["source"] = NUMBERED.sub(rf"({docname.split('/')[1]}-\1)=\n\g<0>", text)
    source[0] = json.dumps(read)


def include(app, config):
    """Of what lies in notebooks/, the problem sets alone: students keep copies of their own there."""
    config.include_patterns.extend(sorted(notebook(path.stem) for path in (ROOT / "solutions").glob("*.py")))


def setup(app):
    app.connect("config-inited", include)
    app.add_directive("exercises", Exercises)
    app.add_role("workload", Workload())
    app.connect("source-read", as_a_page)
    return {"parallel_read_safe": True}
