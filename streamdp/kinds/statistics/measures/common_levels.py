"""Levels of a table's counts, each drawn towards those that the table has, and towards none.

With levels l_i known to variances v_i, the table's own law of levels is a mixture of normals

    Σ_j π_j·N(θ_j, δ_j²),    θ_0 = 0, the others a geometric grid whose steps overlap,

whose weights π are fitted by maximum likelihood, beside a few records' worth of a prior of which
half is none. Small counts of one size are known by their table, large ones by themselves.

References:
    Kiefer & Wolfowitz 1956; Efron 2016, Empirical Bayes deconvolution estimates.
"""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

STEPS = 20
"""Levels of the grid beside none."""

LEAST = 0.1
"""The least of them; none is as near to 0 as a half of it."""

NONE, ANY = 1.0, 1.0
"""Series that the prior counts for at 0, and spread over the grid."""

ROUNDS = 20
"""Rounds of expectation maximisation."""

MOST = 2_000
"""Series whose levels the law is fitted to; evenly chosen where there are more."""


def drawn_together(level: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and variances of levels under the law of all of them.

    Args:
        level: Of each series, shape (n,).
        variance: Of what is known of it.
    """
    deviation = np.sqrt(np.maximum(variance, 0.0))
    largest = max(float(np.max(level + 2.0 * deviation)), 1.0)
    steps = np.geomspace(LEAST, largest, STEPS)
    places = np.append(0.0, steps)
    width = np.append(LEAST / 2.0, (1.0 - (LEAST / largest) ** (1 / STEPS)) * steps)
    prior = np.append(NONE, np.full(STEPS, ANY / STEPS))
    stride = -(-len(level) // MOST)
    likely = _likelihood(level[::stride], variance[::stride], places, width)
    weights = prior / prior.sum()
    for _ in range(ROUNDS):
        shares = likely * weights
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        weights = prior + shares.sum(axis=0)
        weights /= weights.sum()
    shares = _likelihood(level, variance, places, width) * weights
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    gain = width**2 / (width**2 + variance[:, None])
    means = places + gain * (level[:, None] - places)
    mean = (shares * means).sum(axis=1)
    spread = gain * variance[:, None] + (means - mean[:, None]) ** 2
    return mean, (shares * spread).sum(axis=1)


def _likelihood(
    level: FloatArray, variance: FloatArray, places: FloatArray, width: FloatArray
) -> FloatArray:
    """Return each level's likelihood at each place, over the largest, shape (n, places)."""
    total = width**2 + variance[:, None]
    log = -0.5 * (np.log(total) + (level[:, None] - places) ** 2 / total)
    likely: FloatArray = np.exp(log - log.max(axis=1, keepdims=True))
    return likely
