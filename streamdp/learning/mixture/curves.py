"""Curves: a predictive distribution on a grid of shifts and scale factors."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from streamdp.learning.mixture.distribution import Distribution, LocationScale
from streamdp.types import FloatArray

_FAR = np.array([0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0])
SHIFTS = np.concatenate((-_FAR[::-1], [0.0], _FAR))
"""Moves of a distribution that was learned, in half widths."""

STRETCHES = np.array([-1.2, -0.5, -0.2, 0.0, 0.2, 0.5, 1.2])
"""Logarithms of what it is stretched by."""

MOVES = np.array(list(itertools.product(SHIFTS, STRETCHES)))
"""All pairs, shape (r, 2)."""


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
