"""Cells at which a batch is cut: fixed levels of its predictive distribution.

Any function of past releases and public facts is private enough (`mechanisms/PRIVACY.md` 3.10).
Beside the counts, two things depend on the levels: `online-gradient` has a prior for each of them,
so its signature names levels other than these (`learning.gradient`), and the expected error of a
release plan takes them to be about evenly spaced (`stages.expected_errors`).
"""

from __future__ import annotations

import numpy as np

from streamdp.learning.mixture.distribution import Distribution
from streamdp.types import FloatArray

EVEN = np.arange(1, 10) / 10.0
"""Levels at which any batch is cut, whatever quantiles are released.

A count has the same noise whatever the number of bins, but the cdf at a cut is a sum of counts: its
variance grows with their number, while the error between cuts falls with it.
"""

OUTER = 0.5
"""A tail quantile q also has a cut at OUTER·q; in the upper tail at 1 - OUTER·(1 - q)."""


def cut_levels(targets: FloatArray) -> FloatArray:
    """Return the levels of the cuts: deciles, and two levels a quantile below .1 or above .9."""
    low, high = targets[targets < EVEN[0]], targets[targets > EVEN[-1]]
    tails = (low, low * OUTER, high, 1.0 - (1.0 - high) * OUTER)
    return np.unique(np.concatenate((EVEN, *tails)))


def cuts(believed: Distribution, levels: FloatArray) -> list[int]:
    """Return the cells at which the predictive cdf is nearest to the levels."""
    at = believed.quantile(levels)
    below, above = np.floor(at), np.ceil(at)
    nearer = levels - believed.cdf(below) < believed.cdf(above) - levels
    return [int(cell) for cell in np.where(nearer, below, above)]
