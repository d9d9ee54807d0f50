"""The rule of cells: nearest cell, ends clamped, the same for every finite double."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamdp.backends.sql.cells import cells_of
from streamdp.types import Grid

RESOLUTIONS = [Fraction(1), Fraction(1, 10), Fraction(5), Fraction(7, 3), Fraction(1, 10**9)]


def cell(value: float, grid: Grid) -> int:
    return int(cells_of(np.array([value]), grid)[0])


@given(st.integers(-(2**40), 2**40), st.sampled_from(RESOLUTIONS[:4]))
def test_integers_fall_in_their_exact_cell(value: int, resolution: Fraction) -> None:
    """Ties included: half a cell above a cell belongs to the next."""
    grid = Grid(resolution, -(2**46), 2**46)
    assert cell(float(value), grid) == math.floor(value / resolution + Fraction(1, 2))


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(RESOLUTIONS))
def test_every_double_falls_within_an_ulp_of_its_cell(value: float, resolution: Fraction) -> None:
    """Clipping before the scaling changes no cell, and nothing overflows (warnings are errors)."""
    grid = Grid(resolution, -1000, 1000)
    exact = Fraction(value) / resolution + Fraction(1, 2)
    slack = abs(exact) / 2**50 + Fraction(1, 2**52)
    clamped = [max(-1000, min(1000, math.floor(exact + off))) for off in (-slack, slack)]
    assert clamped[0] <= cell(value, grid) <= clamped[1]


def test_ties_and_the_ends_of_the_doubles() -> None:
    """The largest double below a half rounds up, as the sum with a half does; −0 is 0."""
    grid = Grid(Fraction(1), -5, 5)
    values = [0.5, -0.5, 1.5, 0.49999999999999994, -0.0, 5e-324, 1.7e308, -1.7e308]
    assert cells_of(np.array(values), grid).tolist() == [1, 0, 2, 1, 0, 0, 5, -5]
