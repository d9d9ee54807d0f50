"""The exact quantiles of a batch: what noise is added to, and what simulations compare with."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streamdp.types import CellCounts, IntArray


def exact_quantiles(batch: CellCounts, quantiles: tuple[Fraction, ...]) -> IntArray:
    """The least cells v with #{x ≤ v} ≥ q·n, shape (m,); of no records, zeros. Private."""
    running = np.cumsum(batch.counts)
    if not len(running):
        return np.zeros(len(quantiles), dtype=np.int64)
    ranks = [math.ceil(quantile * int(running[-1])) for quantile in quantiles]
    return np.asarray(batch.cells[np.searchsorted(running, ranks)])
