"""The base measure: a prior over values, seen on the fine grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.grains import GRAINS
from streamdp.privacy.draws import choose, uniform_below
from streamdp.types import Entropy, FloatArray, Grid, IntArray, Prior

FAN = 64
"""Parts a stretch is cut into at each step of a draw from the prior alone."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Prior mass of stretches of fine points.

    A cell v has the prior's mass of [(v - 1/2)·resolution, (v + 1/2)·resolution); its fine points
    share it evenly. The edges are one fixed function of v, so the measure is additive to the
    accuracy of `log_mass`, however a stretch is cut.
    """

    prior: Prior
    grid: Grid

    def _edges(self, cells: IntArray) -> FloatArray:
        return np.asarray((cells - 0.5) * float(self.grid.resolution))

    def cells(self, first: IntArray, stop: IntArray) -> FloatArray:
        """ln mass of the cells [first, stop), -inf where there are none; vectorised."""
        return self.prior.log_mass(self._edges(first), self._edges(np.maximum(first, stop)))

    def points(self, start: IntArray, stop: IntArray) -> FloatArray:
        """ln mass of the fine points [start, stop), which may begin and end inside a cell."""
        first, last = start // GRAINS, (stop - 1) // GRAINS
        within = first == last
        head = np.where(within, stop - start, GRAINS - start % GRAINS)
        tail = np.where(within, 0, (stop - 1) % GRAINS + 1)
        with np.errstate(divide="ignore"):
            parts = (
                self.cells(first, first + 1) + np.log(head / GRAINS),
                self.cells(first + 1, last),
                self.cells(last, last + 1) + np.log(tail / GRAINS),
            )
            total = np.logaddexp(np.logaddexp(parts[0], parts[1]), parts[2])
        return np.where(stop > start, total, -math.inf)

    def draw(self, start: int, stop: int, entropy: Entropy) -> int:
        """A fine point of [start, stop) with probability proportional to its own mass.

        Halving by masses of parts, never by inverting a distribution function: the relative error
        of a point's probability is that of the few choices that lead to it.
        """
        while start // GRAINS != (stop - 1) // GRAINS:
            width = stop - start
            edges = start + np.array([width * i // FAN for i in range(FAN + 1)], dtype=np.int64)
            part = choose(self.points(edges[:-1], edges[1:]), entropy)
            start, stop = int(edges[part]), int(edges[part + 1])
        return start + uniform_below(stop - start, entropy)
