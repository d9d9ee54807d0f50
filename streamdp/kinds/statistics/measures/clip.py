"""Clipping of values: a centre and a reach that follow from earlier releases alone.

A sum of values clipped to `centre ± reach` has noise in proportion to the reach and a bias, the
overshoot, of what is cut off. How far values lie from the centre is released with each batch as a
histogram of nine cells of powers of two; the reach of the next batch minimises

    overshoot(reach) + deviation of the noise of the mean(reach).

Noise hides how many values lie far away: what it hides is taken from Laplace's law of the guessed
spread, so that a tail that nobody can see is neither cut off nor left out of the intervals.

Distances are in cells of the column's resolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.types import Dimension, FloatArray, Grid, IntArray, Json

DISTANCES = 9
"""Cells of the histogram of distances: below one unit, then powers of two of it."""

MEMORY = 0.98
"""Weight of the distances of the past against those of a batch."""

DOUBT = 3.0
"""Deviations of noise below which a number of distances counts little."""

LIKELY, POSSIBLE = 0.0, 2.0
"""Deviations above a released number that the true one may lie: to choose a reach, and to say what
it hides."""

CANDIDATES = np.geomspace(0.5, 2.0 ** (DISTANCES - 1), 40)
"""Reaches that are tried, in units."""

MIDDLE = 16
"""Units in a reach when the unit is chosen."""

SPREADS = 4
"""Guessed spreads in the first reach."""

MOST_REACH = 2**24
"""Cells: a square of a distance stays far below what engines sum exactly."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A centre, a reach and the unit of the histogram of distances.

    Args:
        centre: Cell.
        reach: Cells to both sides.
        unit: Cells of the first distance.
        scale: Public guess of the spread of values, in cells.
        distances: Released numbers of records by distance, remembered over batches.
        spread: Variance of the noise of each of them.
    """

    centre: int
    reach: int
    unit: int
    scale: float
    distances: tuple[float, ...] = (0.0,) * DISTANCES
    spread: float = 0.0

    @classmethod
    def first(cls, centre: int, reach: int) -> Clip:
        """Before any release."""
        reach = min(max(1, reach), MOST_REACH)
        return cls(centre, reach, max(1, reach // MIDDLE), reach / SPREADS)

    @classmethod
    def restored(cls, state: Json, reach: int) -> Clip:
        """From a stored state; the reach is the first one."""
        centre, now, unit, distances, spread = state
        return cls(centre, now, unit, max(1, reach) / SPREADS, tuple(distances), spread)

    def stored(self) -> Json:
        """As a stored state."""
        return [self.centre, self.reach, self.unit, list(self.distances), self.spread]

    def grid(self, column: Grid) -> Grid:
        """The cells that are told apart: within reach, and within the column's own bounds."""
        low = min(max(column.lower, self.centre - self.reach), column.upper)
        return Grid(column.resolution, low, max(low, min(column.upper, self.centre + self.reach)))

    def dimension(self, name: str, sql: str | None, column: Grid) -> Dimension:
        """Cuts at the distances to both sides of the centre; `folded` adds up the sides."""
        reaches = [self.unit * 2**power for power in range(DISTANCES - 1)]
        cells = [*(self.centre - each for each in reversed(reaches))]
        cells += [self.centre + each for each in reaches]
        return Dimension(name, sql, cuts=tuple(float(cell * column.resolution) for cell in cells))

    def observed(self, released: Sequence[int], variance: float) -> Clip:
        """The same, with the distances of one more batch.

        Args:
            released: Noisy numbers of records by distance.
            variance: Of the noise of each.
        """
        kept = [MEMORY * old + new for old, new in zip(self.distances, released, strict=True)]
        spread = MEMORY**2 * self.spread + variance
        return replace(self, distances=tuple(kept), spread=spread)

    def shares(self, most: float = LIKELY) -> FloatArray:
        """Share of records by distance; those of the guessed law as far as noise hides them.

        Args:
            most: Deviations above a released number that the true one may lie.
        """
        seen = np.maximum(np.array(self.distances), 0.0)
        total = max(float(seen.sum()), 1.0)
        trust = seen**2 / (seen**2 + DOUBT**2 * self.spread + 1e-9)
        guessed = np.minimum(self._guessed() * total, seen + most * math.sqrt(self.spread) + 1e-9)
        believed = trust * seen + (1.0 - trust) * guessed
        shares: FloatArray = believed / believed.sum()
        return shares

    def _guessed(self) -> FloatArray:
        """Shares by distance of Laplace's law of the guessed spread."""
        ends = np.exp(-math.sqrt(2.0) * np.array(self._edges()) / self.scale)
        shares: FloatArray = ends[:, 0] - ends[:, 1]
        return shares / max(float(shares.sum()), 1e-9)

    def overshoot(self, reach: float, most: float = LIKELY) -> float:
        """Mean of what lies beyond a reach, each distance even within its cell."""
        found = 0.0
        for share, (low, high) in zip(self.shares(most), self._edges(), strict=True):
            if high > reach:
                start = max(low, reach)
                found += share * (high - start) / (high - low) * ((high + start) / 2 - reach)
        return float(found)

    def hidden(self) -> float:
        """A bound on what clipping hides of a mean: one batch may overshoot more than the average.

        Twice the mean overshoot, and one reach for the share of records that noise alone could be.
        """
        total = max(sum(max(each, 0.0) for each in self.distances), 1.0)
        noise = min(1.0, float(np.sqrt(self.spread)) / total)
        return 2 * self.overshoot(self.reach, POSSIBLE) + self.reach * noise

    def second_moment(self) -> float:
        """Mean square of the distance."""
        squares = [(low * low + low * high + high * high) / 3 for low, high in self._edges()]
        return float(np.dot(self.shares(), squares))

    def following(self, centre: int, noise: float) -> Clip:
        """The clip of the next batch.

        Args:
            centre: What is believed of the mean.
            noise: Deviation of the noise of a released mean, over the reach.
        """
        tried = CANDIDATES * self.unit
        costs = [self.overshoot(each) + noise * each for each in tried]
        reach = min(max(1, math.ceil(tried[int(np.argmin(costs))])), MOST_REACH)
        distances, unit = self.distances, self.unit
        if reach > 4 * MIDDLE * unit:
            distances, unit = (distances[0] + distances[1], *distances[2:], 0.0), unit * 2
        elif reach < MIDDLE * unit // 4 and unit > 1:
            distances, unit = (
                (
                    distances[0] / 2,
                    distances[0] / 2,
                    *distances[1:-2],
                    distances[-2] + distances[-1],
                ),
                unit // 2,
            )
        return replace(self, centre=centre, reach=reach, unit=unit, distances=distances)

    def _edges(self) -> list[tuple[int, int]]:
        ends = [self.unit * 2**power for power in range(DISTANCES)]
        return list(zip([0, *ends], ends, strict=False))


def folded(counts: IntArray) -> IntArray:
    """Records by distance, from the cells of `Clip.dimension` in the last axis."""
    middle = DISTANCES - 1
    both = counts[..., middle:].copy()
    both[..., 1:] += counts[..., middle - 1 :: -1]
    return both
