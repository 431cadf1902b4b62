"""Run an answer so that it finds the usual state, whatever its caller set, and leaves none of its own."""

import contextlib
import io
import random
import warnings

import numpy as np
import torch

RANDOM = (
    (torch.get_rng_state, torch.set_rng_state),
    (np.random.get_state, np.random.set_state),
    (random.getstate, random.setstate),
)
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
)


@contextlib.contextmanager
def isolated(exact):
    """exact: float64 is the default dtype. What is printed or warned of inside is dropped."""
    streams, settings = [(write, read()) for read, write in RANDOM], [read() for read, _ in SETTINGS]
    nowhere = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(default_device_kept())
        stack.enter_context(calm())
        stack.enter_context(np.errstate(all="ignore"))
        stack.enter_context(contextlib.redirect_stdout(nowhere))
        stack.enter_context(contextlib.redirect_stderr(nowhere))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        torch.set_default_dtype(torch.float64 if exact else torch.float32)
        torch.set_grad_enabled(True)
        try:
            yield
        finally:
            for write, state in streams:
                write(state)
            for (read, write), value in zip(SETTINGS, settings, strict=True):
                if read() != value:  # some are dear to set, even to the same value
                    write(value)


@contextlib.contextmanager
def calm():
    """Ordinary tensors, on the CPU, of the dtypes they are given; whatever the caller, or the answer, has set."""
    with torch.inference_mode(False), torch.autocast("cpu", enabled=False), contextlib.ExitStack() as stack:
        if torch.get_default_device().type != "cpu":  # only then, since it slows every call
            stack.enter_context(torch.device("cpu"))
        yield


@contextlib.contextmanager
def default_device_kept():
    before = torch.get_default_device()
    try:
        yield
    finally:
        if torch.get_default_device() != before:
            torch.set_default_device(before if before.type != "cpu" else None)
