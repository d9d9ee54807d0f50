"""Curves: a predictive distribution on a grid of shifts and scale factors.

Learned distributions move by `MOVES`. Logistic ones about the configured guess, the broad curves,
are for streams that begin or have changed.

About its curve a batch varies as a Brownian bridge of one of a few sizes.

References:
    Ferguson 1973 (a Dirichlet process varies about its mean as a bridge does).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from streamdp.learning.mixture.distribution import Distribution, LocationScale
from streamdp.types import FloatArray, Grid

_FAR = np.array([0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0])
SHIFTS = np.concatenate((-_FAR[::-1], [0.0], _FAR))
"""Moves of a distribution that was learned, in half widths."""

STRETCHES = np.array([-1.2, -0.5, -0.2, 0.0, 0.2, 0.5, 1.2])
"""Logarithms of what it is stretched by."""

MOVES = np.array(list(itertools.product(SHIFTS, STRETCHES)))
"""All pairs, shape (r, 2)."""

BROAD_SHIFTS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
"""Shifts of the guessed distribution, in half widths."""

BROAD_STRETCHES = (-3.0, -1.5, -0.75, -0.3, 0.0, 0.3, 0.75, 1.5, 3.0)
"""Logarithms of what it is stretched by; wider ones follow, up to the width of the grid."""

NORMAL_DECILE = 1.28
"""Deviations between the middle of a normal law and its last tenth."""

TAIL = 0.004
"""Share of a logistic law beyond its outer knots."""


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """One distribution F, shifted and scaled about its median on a grid.

    Args:
        of: The distribution.
        moves: Shifts in half widths, and logarithms of stretches, shape (r, 2).
    """

    of: Distribution
    moves: FloatArray

    def cdf(self, cells: FloatArray) -> FloatArray:
        """Return the cdf of each curve at some cells, shape (r, c)."""
        centre, half_width = self.of.centre, self.of.half_width
        shifts, stretches = self.moves[:, :1] * half_width, np.exp(self.moves[:, 1:])
        return self.of.cdf((cells - centre - shifts) / stretches + centre)

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles of each curve at some levels, shape (r, s)."""
        centre, half_width = self.of.centre, self.of.half_width
        shifts, stretches = self.moves[:, :1] * half_width, np.exp(self.moves[:, 1:])
        return np.asarray((self.of.quantile(levels) - centre) * stretches + centre + shifts)

    def away(self, place: LocationScale) -> FloatArray:
        """Return shift and log scale factor of each curve against a location and scale, (r, 2)."""
        centres = self.of.centre + self.moves[:, 0] * self.of.half_width
        widths = np.log(self.of.half_width / place.half_width) + self.moves[:, 1]
        return np.column_stack(((centres - place.centre) / place.half_width, widths))


def first_weights() -> FloatArray:
    """Weights of `MOVES` before any release; they sum to one."""
    shifts, stretches = np.abs(MOVES).T
    weights = np.exp(-2.0 * np.sqrt(shifts) - 1.5 * stretches)
    return np.asarray(weights / weights.sum())


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
    span, step = float(grid.upper - grid.lower + 1), BROAD_STRETCHES[-1] - BROAD_STRETCHES[-2]
    farther = np.arange(BROAD_STRETCHES[-1] + step, math.log(span / law.half_width), step)
    return Curves(
        law, np.array(list(itertools.product(BROAD_SHIFTS, (*BROAD_STRETCHES, *farther))))
    )


@functools.lru_cache(maxsize=64)
def broad_weights(curves: Curves) -> FloatArray:
    """Weights of broad curves among themselves, before any release; they sum to one."""
    shifts, stretches = np.abs(curves.moves).T
    weights = np.exp(-shifts - 0.5 * stretches)
    weights /= weights.sum()
    weights.flags.writeable = False
    return np.asarray(weights)


SIZES = np.array([0.01, 0.03, 0.07, 0.15, 0.3, 0.6])
"""Deviations s that are held."""

VARIANCES = SIZES[:, None, None] ** 2
"""s² of `SIZES`, shape (k, 1, 1)."""

FLOOR = 1e-12
"""Weight of a curve, variance of a record and of a noisy share, at least: none is zero."""


def bridge(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return B(u, v) = min(u, v) - u·v for all pairs: the covariance of a Brownian bridge."""
    return np.asarray(np.minimum.outer(one, other) - np.multiply.outer(one, other))
