"""Logistic curves about the configured guess, for streams that begin or have changed."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from streamdp.learning.mixture.curves import Curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.types import FloatArray, Grid

SHIFTS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
"""Shifts of the guessed distribution, in half widths."""

STRETCHES = (-3.0, -1.5, -0.75, -0.3, 0.0, 0.3, 0.75, 1.5, 3.0)
"""Logarithms of what it is stretched by; wider ones follow, up to the width of the grid."""

NORMAL_DECILE = 1.28
"""Deviations between the middle of a normal law and its last tenth."""

TAIL = 0.004
"""Share of a logistic law beyond its outer knots."""


@functools.lru_cache(maxsize=64)
def broad_curves(grid: Grid, guess: tuple[float, float]) -> Curves:
    """Logistic laws about a guess, from a twentieth of its scale to the width of the grid.

    Args:
        grid: Public cells.
        guess: Location and deviation, in the unit of the column.
    """
    cell = float(grid.resolution)
    shares = np.concatenate(([TAIL], np.arange(1, 40) / 40.0, [1.0 - TAIL]))
    standard = np.log(shares / (1.0 - shares)) / math.log(9.0)
    inner = (guess[0] + NORMAL_DECILE * guess[1] * standard) / cell - 0.5
    ends = 2.0 * inner[0] - inner[1], 2.0 * inner[-1] - inner[-2]
    law = Distribution(
        np.concatenate((ends[:1], inner, ends[1:])), np.concatenate(([0.0], shares, [1.0]))
    )
    span, step = float(grid.upper - grid.lower + 1), STRETCHES[-1] - STRETCHES[-2]
    farther = np.arange(STRETCHES[-1] + step, math.log(span / law.half_width), step)
    return Curves(law, np.array(list(itertools.product(SHIFTS, (*STRETCHES, *farther)))))


@functools.lru_cache(maxsize=64)
def broad_weights(curves: Curves) -> FloatArray:
    """Weights of broad curves among themselves, before any release; they sum to one."""
    shifts, stretches = np.abs(curves.moves).T
    weights = np.exp(-shifts - 0.5 * stretches)
    weights /= weights.sum()
    weights.flags.writeable = False
    return np.asarray(weights)
