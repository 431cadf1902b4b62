"""What an attack is, and three ways to write one: as a cell, as an answer, as what lies in the folder.

    @cell()                                 # the body runs in a cell at the top of a notebook whose answers are right
    def does_harm(): ...

    @answer("project_qkv", gets=14)         # the function is handed in as this answer; the others are right
    def never_returns(*inputs): ...

    @answer(gets=0, answers=WRONG)          # as each of two answers; the others are as released
    def equals_everything(*inputs): ...

    @notebook(gets=0, answers=WRONG)        # made of the released notebook with these answers
    def tags(handed_in): ...

    @folder(gets=0)                         # whatever is written into the folder
    def a_pipe(place): ...

The docstring says what is tried. Inside a submission REPO, DATA, HOME, PORT and MARK stand for where the course and the
class lie, a port on which the test listens, and a word to be recognised by; `breach` says what should have failed.
"""

import ast
import copy
import inspect
import json
import textwrap
from dataclasses import dataclass

from autograder import cohort
from autograder.demo import typed

ASSIGNMENT = "02_queries_keys_values"
FILE = f"{ASSIGNMENT}.ipynb"
POINTS = {"project_qkv": 2, "dot_product_variance": 2, "scaled_dot_product_attention": 8, "attention_backward": 4}
ALL = sum(POINTS.values())
REPO = DATA = HOME = MARK = "known where a submission runs"
PORT = 0
IMPORTS = "import gc\nimport os\nimport signal\nimport struct\nimport sys\nimport time\n\nimport torch"

attacks = []


def breach(what):
    print("BREACH:", what)
    raise SystemError(f"BREACH: {what}")  # the judge shows what an answer raises, not what it prints


RIGHT, HONEST = typed.answers("ada"), typed.answers("emmy")  # every attacker is followed by an honest student
TRIED = ("project_qkv", "dot_product_variance")  # wrong, and soon judged; the others are left as they were released
WRONG = {name: f"def {name}(*inputs):\n    return torch.zeros(3)\n" for name in TRIED}


@dataclass(frozen=True)
class Attack:
    name: str  # of the student, too
    tries: str
    gets: float | None  # points; None: at most what its answers deserve, for one that may harm itself
    hand_in: object  # writes the submission: (folder, places)
    verdicts: tuple = ("graded", "stopped")
    reason: str = ""
    stock: bool = False  # graded through nbgrader's own command too
    source: str = ""  # of an attack by a cell


def cell(gets=ALL, answers=RIGHT, before="", **how):
    """The function's body is a cell at the top."""

    def register(function):
        source = f"{before}\n{body(function)}"
        add(function, gets, lambda places: completed(answers, places, source), source=source, **how)
        return function

    return register


def answer(*names, gets, answers=RIGHT, before="", **how):
    """The function stands for the answers of these names."""

    def register(function):
        mine = {name: renamed(function, name) for name in names or TRIED}
        add(function, gets, lambda places: completed(answers | mine, places, before), **how)
        return function

    return register


def notebook(gets=ALL, answers=RIGHT, **how):
    """The function makes what is handed in, a notebook or bytes, of a notebook with these answers."""

    def register(function):
        add(function, gets, lambda places: function(completed(answers, places)), **how)
        return function

    return register


def folder(gets=ALL, **how):
    """The function writes what it likes into the folder: (folder, a right notebook's bytes)."""

    def register(function):
        def hand_in(place, places):
            place.parent.mkdir(parents=True)
            function(place, json.dumps(completed(RIGHT, places)).encode())

        attacks.append(Attack(named(function), tried(function), gets, hand_in, **how))
        return function

    return register


def add(function, gets, make, **how):
    def hand_in(place, places):
        write(place, make(places))

    attacks.append(Attack(named(function), tried(function), gets, hand_in, **how))


def write(place, made):
    place.mkdir(parents=True)
    (place / FILE).write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())


def named(function):
    return f"{function.__module__.rpartition('.')[2]}_{function.__name__}"


def tried(function):
    if not function.__doc__:
        raise TypeError(f"{named(function)} does not say what it tries")
    return " ".join(function.__doc__.split())


def completed(answers, places, first=""):
    """The released notebook with these answers, and a cell at the top."""
    made = filled(answers)
    made["cells"].insert(0, code(f"{preface(places)}\n\n{first}"))
    return made


def filled(answers):
    made = copy.deepcopy(cohort.released(ASSIGNMENT))
    for one in made["cells"]:
        name = one["metadata"].get("nbgrader", {}).get("grade_id")
        one["source"] = answers.get(name, one["source"])
    return made


def preface(places):
    """What makes the names of this module known in a submission."""
    known = "\n".join(f"{name} = {value!r}" for name, value in places.items())
    return f"{IMPORTS}\n\n{known}\n\n\n{inspect.getsource(breach)}"


def code(source, **metadata):
    return {"cell_type": "code", "id": None, "metadata": metadata, "source": source, "outputs": []}


def body(function):
    """The statements of a function, without its docstring."""
    lines, definition = parsed(function)
    docstring, *_ = definition.body
    return textwrap.dedent("\n".join(lines[docstring.end_lineno : definition.end_lineno])) + "\n"


def renamed(function, name):
    """The source of a function under another name."""
    lines, definition = parsed(function)
    head = lines[definition.lineno - 1].replace(f"def {function.__name__}(", f"def {name}(", 1)
    return "\n".join([head, *lines[definition.lineno : definition.end_lineno]]) + "\n"


def parsed(function):
    source = textwrap.dedent(inspect.getsource(function))
    [definition] = ast.parse(source).body
    return source.splitlines(), definition
