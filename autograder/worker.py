"""The process in which a student's code runs: it executes cells, and calls what they define when the judge asks.

`zygote` forks it, confined, for one submission. It holds no secret, and what the grader asks comes over one socket.
"""

import ast
import base64
import contextlib
import io
import os
import sys
import traceback
import types

import torch

from .carried import carrying
from .deadline import OutOfTime, deadline
from .observe import Look, Raw, act, undefined, words
from .wire import Peer

TEXT = 50_000  # characters kept of what a cell prints
PICTURES, PICTURE = 10, 2 << 20  # of one cell, and bytes of one


def work(channel, folder):
    """Serve the grader over the socket `channel` until it closes its end; cells are written to `folder`."""
    os.set_inheritable(channel, False)
    torch.set_num_threads(1)
    notebook = Notebook(folder)
    for name in [name for name in sys.modules if name.startswith("autograder.")]:
        del sys.modules[name]  # what an answer may import is the stub
    Peer(channel, channel, served=[ready, notebook.run, notebook.observe]).serve()


def ready():
    return True


class Notebook:
    """The namespace of a student's notebook, in which cells run one after another."""

    def __init__(self, folder):
        self.folder, self.count, self.pictures = folder, 0, []
        self.module = sys.modules["__main__"] = types.ModuleType("__main__")
        self.execute = shell(self) or self.plainly
        os.makedirs(folder, exist_ok=True)

    def run(self, source, seconds):
        """What the cell prints, traceback included, the PNG files it draws, the type and message of its exception."""
        text, self.pictures = Capped(), []
        self.count += 1
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            try:
                with deadline(seconds):
                    error = self.execute(source)
            except OutOfTime:
                error = OutOfTime(f"the cell was stopped after {seconds:g} s")
        stopped = f"{error}\n" if isinstance(error, OutOfTime) else ""  # a traceback may have been cut short, too
        what = None if error is None else (type(error).__name__[:80], words(error))
        shown = text.kept().replace(self.folder + os.sep, "") + stopped
        return {"text": shown, "error": what, "pictures": self.pictures}

    def show(self, data):
        """What IPython displays, as a dict by MIME type: text is printed, a PNG is kept."""
        png = data.get("image/png")
        if isinstance(png, str):  # matplotlib's, encoded
            png = base64.b64decode(png)
        if isinstance(png, bytes) and len(png) <= PICTURE and len(self.pictures) < PICTURES:
            self.pictures.append(torch.frombuffer(bytearray(png), dtype=torch.uint8))
        elif "text/plain" in data:
            print(data["text/plain"])

    def observe(self, name, inputs, look, given):
        """The account that `act` gives of the student's function `name`."""
        if name not in vars(self.module):
            return vars(Raw(error=undefined(name)))
        given = {helper: carrying(*both) for helper, both in given.items()}
        return vars(act(vars(self.module)[name], inputs, Look(**look), given))

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
        from IPython.core.displaypub import DisplayPublisher
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

        def write_format_data(self, data, metadata=None):
            notebook.show(data)

    class Displays(DisplayPublisher):
        def publish(self, data, *_, **__):
            notebook.show(data)

    class Shell(InteractiveShell):
        displayhook_class = Values
        display_pub_class = Displays
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
    with contextlib.suppress(ImportError):
        made.enable_matplotlib("inline")

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
