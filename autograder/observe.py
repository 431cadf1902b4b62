"""Call an answer on a case's inputs and write down what it does. The only code that runs an answer.

Imports nothing of the course but what can be copied along into a process that holds nothing else. `act` runs there;
`looked_at` makes of its account what the judge goes by, in the judge's process. Values, dtypes, exceptions and inputs
written to cannot be made better by an answer than they are. What is seen on the way (the largest tensor, bytes kept,
launches) can be forged by code that shares the process.
"""

import contextlib
import inspect
import textwrap
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

from .deadline import OutOfTime, deadline
from .draw import Draw
from .isolation import calm, isolated
from .watch import Largest, Launches, held

NUMBERS = (bool, int, float, np.bool_, np.number)
MESSAGE = 2000  # characters kept of an exception's message
OUTPUTS, ELEMENTS = 64, 1 << 21  # that an answer may return: outputs, and elements of all


@dataclass(frozen=True)
class Look:
    """What to look at: plain data, so that it can be sent to another process."""

    gradient: tuple = ()  # names of inputs: look at their gradients instead of the outputs
    drive: str = ""  # source of a function drive(answer, …) that uses a class
    largest: bool = False
    kept: bool = False
    launches: bool = False
    unchanged: tuple = ()  # names of inputs: look at whether they were written into
    raises: str = ""  # the exception that is wanted: one derived from it goes under its name
    exact: bool = False  # make float64 the default dtype, for the reference
    seconds: float = 10.0  # an answer's first call may import much, on a busy machine


@dataclass
class Seen:
    """What an answer did on one case."""

    outputs: tuple = ()  # float64 tensors
    kinds: tuple = ()  # the dtypes they came in; "int", "float", "bool" for plain numbers
    error: tuple | None = None  # (type, message); the type is "" when nothing was raised and the message is ours
    changed: tuple = ()  # names of inputs written to
    largest: int = 0  # elements of the largest tensor made on the way
    kept: int = 0  # bytes that the objects made of a class hold afterwards
    launches: int = 0  # Triton kernels started
    late: bool = False


@dataclass
class Raw:
    """What `act` tells of one call; the fields that Seen has too mean the same."""

    outputs: tuple = ()  # tensors as they were returned, and plain numbers
    error: tuple | None = None
    after: dict = field(default_factory=dict)  # the inputs after the call, when it is looked at whether they changed
    largest: int = 0
    kept: int = 0
    launches: int = 0
    late: bool = False


class Unfit(Exception):
    """What an answer is or returns cannot be judged; the message says why."""


def observe(answer, inputs, look=Look(), given=None):
    """What `answer` does, called by position (its arguments may have other names) on copies of `inputs`, a dict in
    signature order.

    given: functions that the answer finds under the names of its own helpers while it runs.
    """
    return looked_at(act(answer, inputs, look, given), inputs, look)


def act(answer, inputs, look, given=None):
    """The Raw account of one call. The only code that runs an answer."""
    mine = tree_map(lambda x: copied(x, x.dtype) if torch.is_tensor(x) else x, inputs)
    leaves = [mine[name].requires_grad_() for name in look.gradient]
    raw, made = Raw(), []
    with isolated(look.exact), Largest(mine, look.largest) as watch, Launches(look.launches) as launched:
        mine |= {name: mine[name].clone() for name in look.gradient}  # a leaf would refuse to be changed in place
        try:
            with deadline(look.seconds), lent(answer, given or {}):
                result = used(answer, look, made)(*mine.values())
            with calm():
                raw.outputs = taken(gradients(result, leaves) if leaves else result)
        except OutOfTime as problem:
            raw.error, raw.late = ("OutOfTime", str(problem)), True
        except KeyboardInterrupt:
            raise  # the person, not the answer
        except BaseException as problem:
            raw.error = (called(problem, look.raises), words(problem))
    raw.after = {name: mine[name] for name in look.unchanged if has_tensors(inputs[name])}
    raw.largest, raw.launches = watch.elements, launched.count
    raw.kept = held(made) if look.kept else 0
    return raw


def looked_at(raw, inputs, look):
    """A Seen of a Raw, which may come from a process that is not trusted."""
    seen = Seen(error=raw.error, largest=raw.largest, kept=raw.kept, launches=raw.launches, late=raw.late)
    if raw.error is None:
        try:
            seen.outputs, seen.kinds = flat(raw.outputs)
        except Unfit as problem:
            seen.error = ("", str(problem))
    given = [name for name in look.unchanged if has_tensors(inputs[name])]
    seen.changed = tuple(name for name in given if differs(raw.after.get(name), inputs[name]))
    return seen


def is_float(x):
    return torch.is_tensor(x) and x.is_floating_point()


def copied(x, dtype):
    """A copy in memory of its own, with the same strides: a kernel may depend on them."""
    if x.is_contiguous() or 0 in x.stride():
        return x.detach().to(dtype, copy=True)
    span = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    return torch.zeros(span, dtype=dtype, device=x.device).as_strided(x.shape, x.stride()).copy_(x.detach())


