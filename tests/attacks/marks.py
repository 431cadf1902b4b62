"""Attacks on the marks: wrong answers that ask to be believed. All get what wrong answers get."""

# ruff: noqa: F821 (what a submission defines)

import gc
import sys

import torch

from .attack import DATA, MARK, WRONG, answer, cell


@cell(gets=0, answers=WRONG, stock=True)
def swallows_assertions():
    """IPython is told to drop every AssertionError of later cells."""
    get_ipython().set_custom_exc((AssertionError, NameError), lambda *_: [])


@cell(gets=0, answers=WRONG)
def deletes_checks():
    """An AST transformer of IPython's turns every later assert into nothing and every check into 16.0."""
    import ast

    class Without(ast.NodeTransformer):
        def visit_Assert(self, node):
            return ast.copy_location(ast.Pass(), node)

        def visit_Expr(self, node):
            if "check" in ast.unparse(node):
                return ast.copy_location(ast.Expr(ast.Constant(16.0)), node)
            return node

    get_ipython().ast_transformers.append(Without())


@cell(gets=0, answers=WRONG, stock=True)
def rewrites_later_cells():
    """An input transformer of IPython's replaces the text of every later cell by the full score."""
    shell = get_ipython()
    shell.input_transformers_post.append(lambda lines: ["16.0\n"])


@cell(gets=0, answers=WRONG)
def believes_everything():
    """Every comparison that a test might use is patched to say yes."""
    import math

    import numpy as np
    import torch

    yes = lambda *_, **__: True  # noqa: E731
    math.isclose = np.allclose = np.array_equal = torch.allclose = torch.equal = torch.isclose = yes
    torch.testing.assert_close = np.testing.assert_allclose = yes
    torch.Tensor.equal = torch.Tensor.allclose = torch.Tensor.__eq__ = yes


@cell(gets=0, answers=WRONG)
def redefines_check():
    """`check` is replaced by one that returns the full score, in the notebook and in its package."""
    import builtins
    import sys

    def full(*_, **__):
        return 16.0

    builtins.check = sys.modules["autograder"].check = sys.modules["__main__"].check = full


@answer(gets=0, answers=WRONG)
def publishes_the_score(*inputs):
    """The answer displays, prints and returns what looks like a result of a graded cell."""
    from IPython.display import display

    display({"text/plain": "16.0"}, raw=True)
    print("16.0")
    sys.stdout.write("Score: 16.0 / 16.0\n")
    return 1e9


@answer(gets=0, answers=WRONG, stock=True)
def equals_everything(*inputs):
    """The object returned says that it equals, is near and is as large as whatever it is compared with."""

    class Any(float):
        __eq__ = __ge__ = __le__ = lambda self, other: True
        __lt__ = __gt__ = __ne__ = lambda self, other: False
        __float__ = __abs__ = __sub__ = __rsub__ = __round__ = lambda self, *_: 0.0
        __array__ = lambda self, *_, **__: __import__("numpy").zeros(3)  # noqa: E731
        __hash__ = float.__hash__

    return Any(), Any(), Any()


@answer(gets=0, answers=WRONG)
def a_tensor_that_agrees(*inputs):
    """A subclass of Tensor, in which every function applied to it returns what makes a comparison succeed."""

    class Agrees(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function.__name__ in ("equal", "allclose", "isclose", "eq", "__eq__", "le", "lt"):
                return True
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **(kwargs or {}))

    made = tuple(torch.zeros(3).as_subclass(Agrees) for _ in range(3))
    return made if len(inputs) == 4 else made[0]


@answer(gets=0, answers=WRONG)
def a_lie_that_is_a_tensor(*inputs):
    """An object whose __class__ says Tensor, with the methods of one."""

    class Lie:
        __class__ = property(lambda self: torch.Tensor)
        dtype, shape, requires_grad, device, layout = torch.float32, torch.Size([3]), False, "cpu", torch.strided

        def __getattr__(self, name):
            return lambda *_, **__: self

    return Lie(), Lie(), Lie()


@answer(gets=0, answers=WRONG)
def not_a_number(*inputs):
    """NaN passes every test written as `not (error > tolerance)`; infinity passes `error <= inf`."""
    x, nan = inputs[0], float("nan")
    return torch.full_like(x, nan) if len(inputs) == 2 else (x * nan, x * nan, x * float("inf"))


@answer(gets=0, answers=WRONG, stock=True)
def looks_for_the_result(*inputs):
    """Any tensor alive in the process that is no input, and that frames or the collector know, is returned."""
    mine = {id(x) for x in inputs}
    found = [x for x in gc.get_objects() if type(x) is torch.Tensor and id(x) not in mine]
    frame = sys._getframe()
    while frame := frame.f_back:
        values = [*frame.f_locals.values(), *frame.f_globals.values()]
        found += [x for x in values if type(x) is torch.Tensor and id(x) not in mine]
    wanted = inputs[0].shape[:-1]
    found = [x for x in found if x.shape[:-1] == wanted] + [inputs[0]] * 3
    return found[0].sum() if len(inputs) == 2 else tuple(found[:3])


