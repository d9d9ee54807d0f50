"""Grains: each record spread evenly over sub-levels of its cell, so that ties can be split.

A cell v holds the fine points v·GRAINS ... v·GRAINS + GRAINS - 1, and a record in v is one grain
on each of them. All records may be equal and every fine point still has a rank of its own.
Ranks count grains strictly left of a point; divided by GRAINS they are ranks in records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from streamdp.types import CellCounts, IntArray

GRAINS = 64
"""Sub-levels of a cell. A grain is 1/64 of a record."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Grains:
    """Cell counts with their running sums. Private, like the counts.

    Args:
        cells: Sorted occupied cells, shape (d,).
        counts: Records in each, shape (d,).
        before: Records left of each cell and, last, all records; shape (d + 1,).
    """

    cells: IntArray
    counts: IntArray
    before: IntArray

    def __repr__(self) -> str:
        return "Grains(<private>)"

    @classmethod
    def of(cls, statistic: CellCounts) -> Self:
        """Spread the records of a batch."""
        before = np.zeros(len(statistic.cells) + 1, dtype=np.int64)
        np.cumsum(statistic.counts, out=before[1:])
        return cls(statistic.cells, statistic.counts, before)

    def left_of(self, point: int) -> int:
        """Number of grains strictly left of a fine point."""
        cell, level = divmod(point, GRAINS)
        index = int(self.cells.searchsorted(cell))
        within = 0
        if level and index < len(self.cells) and self.cells[index] == cell:
            within = int(self.counts[index]) * level
        return int(self.before[index]) * GRAINS + within

    def left_of_each(self, points: IntArray) -> IntArray:
        """`left_of` of non-decreasing points, shape (p,); the fewer are looked up in the more."""
        starts = self.cells * GRAINS
        cells = np.stack((np.append(starts, 0), np.append(self.counts, 0), self.before * GRAINS))
        if len(starts) < len(points):
            passed = points.searchsorted(starts + GRAINS)
            many = np.diff(passed, prepend=0, append=len(points))
            first, count, left = np.repeat(cells, many, axis=1)
        else:
            first, count, left = cells[:, starts.searchsorted(points - GRAINS, side="right")]
        within: IntArray = points - first
        np.maximum(within, 0, out=within)
        within *= count
        within += left
        return within


@dataclass(frozen=True, slots=True)
class Region:
    """A half-open stretch [start, stop) of fine points between two released points.

    Grains in it belong to it; a draw in it may fall on start ... last, where last is stop, or the
    last point of the grid. Regions of one level of a tree are disjoint, so a grain is in one.
    """

    start: int
    stop: int
    last: int

    def holds(self, points: IntArray) -> npt.NDArray[np.bool_]:
        """Whether a draw may fall on each of some points."""
        return np.asarray((points >= self.start) & (points <= self.last))

    def split(self, points: tuple[int, ...]) -> tuple[Region, ...]:
        """The regions between sorted points of this region; a grain on a point goes right."""
        starts = (self.start, *points)
        stops = (*points, self.stop)
        lasts = (*points, self.last)
        return tuple(map(Region, starts, stops, lasts))


def exact_quantiles(batch: CellCounts, quantiles: tuple[Fraction, ...]) -> IntArray:
    """Exact quantiles: the least cells v with #{x ≤ v} ≥ q·n, shape (m,); zeros of no records.

    Private: noise is added to them, and simulations compare with them.
    """
    running = np.cumsum(batch.counts)
    if not len(running):
        return np.zeros(len(quantiles), dtype=np.int64)
    ranks = [math.ceil(quantile * int(running[-1])) for quantile in quantiles]
    return np.asarray(batch.cells[np.searchsorted(running, ranks)])