def used(answer, look, made):
    """The function to call: the answer, or the driver of a class that notes every object made."""
    if not callable(answer):
        raise Unfit(f"the answer is {type(answer).__name__}, not a function: hand over its name, without brackets")
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
    outputs = [(place, t) for place, t in enumerate(listed(result)) if torch.is_tensor(t) and t.requires_grad]
    if not outputs:
        raise Unfit("no gradient reaches the inputs; stay in torch: no numpy, item, detach, data or no_grad")
    with torch.enable_grad():
        loss = 0.0
        for place, output in outputs:
            cotangent = Draw("cotangent", place, tuple(output.shape)).normal(*output.shape)
            loss = loss + (output.double() * cotangent).sum()
        found = differentiated(loss, leaves)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


def differentiated(loss, leaves):
    try:
        return torch.autograd.grad(loss, leaves, allow_unused=True)
    except RuntimeError as problem:
        if "modified by an inplace operation" not in str(problem):
            raise
        raise Unfit(
            "no gradient can be taken: a tensor that it needs was written into. Make new ones: x = x / y in place of "
            "x /= y, exp in place of exp_"
        ) from None


def listed(result):
    return list(result) if isinstance(result, tuple | list) else [result]


def fit(result):
    """The values that were returned; Unfit when they cannot be judged."""
    values = [torch.from_numpy(x.copy()) if isinstance(x, np.ndarray) else x for x in listed(result)]
    if len(values) > OUTPUTS:
        raise Unfit(f"returned {len(values)} values, far too many")
    for value in values:
        require_fit(value)
    if (elements := sum(value.numel() for value in values if torch.is_tensor(value))) > ELEMENTS:
        raise Unfit(f"returned {elements} elements, far too many")
    return values


def taken(result):
    """The same, tensors copied at once, since an answer may reuse its buffers."""
    values = fit(result)
    with torch._C.DisableTorchFunctionSubclass():  # a subclass of Tensor could answer for itself
        return tuple(value.detach().to("cpu", copy=True) if torch.is_tensor(value) else value for value in values)


def flat(result):
    """The outputs in float64, and what they were."""
    values = fit(result)
    with torch._C.DisableTorchFunctionSubclass():
        outputs = tuple(torch.as_tensor(value, dtype=torch.float64).as_subclass(torch.Tensor) for value in values)
    return outputs, tuple(map(kind, values))


def require_fit(value):
    if value is None:
        raise Unfit("returned nothing; is a `return` missing?")
    if not isinstance(value, (torch.Tensor, *NUMBERS)):
        raise Unfit(f"returned {type(value).__name__}; a tensor or a number is wanted")
    if torch.is_tensor(value) and (value.layout != torch.strided or value.is_complex() or value.is_nested):
        raise Unfit(f"returned a {value.dtype} tensor of layout {value.layout}; a dense real one is wanted")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise Unfit("returned a whole number of more than 64 bits")


def kind(value):
    if torch.is_tensor(value):
        return str(value.dtype).removeprefix("torch.")
    return "bool" if isinstance(value, bool | np.bool_) else "int" if isinstance(value, int | np.integer) else "float"


def has_tensors(value):
    return any(map(torch.is_tensor, tree_leaves(value)))


def differs(a, b):
    """Whether a is not b any more: in form, or in any value (two NaN are the same)."""
    one, other = tree_leaves(a), tree_leaves(b)
    return len(one) != len(other) or not all(map(same, one, other))


def same(x, y):
    if not torch.is_tensor(x) or not torch.is_tensor(y):
        return not torch.is_tensor(x) and not torch.is_tensor(y)
    return x.shape == y.shape and x.dtype == y.dtype and torch.equal(x.detach().nan_to_num(), y.nan_to_num())


def undefined(name):
    """The error of a function that is not there."""
    return "NameError", f"`{name}` is not defined in the notebook"


def called(problem, wanted):
    if isinstance(problem, Unfit):
        return ""
    return wanted if wanted in [kind.__name__ for kind in type(problem).__mro__] else type(problem).__name__


def words(problem):
    """An exception's message, without what would disturb a terminal."""
    try:
        said = str(problem)
    except BaseException:
        return "its message cannot be read"
    said = "".join(c if c.isprintable() or c == "\n" else " " for c in said[:MESSAGE])
    return said.encode("utf-8", "backslashreplace").decode()


@contextlib.contextmanager
def lent(answer, helpers):
    """While it runs, the answer finds `helpers` in place of its own functions of those names."""
    namespace = globals_of(answer) if helpers else {}
    before = {name: namespace[name] for name in helpers if name in namespace}
    namespace.update({name: with_defaults_of(own, helpers[name]) for name, own in before.items()})
    try:
        yield
    finally:
        namespace.update(before)


def with_defaults_of(own, helper):
    """The helper, called as the answer's own function may be: by its names for the arguments, and with its defaults."""

    def called_by(*args, **kwargs):
        try:
            bound = inspect.signature(own).bind(*args, **kwargs)
        except (TypeError, ValueError):  # it has no signature, or would refuse the call
            return helper(*args, **kwargs)
        bound.apply_defaults()
        return helper(*bound.args, **bound.kwargs)

    return called_by


def globals_of(answer):
    function = inspect.unwrap(answer.func if isinstance(answer, partial) else answer)
    if not hasattr(function, "__globals__"):  # a class, or an object that can be called
        function = function if inspect.isclass(function) else type(function)
        function = next(filter(inspect.isfunction, vars(function).values()), None)
    return getattr(function, "__globals__", {})
