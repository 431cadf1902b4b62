"""The process in which a student's code runs: it executes cells, and calls what they define when the judge asks.

It is started by `boxed` on a copy of this file, `observe`, `deadline`, `draw` and `wire`, in a package `autograder` of
which nothing else exists. Its standard input and output are the wire; student code finds others in their place.
It serves one submission and holds no secret.
"""

import ast
import contextlib
import io
import os
import sys
import traceback
import types

import torch

from .deadline import OutOfTime, deadline
from .observe import Look, Seen, observe, words
from .wire import Peer

TEXT = 50_000  # characters kept of what a cell prints


def main():
    wire = os.dup(0), os.dup(1)  # not inherited by processes that the student's code starts
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    torch.set_num_threads(1)
    os.environ["TRITON_INTERPRET"] = "1"  # the judge's tensors are the CPU's
    notebook = Notebook(os.path.abspath("../cells"))
    Peer(*wire, served=[ready, notebook.run, notebook.observe]).serve()


def ready():
    return True


class Notebook:
    """The namespace of a student's notebook, in which cells run one after another."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.module = sys.modules["__main__"] = types.ModuleType("__main__")
        self.execute = shell(self) or self.plainly
        os.makedirs(folder, exist_ok=True)

    def run(self, source, seconds):
        """What the cell prints, traceback included, and the type and message of its exception."""
        text = Capped()
        self.count += 1
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            try:
                with deadline(seconds):
                    error = self.execute(source)
            except OutOfTime:
                error = OutOfTime(f"the cell was stopped after {seconds:g} s")
        what = None if error is None else (type(error).__name__[:80], words(error))
        return {"text": text.kept().replace(self.folder + os.sep, ""), "error": what}

    def observe(self, name, inputs, look, given):
        """What observe() sees of the student's function `name`."""
        if name in vars(self.module):
            seen = observe(vars(self.module)[name], inputs, Look(**look), given)
        else:
            seen = Seen(error=("NameError", f"`{name}` is not defined in the notebook"))
        return vars(seen)

    def file(self, source):
        """Cells are real files, since Triton and `inspect` read a function's source from its file."""
        path = os.path.join(self.folder, f"cell_{self.count}.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        return path

    def plainly(self, source):
        """Without IPython: no magics; the value of a last expression is shown."""
        try:
            path = self.file(source)
            body = ast.parse(source, path).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), path, "exec"), vars(self.module))
            if last:
                value = eval(compile(ast.Expression(last.value), path, "eval"), vars(self.module))
                if value is not None:
                    print(repr(value))
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            traceback.print_exc(limit=-5)
            return error


def shell(notebook):
    """A function that executes a cell as IPython does; None where IPython is not installed."""
    try:
        from IPython.core.compilerop import CachingCompiler
        from IPython.core.displayhook import DisplayHook
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config
    except ImportError:
        return None

    class Files(CachingCompiler):
        def get_code_name(self, raw, transformed, number):
            return notebook.file(transformed)

    class Values(DisplayHook):
        def write_output_prompt(self):
            pass

    class Shell(InteractiveShell):
        displayhook_class = Values
        compiler_class = Files

        def _tee(self, channel):
            """IPython 9 keeps a second copy of all output in its history: without end, and twenty times slower."""
            return contextlib.nullcontext()

        def enable_gui(self, gui=None):
            """%matplotlib asks for it; there is no screen."""

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.cache_size = 0
    made = Shell.instance(config=config, user_module=notebook.module)

    def execute(source):
        made.execution_count = notebook.count
        result = made.run_cell(source, store_history=False)
        return result.error_before_exec or result.error_in_exec

    return execute


class Capped(io.TextIOBase):
    """A text stream that keeps the first TEXT characters."""

    def __init__(self):
        self.parts, self.left = [], TEXT

    def writable(self):
        return True

    def write(self, text):
        if self.left > 0:
            self.parts.append(text[: self.left])
        self.left -= len(text)
        return len(text)

    def kept(self):
        return "".join(self.parts) + ("\n… and more, which is left out\n" if self.left < 0 else "")
