"""Synthetic batches and the rank error of a release on them: what `choice` and `accuracy` use.

Nothing here sees data. Chance is public: it decides what is simulated, never what is released.
"""

from __future__ import annotations

import functools
import hashlib
import math
from fractions import Fraction

import numpy as np

from streamdp.priors.shapes import profile
from streamdp.types import CellCounts, FloatArray, Grid, IntArray

MOST_VALUES = 4096
"""Distinct values of a synthetic batch; more rows are spread over them."""


Cells = tuple[int, ...] | IntArray
"""Released cells, non-decreasing."""


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


def standard_batch(index: int, rows: int, most: int = MOST_VALUES) -> FloatArray:
    """Sorted values of a batch of one of four shapes in turn, about 0 and of spread about 1.

    Returns:
        Shape (min(rows, most),); the array cannot be written to.
    """
    return _standard_batch(index % 4, min(rows, most))


@functools.lru_cache(maxsize=8)
def _standard_batch(shape: int, count: int) -> FloatArray:
    share = (np.arange(count) + 0.5) / count
    exact = tuple(Fraction(each) for each in share.tolist())
    match shape:
        case 0:
            values = profile(exact, "normal")
        case 1:
            values = profile(exact, "right")
        case 2:
            values = np.sort(profile(exact, "normal") / 2.0 + np.where(share < 0.5, -1.0, 1.0))
        case _:
            values = np.tan(math.pi * (share - 0.5)).clip(-30.0, 30.0) / 2.0
    values.flags.writeable = False
    return values


def batch_of(values: FloatArray, rows: int, grid: Grid) -> CellCounts:
    """Cell counts of `rows` records spread evenly over sorted values, shape (d,), d ≤ rows."""
    scaled = np.clip(values / float(grid.resolution) + 0.5, grid.lower, grid.upper + 0.5)
    cells, index = np.unique(np.floor(scaled).astype(np.int64), return_inverse=True)
    shares: IntArray = np.diff(np.arange(len(values) + 1) * rows // len(values))
    counts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(counts, index, shares)
    return CellCounts(cells, counts)


def rank_error(batch: CellCounts, quantiles: tuple[Fraction, ...], cells: Cells) -> float:
    """The largest of `rank_errors`."""
    return float(rank_errors(batch, quantiles, cells).max())


def rank_errors(batch: CellCounts, quantiles: tuple[Fraction, ...], cells: Cells) -> FloatArray:
    """Distance of each target from the ranks of its cell, [#< cell, #≤ cell]/n, shape (m,).

    Of no records there are no ranks: NaN.
    """
    targets = np.array([float(quantile) for quantile in quantiles])
    if not len(batch.cells):
        return np.full(len(targets), np.nan)
    before = np.concatenate(([0], np.cumsum(batch.counts)))
    below = before[np.searchsorted(batch.cells, cells)]
    through = before[np.searchsorted(batch.cells, cells, side="right")]
    off = np.maximum(below - targets * before[-1], targets * before[-1] - through)
    return np.asarray(off.clip(0.0) / before[-1])
