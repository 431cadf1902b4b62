"""Attacks on what is observed inside the student's process: a flaw of an otherwise right answer, hidden.

An answer that changes its input, or widens its output, is worth 15 points. Whatever it says of itself, it gets no more.
"""

import inspect
import math

import torch

from .attack import RIGHT, answer, cell


def changing(q, k, v, mask=None):
    q.div_(math.sqrt(q.shape[-1]))
    scores = q @ k.transpose(-2, -1)
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0)
    return weights @ v, weights


def widening(q, k, v, mask=None):
    scores = q.float() @ k.float().transpose(-2, -1) / math.sqrt(q.shape[-1])
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0)
    return weights @ v.float(), weights


NAME = "scaled_dot_product_attention"
CHANGES, WIDENS = (f"import math\n\n{inspect.getsource(function)}" for function in (changing, widening))
CHANGED = RIGHT | {NAME: CHANGES.replace("changing", NAME)}
WIDE = RIGHT | {NAME: WIDENS.replace("widening", NAME)}


@cell(gets=15, answers=CHANGED)
def changes_its_input():
    """Nothing is hidden: an answer that changes its input loses that point and no other."""


@cell(gets=15, answers=WIDE)
def widens_its_output():
    """Nothing is hidden: an answer that returns float32 for half precision loses that point and no other."""


@cell(gets=15, answers=CHANGED, stock=True)
def equal_says_yes():
    """torch.equal is patched, by which changes of an input are found."""
    import torch

    torch.equal = torch.Tensor.equal = lambda *_: True


@cell(gets=14, answers=CHANGED)
def copies_share_memory():
    """Tensor.to and clone hand out the tensor itself, so that what is changed is changed on both sides; which
    costs the gradient, too."""
    import torch

    to = torch.Tensor.to
    torch.Tensor.to = lambda self, *arguments, copy=False, **keywords: to(self, *arguments, **keywords)
    torch.Tensor.clone = lambda self, **_: self


@cell(gets=15, answers=CHANGED)
def a_mode_that_answers():
    """A mode of torch's, entered and never left, answers in place of torch.equal; nothing of torch is assigned to."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Agrees(TorchFunctionMode):
        def __torch_function__(self, function, types, arguments=(), keywords=None):
            return function is torch.equal or function(*arguments, **(keywords or {}))

    Agrees().__enter__()


@cell(gets=15, answers=CHANGED)
def another_kernel():
    """The dispatcher is given another implementation of aten::equal."""
    import torch

    global library
    library = torch.library.Library("aten", "IMPL")
    library.impl("equal", lambda a, b: True, "CPU")


@cell(gets=15, answers=CHANGED)
def patches_the_observer():
    """The observer's functions, found by the garbage collector wherever they are kept, are given other code."""
    import gc
    from types import FunctionType

    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__name__ == "differs":
            function.__code__ = (lambda *_, **__: False).__code__


@answer(NAME, gets=15, before=CHANGES)
def rewrites_the_record(q, k, v, mask=None):
    """The frames that called the answer, reached through a traceback, hold the record of what was seen."""
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    while frame := frame.f_back:
        if seen := frame.f_locals.get("seen"):
            put = lambda self, name, value: object.__setattr__(self, name, () if name == "changed" else value)  # noqa: E731
            type(seen).__setattr__ = put
    return changing(q, k, v, mask)


@answer(NAME, gets=15, before=WIDENS)
def another_kind(q, k, v, mask=None):
    """The function that names a dtype, found through the frames of the call, is replaced."""
    import sys

    frame = sys._getframe()
    while frame := frame.f_back:
        if "kind" in frame.f_globals:
            frame.f_globals["kind"] = lambda value: str(q.dtype).removeprefix("torch.")
    return widening(q, k, v, mask)


@answer(NAME, gets=15, before=WIDENS, stock=True)
def a_dtype_that_lies(q, k, v, mask=None):
    """The output is a subclass of Tensor, in float32, whose property `dtype` says float16."""

    class Narrow(torch.Tensor):
        dtype = property(lambda self: q.dtype)

    return tuple(x.as_subclass(Narrow) for x in widening(q, k, v, mask))
