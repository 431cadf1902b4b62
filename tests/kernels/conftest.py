"""Kernels are interpreted here. Whether they are is read when they are made, so this comes before Triton."""

import os

os.environ["TRITON_INTERPRET"] = "1"
