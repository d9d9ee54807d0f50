"""The base measure: a prior over values, seen on the grid of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamdp.privacy.draws import choose
from streamdp.types import Entropy, FloatArray, Grid, IntArray, Prior

FAN = 256
"""Parts a stretch is cut into at each step of a draw from the prior alone."""

FLOOR = -600.0
"""ln of the weight of a uniform prior that is mixed into every prior: no point of the grid is
impossible, and no mass is so small that rounding its logarithm would show."""

_FAINT = -550.0
"""Masses below e^-550 get the floor added; above, it is less than their rounding."""


@dataclass(frozen=True, slots=True)
class BaseMeasure:
    """Prior mass of stretches of cells.

    A cell v has the prior's mass of [(v - 1/2)·resolution, (v + 1/2)·resolution); its fine points
    share it evenly. The edges are one fixed function of v, so the measure is additive to the
    accuracy of `log_mass`, however a stretch is cut.
    """

    prior: Prior
    grid: Grid

    def between(self, edges: IntArray) -> FloatArray:
        """ln mass of the cells [edges[i], edges[i + 1]), -inf where there are none.

        Args:
            edges: Non-decreasing cells, shape (n + 1,).
        """
        values = np.asarray((edges - 0.5) * float(self.grid.resolution), dtype=np.float64)
        masses = np.array(self.prior.log_mass(values[:-1], values[1:]))
        faint = np.flatnonzero(masses < _FAINT)
        faint = faint[edges[faint + 1] > edges[faint]]
        if len(faint):
            shares = (edges[faint + 1] - edges[faint]) / (self.grid.upper + 1 - self.grid.lower)
            masses[faint] = np.logaddexp(masses[faint], FLOOR + np.log(shares))
        return masses

    def draw(self, first: int, stop: int, entropy: Entropy) -> int:
        """A cell of [first, stop) with probability proportional to its mass.

        Cutting by masses of parts, never by inverting a distribution function: the relative error
        of a cell's probability is that of the few choices that lead to it.
        """
        while stop - first > 1:
            parts = min(FAN, stop - first)
            edges = first + (stop - first) * np.arange(parts + 1) // parts
            part = choose(self.between(edges), entropy)
            first, stop = int(edges[part]), int(edges[part + 1])
        return first


def log_share(part: int, whole: int) -> float:
    """ln(part/whole), -inf for nothing."""
    return math.log(part / whole) if part > 0 else -math.inf
