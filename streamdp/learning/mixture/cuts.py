"""Where a batch is cut: at shares of its records, as it is believed to lie."""

from __future__ import annotations

import numpy as np

from streamdp.learning.mixture.distribution import Distribution
from streamdp.types import FloatArray

EVEN = np.arange(1, 10) / 10.0
"""Shares at which any batch is cut."""

APART = 0.5
"""Cuts for outer quantiles: so far out, in shares of what lies beyond the quantile."""


def cut_shares(targets: FloatArray) -> FloatArray:
    """Shares at which a batch is cut for some quantiles: evenly, and about those in the tails."""
    low, high = targets[targets < EVEN[0]], targets[targets > EVEN[-1]]
    tails = (low, low * APART, high, 1.0 - (1.0 - high) * APART)
    return np.unique(np.concatenate((EVEN, *tails)))


def cuts(believed: Distribution, shares: FloatArray) -> list[int]:
    """Cells at which a batch is cut: those whose believed shares are nearest to the wanted ones."""
    at = believed.place(shares)
    below, above = np.floor(at), np.ceil(at)
    nearer = shares - believed.share(below) < believed.share(above) - shares
    return [int(cell) for cell in np.where(nearer, below, above)]
