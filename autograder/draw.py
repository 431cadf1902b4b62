"""Inputs for a case: reproducible, of sizes that hide nothing, the same on every machine.

Only raw bits are taken from numpy's Philox counter (stable across numpy versions, NEP 19); everything else is derived
from them here, so that a re-grade years later draws what the first grade drew.
"""

import hashlib
from math import prod

import numpy as np
import torch

# `sizes` lets no two be equal, and none is 1. D and Dv leave out 4, 8, 16 and 64, so that a constant typed in place
# of √D is wrong; N, S and Dv leave out squares, so that their roots are not a rounded √D.
SIZES = {
    "B": (2, 3),
    "H": (2, 3, 4),
    "Hkv": (2, 3),
    "N": (5, 6, 7, 8),
    "S": (6, 7, 8, 10, 11),
    "D": (3, 5, 6, 7, 10, 12),
    "Dv": (3, 5, 6, 7, 11),
    "E": (9, 10, 11, 13, 15),
    "M": (17, 19, 23, 29),
}


class Draw:
    """A stream of random inputs named by a key; the same key gives the same inputs, whatever ran before."""

    def __init__(self, *key):
        digest = hashlib.sha256(repr(key).encode()).digest()
        self.bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def uniform(self, *shape):
        """Numbers in (0, 1), float64."""
        raw = self.bits.random_raw(prod(shape)).reshape(shape or (1,))
        values = torch.from_numpy(((raw >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
        return values if shape else values[0]

    def normal(self, *shape, scale=1.0, mean=0.0):
        """Independent normal numbers, float64 (Box and Muller 1958)."""
        radius = (-2 * self.uniform(*shape).log()).sqrt()
        return mean + scale * radius * (2 * torch.pi * self.uniform(*shape)).cos()

    def between(self, low, high):
        """A number, uniform between the two."""
        return low + (high - low) * float(self.uniform())

    def integers(self, low, high, *shape):
        """Whole numbers from low to high − 1; a plain int when no shape is given."""
        drawn = (low + (high - low) * self.uniform(*shape)).floor().long()
        return drawn if shape else int(drawn)

    def choice(self, options):
        return options[self.integers(0, len(options))]

    def permutation(self, n):
        return self.uniform(n).argsort()

    def increasing(self, n, start=(1, 9), step=(1, 4)):
        """n growing whole numbers that start late and skip, as positions from a cache do."""
        return self.integers(*start) + self.integers(*step, n).cumsum(0)

    def sizes(self, letters, even=""):
        """One size a letter, all different, none 1; those in `even` are even; Hq / Hkv is whole, and is not Hkv."""
        letters = letters.split()
        options = {letter: SIZES[letter] for letter in letters if letter != "Hq"}
        options |= {letter: [n for n in options[letter] if n % 2 == 0] for letter in even.split()}
        for _ in range(1000):
            drawn = {letter: self.choice(sizes) for letter, sizes in options.items()}
            drawn |= {"Hq": drawn["Hkv"] * (5 - drawn["Hkv"])} if "Hq" in letters else {}
            if len(set(drawn.values())) == len(drawn):
                return tuple(drawn[letter] for letter in letters)
        raise ValueError(f"no sizes for {letters} are all different; leave a letter out of `even`, or out")

    def mask(self, *shape, keep=0.6):
        """Boolean, True = may attend; varies along every axis, and every row keeps at least one key."""
        mask = self.uniform(*shape) < keep
        some = self.integers(0, shape[-1], *shape[:-1], 1)
        return mask.scatter(-1, some, True)

    def signs(self, *shape):
        return torch.where(self.uniform(*shape) < 0.5, -1.0, 1.0).double()