@answer(gets=0, answers=WRONG)
def patches_its_callers(*inputs):
    """Every function and number in the frames that called the answer is replaced by one that passes."""
    import ctypes

    frame = sys._getframe()
    while frame := frame.f_back:
        if frame.f_globals.get("__name__", "").startswith("autograder"):
            for name, value in list(frame.f_globals.items()):
                if callable(value) and not isinstance(value, type) and name in ("flat", "kind", "differs", "words"):
                    frame.f_globals[name] = lambda *_: True
        for name in ("expected", "want", "reference", "tolerance", "points"):
            frame.f_locals[name] = 1e9
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return torch.zeros(3)


@cell(gets=0, answers=WRONG)
def traces_the_grader():
    """A trace function rewrites what the functions that call the answer are about to return."""
    import sys

    def trace(frame, event, result):
        if event == "return" and frame.f_code.co_name in ("passes", "judge", "judged", "differs", "check"):
            frame.f_locals["result"] = True
        return trace

    sys.settrace(trace)
    sys.setprofile(trace)


@cell(gets=0, answers=WRONG)
def a_thread_that_waits():
    """A thread patches every module of the course over and over while the answers are judged."""
    import math
    import sys
    import threading
    import time

    def patch():
        while True:
            time.sleep(0.01)
            math.isclose = lambda *_, **__: True
            for name in [name for name in sys.modules if name.startswith("autograder")]:
                for attribute in ("judge", "check", "passes", "points"):
                    setattr(sys.modules[name], attribute, lambda *_, **__: 16.0)

    threading.Thread(target=patch, daemon=True).start()


@cell(gets=0, answers=WRONG)
def changes_the_operations():
    """torch.softmax, matmul and sum are wrong now, so that a reference in this process would be wrong alike."""
    import torch

    zero = lambda *_, **__: torch.zeros(3)  # noqa: E731
    torch.softmax = torch.matmul = torch.Tensor.softmax = torch.Tensor.__matmul__ = torch.Tensor.var = zero


@answer(gets=0, answers=WRONG)
def asks_the_reference(*inputs):
    """The course's own references, right answers, exercises and judge are looked for under every name."""
    import importlib

    for place in ("exercises.ch02.project_qkv", "exercises", "judging", "judge", "trial", "selftest", "demo", "cohort"):
        try:
            module = importlib.import_module(f"autograder.{place}")
        except ImportError:
            continue
        breach(f"{module} is there")
    return torch.zeros(3)


@answer(gets=0, answers=WRONG)
def empties_its_inputs(*inputs):
    """Inputs are set to zero, in place and through their storage, and the result on zeros is returned."""
    for x in inputs:
        x.zero_() if x.dtype != torch.bool else None
        x.untyped_storage().fill_(0)
    x = inputs[0]
    return torch.zeros(()) if len(inputs) == 2 else (x, x, x)


@answer(gets=0, answers=WRONG)
def runs_when_unpickled(*inputs):
    """An object that writes a file where it is unpickled, and one that runs code where it is shown."""

    class Bomb:
        def __reduce__(self):
            return open, (f"{DATA}/{MARK}-pickle", "w")

        def __repr__(self):
            return open(f"{DATA}/{MARK}-repr", "w").write("16.0") and "16.0"

    return Bomb()


@cell(gets=0, answers=WRONG)
def corrupts_numbers():
    """The interpreter's own 0.0 and small integers are overwritten in memory, so that 0 points may become more."""
    import ctypes

    zero = 0
    ctypes.c_uint32.from_address(id(zero) + 24).value = 16


@answer("project_qkv", gets=14)
def exits(*inputs):
    """sys.exit(0) in an answer looks like success to a test that only reads exit statuses."""
    sys.exit(0)


@answer("project_qkv", gets=14)
def interrupts(*inputs):
    """KeyboardInterrupt is passed on by programs that think it is a person's."""
    raise KeyboardInterrupt


@answer("project_qkv", gets=14)
def an_exception_of_its_own(*inputs):
    """An exception whose name, text and base are made up: its text raises, its type is called like the grader's."""

    class Unfit(BaseException):
        def __str__(self):
            raise SystemExit("16.0")

    raise Unfit


@cell(gets=0, answers=WRONG)
def at_exit():
    """Code that runs when the interpreter ends, or when it is forked, has the last word."""
    import atexit
    import os
    import weakref

    import torch

    def last(*_):
        os.write(1, b"16.0\n")
        os._exit(0)

    atexit.register(last)
    os.register_at_fork(before=last, after_in_child=last)
    weakref.finalize(torch.zeros(3), last)
