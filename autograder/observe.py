"""Call an answer on a case's inputs and write down what it does. The only code that runs an answer.

Imports nothing of the course but `draw`, so that it can run in a process that holds nothing else. What it reports about
values and exceptions decides; what it sees on the way (largest tensor, launches) can be forged by an answer that shares
its process, and therefore only informs.
"""

import contextlib
import inspect
import io
import random
import sys
import textwrap
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

try:  # a module of the package here, a file beside its fellows in the worker
    from .deadline import OutOfTime, deadline
    from .draw import Draw
except ImportError:
    from deadline import OutOfTime, deadline
    from draw import Draw

NUMBERS = (bool, int, float, np.bool_, np.number)
MESSAGE = 2000  # characters kept of an exception's message


@dataclass(frozen=True)
class Look:
    """What to look at: plain data, so that it can be sent to another process."""

    gradient: tuple = ()  # names of inputs: look at their gradients instead of the outputs
    drive: str = ""  # source of a function drive(answer, …) that uses a class
    largest: bool = False
    kept: bool = False
    launches: bool = False
    exact: bool = False  # make float64 the default dtype, for the reference
    seconds: float = 5.0


@dataclass
class Seen:
    """What an answer did on one case."""

    outputs: tuple = ()  # float64 tensors
    kinds: tuple = ()  # the dtypes they came in; "int", "float", "bool" for plain numbers
    error: tuple | None = None  # (type, message)
    changed: tuple = ()  # names of inputs written to
    largest: int = 0  # elements of the largest tensor made on the way
    kept: int = 0  # bytes that the objects made of a class hold afterwards
    launches: int = 0  # Triton kernels started
    late: bool = False


def observe(answer, inputs, look=Look(), given=None):
    """Call `answer` by position (its arguments may have other names) on copies of `inputs`, a dict in signature order.

    given: functions that the answer finds under the names of its own helpers while it runs.
    """
    mine = tree_map(lambda x: copied(x, x.dtype) if torch.is_tensor(x) else x, inputs)
    leaves = [mine[name].requires_grad_() for name in look.gradient]
    mine |= {name: mine[name].clone() for name in look.gradient}  # a leaf would refuse to be changed in place
    seen, made = Seen(), []
    with isolated(look.exact), Largest(mine, look.largest) as watch, Launches(look.launches) as launched:
        try:
            with deadline(look.seconds), lent(answer, given or {}):
                result = used(answer, look, made)(*mine.values())
                if look.gradient:
                    result = gradients(result, leaves)
                seen.outputs, seen.kinds = flat(result)
        except OutOfTime as problem:
            seen.error, seen.late = ("OutOfTime", str(problem)), True
        except (Exception, SystemExit, KeyboardInterrupt) as problem:
            seen.error = (type(problem).__name__, str(problem)[:MESSAGE])
    seen.changed = tuple(name for name in inputs if differs(mine[name], inputs[name]))
    seen.largest, seen.launches = watch.elements, launched.count
    seen.kept = held(made) if look.kept else 0
    return seen


def copied(x, dtype):
    """A copy in memory of its own, with the same strides: a kernel may depend on them."""
    if x.is_contiguous() or 0 in x.stride():
        return x.detach().to(dtype, copy=True)
    span = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    return torch.zeros(span, dtype=dtype, device=x.device).as_strided(x.shape, x.stride()).copy_(x.detach())


def used(answer, look, made):
    """The function to call: the answer, or the driver of a class that notes every object made."""
    if not callable(answer):
        raise TypeError(f"the answer is {type(answer).__name__}, not a function: hand over its name, without brackets")
    if not look.drive:
        return answer

    def make(*args):
        made.append(answer(*args))
        return made[-1]

    namespace = {"torch": torch}
    exec(compile(textwrap.dedent(look.drive), "<driver>", "exec"), namespace)
    driver = next(value for value in namespace.values() if inspect.isfunction(value))
    return partial(driver, make)


