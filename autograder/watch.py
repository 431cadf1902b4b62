"""What an answer uses beside its outputs: the largest tensor made on the way, kernels started, bytes kept."""

import sys
from collections import deque

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Largest(TorchDispatchMode):
    """The most elements that any tensor made inside holds. Storage is counted: a view or an expand costs nothing."""

    def __init__(self, inputs, wanted):
        super().__init__()
        self.given = {x.untyped_storage().data_ptr() for x in tree_leaves(inputs) if torch.is_tensor(x)}
        self.wanted, self.elements = wanted, 0

    @classmethod
    def _should_skip_dynamo(cls):  # else the first use imports all of torch._dynamo, seconds of the answer's time
        return False

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
        elif isinstance(x, tuple | list | set | frozenset | deque):
            waiting += x
        elif hasattr(x, "__dict__"):
            waiting += vars(x).values()
    return sum(storages.values())
