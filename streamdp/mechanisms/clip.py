"""Clipping of values: a centre and a reach that follow from earlier releases alone.

A sum of values clipped to `centre ± reach` has noise in proportion to the reach and a bias, the
overshoot, of what is cut off. How far values lie from the centre is released with each batch as a
histogram of nine cells of powers of two; the reach of the next batch weighs what it likely cuts
off against the noise that it brings (`overshoot.best_reach`, `overshoot.best_reach_of_squares`).

Noise hides how many values lie far away: what it hides is taken from Laplace's law of the guessed
spread, so that a tail that nobody can see is neither cut off nor left out of the intervals. Where
bounds stand for a guess, a spread that released distances refute gives way to the largest that they
do not.

Distances are in cells of the column's resolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamdp.types import BoolArray, Dimension, FloatArray, Grid, IntArray, Json

DISTANCES = 9
"""Cells of the histogram of distances: below one unit, then powers of two of it."""

MEMORY = 0.98
"""Weight of the distances of the past against those of a batch."""

DOUBT = 3.0
"""Deviations of noise below which a number of distances counts little, or not at all."""

STAYS = 2.0
"""Units that a centre may move; farther, and distances from the old one say nothing of the new."""

DOUBT_OF_FALLING = 2.0
"""Doubt of numbers pooled so that they fall: part of their noise is averaged out."""

MIDDLE = 16
"""Units in a reach when the unit is chosen."""

SPREADS = 4
"""Guessed spreads in the first reach."""

SEEN = 0.05
"""Mean overshoot past the farthest distances, over the reach, at which a unit may be halved."""

REFUTED = 12.0
"""Squared deviations by which a spread may put more records into far distances than are there."""

ANOTHER_SHAPE = 0.2
"""Part of the records of a distance by which a law of another shape may differ."""

SPREADS_TRIED = 2.0 ** (-0.5 * np.arange(40))
"""Parts of the guessed spread that are tried, largest first."""

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
        farthest: Distance beyond which the column's bounds leave nothing, in cells.
        guessed: Whether somebody guessed the spread; else it is that of the bounds, which says
            little, and gives way to what releases show.
    """

    centre: int
    reach: int
    unit: int
    scale: float
    distances: tuple[float, ...] = (0.0,) * DISTANCES
    spread: float = 0.0
    farthest: float = math.inf
    guessed: bool = True

    @classmethod
    def first(cls, centre: int, reach: int, scale: float) -> Clip:
        """The clip before any release."""
        reach = min(max(1, reach), MOST_REACH)
        return cls(centre, reach, max(1, reach // MIDDLE), scale)

    @classmethod
    def started(
        cls, column: Grid, start: tuple[int, int], *, summed: bool, stored: Json = None
    ) -> Clip:
        """The clip of a column; bounds alone say nothing about the spread within them.

        Args:
            column: Its public cells.
            start: Centre and reach before any release.
            summed: Whether values themselves are summed, around 0.
            stored: What releases have made of it, if there are any.
        """
        centre, reach = start
        known = column.lower < centre - reach or centre + reach < column.upper
        scale = reach / SPREADS if known else float(reach)
        if summed:
            centre, reach, scale = 0, abs(centre) + reach, abs(centre) + scale
        scale = max(scale, 1.0)
        made = cls.restored(stored, scale) if stored else cls.first(centre, reach, scale)
        farthest = max(abs(column.lower - made.centre), abs(column.upper - made.centre))
        return replace(made, farthest=farthest, guessed=known)

    @classmethod
    def restored(cls, state: Json, scale: float) -> Clip:
        """The clip in a stored state."""
        centre, reach, unit, distances, spread = state
        return cls(centre, reach, unit, scale, tuple(distances), spread)

    def stored(self) -> Json:
        """The clip as a state that can be stored."""
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
        """Return the clip with the distances of one more batch.

        Args:
            released: Noisy numbers of records by distance.
            variance: Of the noise of each.
        """
        kept = [MEMORY * old + new for old, new in zip(self.distances, released, strict=True)]
        spread = MEMORY**2 * self.spread + variance
        return replace(self, distances=tuple(kept), spread=spread)

    def shares(self, *, falling: bool = False) -> FloatArray:
        """Share of records by distance; those of the guessed law as far as noise hides them.

        Args:
            falling: Numbers that noise may be fall with the distance (`falling`).
        """
        starts = np.array([low for low, _ in self.edges()])
        possible = starts < max(self.farthest, 1.0)
        released = self.falling() if falling else np.array(self.distances)
        seen = np.maximum(released, 0.0) * possible
        total = max(float(seen.sum()), 1.0)
        doubt = DOUBT_OF_FALLING if falling else DOUBT
        noise = doubt**2 * self.spread + 1e-9
        trust = (
            seen**2 / (seen**2 + noise)
            if self.guessed
            else np.maximum(1 - noise / (seen**2 + 1e-9), 0)
        )
        scale = self.scale if self.guessed else self.likely_scale()
        law = self._guessed(starts / scale) * total * possible
        guessed = np.minimum(law, seen + 1e-9)
        believed = trust * seen + (1.0 - trust) * guessed
        shares: FloatArray = believed / believed.sum()
        return shares

    @property
    def sure(self) -> BoolArray:
        """Distances at which noise alone does not explain the released numbers."""
        return np.array(self.distances) > DOUBT * math.sqrt(self.spread)

    def falling(self) -> FloatArray:
        """Released numbers; behind the last one that is sure, the nearest that do not rise.

        A far cell weighs by the square of its distance, so noise in one of them alone would make a
        spread of its own. Tails fall: what rises is averaged with what lies before it (isotonic
        regression by pooling adjacent violators).
        """
        seen = np.array(self.distances)
        sure = np.flatnonzero(self.sure)
        start = int(sure[-1]) + 1 if len(sure) else 0
        blocks: list[tuple[float, int]] = []
        for each in seen[start:].tolist():
            mean, size = each, 1
            while blocks and blocks[-1][0] < mean:
                before, many = blocks.pop()
                mean, size = (before * many + mean * size) / (many + size), many + size
            blocks.append((mean, size))
        seen[start:] = [mean for mean, size in blocks for _ in range(size)]
        return seen

    def likely_scale(self) -> float:
        """The largest spread up to the guessed one that released distances do not refute, in cells.

        Far cells of a law that is too wide hold more records than were released there, beyond what
        noise, chance and a law of another shape explain.
        """
        seen, starts = np.array(self.distances), np.array([low for low, _ in self.edges()])
        total = float(np.maximum(seen, 0.0).sum())
        tried = np.maximum(self.scale * SPREADS_TRIED, self.unit / 2.0)
        law = np.array([self._guessed(starts / each) for each in tried]) * total
        law = law * (starts < max(self.farthest, 1.0))
        short = np.maximum(law - seen, 0.0)
        known = self.spread + np.maximum(law, 1.0) + (ANOTHER_SHAPE * law) ** 2
        off = (short**2 / known).sum(axis=1)
        return float(min(tried[int(np.argmax(off <= max(REFUTED, float(off.min()))))], self.scale))

    @staticmethod
    def _guessed(starts: FloatArray) -> FloatArray:
        """Shares by distance of Laplace's law of the guessed spread; the last cell has no end.

        Args:
            starts: Of cells, in guessed spreads.
        """
        tail = np.exp(-math.sqrt(2.0) * starts)
        beyond = np.append(tail, 0.0)
        shares: FloatArray = beyond[:-1] - beyond[1:]
        return shares

    def overshoot(self, reach: float) -> float:
        """Mean of what lies beyond a reach."""
        return float(self.shares() @ self.beyond(np.array(reach)))

    def beyond(self, reaches: FloatArray) -> FloatArray:
        """Means of max(d - reach, 0) by distance, even within a cell; shape (..., distances)."""
        low, high = np.array(self.edges(), dtype=float).T
        reach = reaches[..., None]
        start = np.clip(reach, low, high)
        return np.asarray((high - start) / (high - low) * ((high + start) / 2.0 - reach))

    def room(self, column: Grid) -> tuple[float, float]:
        """Cells of the column that lie below and above those of the clip."""
        clipped = self.grid(column)
        return float(clipped.lower - column.lower), float(column.upper - clipped.upper)

    def second_moment(self) -> float:
        """Mean square of the distance."""
        squares = [(low * low + low * high + high * high) / 3 for low, high in self.edges()]
        return float(np.dot(self.shares(falling=True), squares))

    def following(self, centre: int, best: float) -> Clip:
        """The clip of the next batch.

        Args:
            centre: What is believed of the mean.
            best: Reach that is wanted, in cells.
        """
        reach = min(max(1, math.ceil(best)), MOST_REACH)
        if abs(centre - self.centre) > STAYS * self.unit:
            return replace(self, centre=centre, distances=(0.0,) * DISTANCES, spread=0.0)
        distances, unit = self.distances, self.unit
        if reach > 4 * MIDDLE * unit:
            distances, unit = (distances[0] + distances[1], *distances[2:], 0.0), unit * 2
        elif reach < MIDDLE * unit // 4 and unit > 1 and self._sees(reach):
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

    def _sees(self, reach: int) -> bool:
        """Return whether distances of half the unit still reach past nearly all that is likely.

        A reach that is short because noise is large says nothing about how far values lie.
        """
        return self.overshoot(self.unit * 2.0 ** (DISTANCES - 3)) < SEEN * reach

    def edges(self) -> list[tuple[int, int]]:
        """Distances at which each cell begins and ends, in cells of the column."""
        ends = [self.unit * 2**power for power in range(DISTANCES)]
        return list(zip([0, *ends], ends, strict=False))


def folded(counts: IntArray) -> IntArray:
    """Records by distance, from the cells of `Clip.dimension` in the last axis."""
    middle = DISTANCES - 1
    both = counts[..., middle:].copy()
    both[..., 1:] += counts[..., middle - 1 :: -1]
    return both
