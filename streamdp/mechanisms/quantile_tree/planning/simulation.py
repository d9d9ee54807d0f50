"""Synthetic batches and the rank error of a release on them: what `choice` and `accuracy` use.

Nothing here sees data. Chance is public: it decides what is simulated, never what is released.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np

from streamdp.types import CellCounts, FloatArray, Grid, IntArray

MOST_VALUES = 4096
"""Distinct values of a synthetic batch; more rows are spread over them."""


class PublicEntropy:
    """Bits anyone can repeat, from a counter; never for a release.

    Args:
        purpose: Keeps streams apart.
    """

    def __init__(self, purpose: str) -> None:
        self._purpose = purpose
        self._count = 0

    def bits(self, count: int) -> int:
        """An integer in [0, 2**count)."""
        self._count += 1
        size = (count + 7) // 8
        digest = hashlib.shake_128(f"{self._purpose}:{self._count}".encode()).digest(size)
        return int.from_bytes(digest, "big") >> (8 * size - count)

    def uniform(self) -> float:
        """A number in (0, 1)."""
        return (self.bits(52) + 0.5) / 2.0**52


def levels(rows: int) -> FloatArray:
    """Ranks of the values of a synthetic batch, in (0, 1), shape (min(rows, 4096),)."""
    count = min(rows, MOST_VALUES)
    return np.asarray((np.arange(count) + 0.5) / count)


def batch_of(values: FloatArray, rows: int, grid: Grid) -> CellCounts:
    """Cell counts of `rows` records spread evenly over sorted values, shape (d,), d ≤ rows."""
    scaled = np.clip(values / float(grid.resolution) + 0.5, grid.lower, grid.upper + 0.5)
    cells, index = np.unique(np.floor(scaled).astype(np.int64), return_inverse=True)
    shares: IntArray = np.diff(np.arange(len(values) + 1) * rows // len(values))
    counts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(counts, index, shares)
    return CellCounts(cells, counts)


def rank_error(
    statistic: CellCounts, quantiles: tuple[Fraction, ...], cells: tuple[int, ...]
) -> float:
    """The largest of `rank_errors`."""
    return float(rank_errors(statistic, quantiles, cells).max())


def rank_errors(
    statistic: CellCounts, quantiles: tuple[Fraction, ...], cells: tuple[int, ...]
) -> FloatArray:
    """Distance of each target rank q·n to the ranks [#{x < o}, #{x ≤ o}], over n; shape (m,)."""
    before = np.concatenate(([0], np.cumsum(statistic.counts)))
    targets = np.array([float(quantile) for quantile in quantiles]) * before[-1]
    left = before[np.searchsorted(statistic.cells, cells)]
    right = before[np.searchsorted(statistic.cells, cells, side="right")]
    return np.asarray(np.maximum(left - targets, targets - right).clip(0.0) / before[-1])