def gradients(result, leaves):
    """The gradients that `leaves` receive from a fixed random weighting of the outputs (keyed by place and shape)."""
    outputs = [t for t in listed(result) if torch.is_tensor(t) and t.requires_grad]
    if not outputs:
        raise ValueError("no gradient reaches the inputs; stay in torch: no numpy, item, detach, data or no_grad")
    loss = 0.0
    for place, output in enumerate(listed(result)):
        if torch.is_tensor(output) and output.requires_grad:
            cotangent = Draw("cotangent", place, tuple(output.shape)).normal(*output.shape)
            loss = loss + (output.double() * cotangent).sum()
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def listed(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def flat(result):
    """The outputs in float64, copied at once since an answer may reuse its buffers, and what they were."""
    outputs, kinds = [], []
    for value in listed(result):
        if isinstance(value, np.ndarray):
            value = torch.from_numpy(value)
        if not isinstance(value, (torch.Tensor, *NUMBERS)):
            raise TypeError(f"returned {type(value).__name__}; a tensor or a number is wanted")
        kinds.append(kind(value))
        outputs.append(torch.as_tensor(value).detach().to("cpu", torch.float64, copy=True))
    return tuple(outputs), tuple(kinds)


def kind(value):
    if torch.is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    return "bool" if isinstance(value, bool | np.bool_) else "int" if isinstance(value, int | np.integer) else "float"


def differs(a, b):
    """Whether tensors below a changed: in shape, or in any value (two NaN are the same)."""
    pairs = zip(tree_leaves(a), tree_leaves(b), strict=False)
    tensors = [(x.detach(), y) for x, y in pairs if torch.is_tensor(x) and torch.is_tensor(y)]
    return any(x.shape != y.shape or not torch.equal(x.nan_to_num(), y.nan_to_num()) for x, y in tensors)


class Largest(TorchDispatchMode):
    """The most elements that any tensor made inside holds. Storage is counted: a view or an expand costs nothing."""

    def __init__(self, inputs, wanted):
        super().__init__()
        self.given = {x.untyped_storage().data_ptr() for x in tree_leaves(inputs) if torch.is_tensor(x)}
        self.wanted, self.elements = wanted, 0

    def __enter__(self):
        return super().__enter__() if self.wanted else self

    def __exit__(self, *exc):
        return super().__exit__(*exc) if self.wanted else None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for t in tree_leaves(result):
            if torch.is_tensor(t) and t.untyped_storage().data_ptr() not in self.given:
                self.elements = max(self.elements, t.untyped_storage().nbytes() // t.element_size())
        return result


class Launches:
    """How many Triton kernels are started, compiled or interpreted."""

    def __init__(self, wanted):
        self.wanted, self.count, self.patched = wanted, 0, []

    def __enter__(self):
        if self.wanted and "triton" in sys.modules:
            from triton.runtime.interpreter import GridExecutor
            from triton.runtime.jit import JITFunction

            for owner, method in ((GridExecutor, "__call__"), (JITFunction, "run")):
                self.patch(owner, method, getattr(owner, method))
        return self

    def patch(self, owner, method, original):
        def counted(*args, **kwargs):
            self.count += 1
            return original(*args, **kwargs)

        self.patched.append((owner, method, original))
        setattr(owner, method, counted)

    def __exit__(self, *_):
        for owner, method, original in self.patched:
            setattr(owner, method, original)


def held(objects):
    """Bytes of the distinct storages that can be reached from the attributes of `objects`."""
    storages, waiting, known = {}, list(objects), set()
    while waiting:
        x = waiting.pop()
        if id(x) in known:
            continue
        known.add(id(x))
        if torch.is_tensor(x):
            storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        elif isinstance(x, np.ndarray):
            storages[x.ctypes.data] = x.nbytes
        elif isinstance(x, dict):
            waiting += x.values()
        elif isinstance(x, tuple | list | set):
            waiting += x
        elif hasattr(x, "__dict__"):
            waiting += vars(x).values()
    return sum(storages.values())


@contextlib.contextmanager
def lent(answer, helpers):
    """While it runs, the answer finds `helpers` in place of its own functions of those names."""
    namespace = globals_of(answer) if helpers else {}
    before = {name: namespace[name] for name in helpers if name in namespace}
    namespace.update({name: helpers[name] for name in before})
    try:
        yield
    finally:
        namespace.update(before)


def globals_of(answer):
    function = inspect.unwrap(answer.func if isinstance(answer, partial) else answer)
    if inspect.isclass(function):
        function = next(filter(inspect.isfunction, vars(function).values()), None)
    return getattr(function, "__globals__", {})


RANDOM = (
    (torch.get_rng_state, torch.set_rng_state),
    (np.random.get_state, np.random.set_state),
    (random.getstate, random.setstate),
)
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
)


@contextlib.contextmanager
def isolated(exact):
    """Whatever an answer does to the state of torch, numpy and Python is undone; what it prints is dropped."""
    streams, settings = [(write, read()) for read, write in RANDOM], [read() for read, _ in SETTINGS]
    torch.set_default_dtype(torch.float64 if exact else torch.float32)
    torch.set_grad_enabled(True)
    try:
        nowhere = io.StringIO()
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for write, state in streams:
            write(state)
        for (read, write), value in zip(SETTINGS, settings, strict=True):
            if read() != value:  # some are dear to set, even to the same value
                write(value)
