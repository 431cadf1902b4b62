"""The colours of queries, keys, values, weights and masks can be told apart, by everybody and in both themes."""

from itertools import combinations

import numpy as np
import pytest

NAMES = ("QUERY", "KEY", "VALUE", "WEIGHT", "MASK")
PAGES = {"light": ("#FFFFFF", "#222832"), "dark": ("#121212", "#CED6DD")}  # ground and ink, as the theme has them
# What dichromats see of linear RGB: Machado, Oliveira and Fernandes (2009), table 1, severity 1.
SIGHT = {
    "trichromat": np.eye(3),
    "protanope": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranope": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanope": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def srgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(rgb):
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """As WCAG 2.2 defines it."""
    low, high = sorted(TO_XYZ[1] @ linear(rgb) + 0.05 for rgb in (one, other))
    return high / low


def lab(rgb):
    """CIE L*a*b* of linear RGB, under D65."""
    x, y, z = TO_XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_are_alike(figures, sight):
    """A difference of 2.3 is just noticeable; 20 is another colour."""
    seen = {name: lab(SIGHT[sight] @ linear(srgb(getattr(figures, name)))) for name in NAMES}
    assert not [pair for pair in combinations(NAMES, 2) if np.linalg.norm(seen[pair[0]] - seen[pair[1]]) < 20]


@pytest.mark.parametrize("theme", PAGES)
@pytest.mark.parametrize("name", NAMES)
def test_each_stands_out_and_can_be_written_on(figures, name, theme):
    colour, (ground, ink) = srgb(getattr(figures, name)), map(srgb, PAGES[theme])
    assert contrast(colour, ground) >= 3.2
    assert contrast(figures.SHADE * colour + (1 - figures.SHADE) * ground, ink) >= 4.5
