"""Covariance of a batch about its curve: a Brownian bridge of one of a few sizes.

References:
    Ferguson 1973 (a Dirichlet process varies about its mean as a bridge does).
"""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

SIZES = np.array([0.01, 0.03, 0.07, 0.15, 0.3, 0.6])
"""Deviations s that are held."""

VARIANCES = SIZES[:, None, None] ** 2
"""s² of `SIZES`, shape (k, 1, 1)."""

FLOOR = 1e-12
"""Weight of a curve, variance of a record and of a noisy share, at least: none is zero."""


def bridge(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return B(u, v) = min(u, v) - u·v for all pairs: the covariance of a Brownian bridge."""
    return np.asarray(np.minimum.outer(one, other) - np.multiply.outer(one, other))
