"""The truth of a batch, and how far a release is from it: known in simulations, never elsewhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from streamdp.types import CellCounts, FloatArray, IntArray


def rank_errors(batch: CellCounts, quantiles: tuple[Fraction, ...], cells: IntArray) -> FloatArray:
    """Distance of each target from the ranks of its cell, [#< cell, #≤ cell]/n, shape (m,).

    Of no records there are no ranks: NaN.
    """
    targets = np.array([float(quantile) for quantile in quantiles])
    if not len(batch.cells):
        return np.full(len(targets), np.nan)
    running = np.concatenate(([0], np.cumsum(batch.counts))) / batch.counts.sum()
    below = running[np.searchsorted(batch.cells, cells, "left")]
    through = running[np.searchsorted(batch.cells, cells, "right")]
    return np.asarray(np.maximum(0.0, np.maximum(below - targets, targets - through)))
