"""A kernel watched in the interpreter: every address it touches, and who stored what.

    with checked() as report:
        out = attention(q, k, v)            # MemoryFault at the first wrong access
    assert (report.written(out) == 1).all()

Wrong is: an address outside every tensor that the kernel was given, or outside the view that it was given of one; two
programs that store to one element, or one store that does so twice; a load of what another program of the launch
stored, since programs run in any order. Lanes that a mask leaves out, and for which no `other` is given, are loaded as
NaN: a GPU leaves them undefined. What cannot be seen: an address that strays into another tensor that was given.
"""

import contextlib

import numpy as np
import torch
from triton.runtime import interpreter
from triton.runtime.interpreter import GridExecutor, TensorHandle
from triton.runtime.interpreter import InterpreterBuilder as Builder

WATCHED = ("create_masked_load", "create_masked_store", "create_atomic_rmw", "set_grid_idx")


class MemoryFault(Exception):
    """A kernel touched what it may not; the message says which program did what."""


class Region:
    """The storage of a tensor: which elements belong to the views that were given, and which program stored them."""

    def __init__(self, tensor, name):
        self.name, self.size, self.start = name, tensor.element_size(), tensor.untyped_storage().data_ptr()
        count = tensor.untyped_storage().nbytes() // self.size
        self.given, self.owner, self.stores = (
            np.zeros(count, bool),
            np.zeros(count, np.int64),
            np.zeros(count, np.int32),
        )

    def add(self, tensor):
        if tensor.numel():
            self.given[places(tensor, len(self.given)).ravel()] = True

    def hit(self, addresses):
        """Which addresses are elements that were given, and their numbers."""
        number, rest = np.divmod(addresses - self.start, self.size)
        inside = (number >= 0) & (number < len(self.given)) & (rest == 0)
        inside[inside] = self.given[number[inside]]
        return inside, number[inside]


def places(tensor, count):
    """The number within its storage of every element of a tensor."""
    numbers = torch.arange(count).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
    return numbers.numpy()


class Report:
    """What was seen. `written` counts the stores of the last launch that was given the tensor."""

    def __init__(self):
        self.regions = []

    def written(self, tensor):
        start = tensor.untyped_storage().data_ptr()
        region = next(region for region in reversed(self.regions) if region.start == start)
        return torch.from_numpy(region.stores[places(tensor, len(region.stores))])


@contextlib.contextmanager
def checked(shuffle=None):
    """Watch every launch; with a seed in `shuffle`, the programs of a launch run in another order."""
    plain = {name: getattr(Builder, name) for name in WATCHED}
    launch, watch = GridExecutor.__call__, Watch(shuffle, plain)
    for name in WATCHED:
        setattr(Builder, name, getattr(watch, name))
    GridExecutor.__call__ = lambda executor, *args, **kwargs: watch.launch(launch, executor, *args, **kwargs)
    try:
        yield watch.report
    finally:
        GridExecutor.__call__ = launch
        for name in WATCHED:
            setattr(Builder, name, plain[name])


def method(function):
    """A method of the watch in place of one of the builder's: it is called with the builder first."""
    return lambda watch: lambda builder, *args, **kwargs: function(watch, builder, *args, **kwargs)


class Watch:
    def __init__(self, shuffle, plain):
        self.report, self.live, self.shuffle, self.plain, self.order = Report(), {}, shuffle, plain, None

    def launch(self, launch, executor, *args, **kwargs):
        self.live, self.order = {}, None
        for name, given in [*zip(executor.arg_names, args, strict=False), *kwargs.items()]:
            tensor = getattr(given, "base", given) if type(given).__name__ == "TensorDescriptor" else given
            if isinstance(tensor, torch.Tensor):
                start = tensor.untyped_storage().data_ptr()
                self.live.setdefault(start, Region(tensor, name)).add(tensor)
        self.report.regions += self.live.values()
        return launch(executor, *args, **kwargs)

    @property
    def program(self):
        """The number of the program that runs, from 1 on."""
        (x, y, z), (_, height, depth) = (
            interpreter.interpreter_builder.grid_idx,
            interpreter.interpreter_builder.grid_dim,
        )
        return 1 + (x * height + y) * depth + z

    def touch(self, what, pointers, mask):
        """The regions and elements that are touched."""
        addresses = np.atleast_1d(pointers.data).astype(np.int64)
        addresses = addresses[np.broadcast_to(mask.data, addresses.shape)]
        for region in self.live.values():
            inside, numbers = region.hit(addresses)
            if len(numbers):
                yield region, numbers
                addresses = addresses[~inside]
        if len(addresses):
            where = interpreter.interpreter_builder.grid_idx
            raise MemoryFault(f"program {where}: a {what} of {len(addresses)} lanes lies outside every tensor")

    @property
    @method
    def create_masked_load(self, builder, pointers, mask, other, *rest, **named):
        for region, numbers in self.touch("load", pointers, mask):
            if not np.isin(region.owner[numbers], (0, self.program)).all():
                raise MemoryFault(f"program {builder.grid_idx} loads what another program stored in {region.name}")
        if other is None and not np.all(mask.data):
            other = undefined(pointers)
        return self.plain["create_masked_load"](builder, pointers, mask, other, *rest, **named)

    @property
    @method
    def create_masked_store(self, builder, pointers, value, mask, *rest, **named):
        for region, numbers in self.touch("store", pointers, mask):
            if not np.isin(region.owner[numbers], (0, self.program)).all():
                raise MemoryFault(f"program {builder.grid_idx} stores where another program stored, in {region.name}")
            if len(np.unique(numbers)) < len(numbers):
                raise MemoryFault(f"program {builder.grid_idx} stores twice at once to an element of {region.name}")
            region.owner[numbers] = self.program
            region.stores[numbers] += 1
        return self.plain["create_masked_store"](builder, pointers, value, mask, *rest, **named)

    @property
    @method
    def create_atomic_rmw(self, builder, op, pointers, value, mask, *rest):
        for _ in self.touch("atomic operation", pointers, mask):
            pass
        return self.plain["create_atomic_rmw"](builder, op, pointers, value, mask, *rest)

    @property
    @method
    def set_grid_idx(self, builder, x, y, z):
        if self.shuffle is None:
            return self.plain["set_grid_idx"](builder, x, y, z)
        size = builder.grid_dim
        if self.order is None:
            self.order = np.random.default_rng(self.shuffle).permutation(np.prod(size))
        number = self.order[np.ravel_multi_index((x, y, z), size)]
        return self.plain["set_grid_idx"](builder, *map(int, np.unravel_index(number, size)))


def undefined(pointers):
    """NaN, or a number that is none of anybody's."""
    kind = pointers.get_element_ty()
    dtype = interpreter._get_np_dtype(kind)
    value = 0x7FC0 if dtype == np.uint16 else np.nan if np.issubdtype(dtype, np.floating) else 0x5A
    return TensorHandle(np.full(np.shape(pointers.data), value, dtype), kind)
