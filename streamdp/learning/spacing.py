"""The spacing of the quantiles: what turns ranks into values, and how they move together."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray

GUESS_SPREAD = 0.55
"""A guessed scale is read as a standard deviation: a logistic law has 0.55 of it as its scale."""

TOGETHER, STRETCH, ALONE = 0.6, 0.3, 0.1
"""Shares of a common shift, of a common stretch and of each quantile alone in a first belief."""


def guessed_quantiles(targets: FloatArray, location: float, scale: float) -> FloatArray:
    """Quantiles of a logistic law of the guessed location and spread, shape (m,)."""
    return np.asarray(location + GUESS_SPREAD * scale * np.log(targets / (1.0 - targets)))


def log_gaps(values: FloatArray, resolution: float) -> FloatArray:
    """ln of the m - 1 gaps between sorted values and, last, of their span; averaged over releases.

    The mean of logarithms hardly minds a release that went astray, but makes gaps small against
    the noise too small; the span is not, so it sets their sum.
    """
    ordered = np.sort(values)
    lengths = np.append(np.diff(ordered), ordered[-1] - ordered[0])
    return np.asarray(np.log(np.maximum(lengths, resolution)))


def gaps(logs: FloatArray) -> FloatArray:
    """Gaps whose sum is the span, shape (m - 1,)."""
    lengths = np.exp(logs[:-1])
    return np.asarray(lengths * (np.exp(logs[-1]) / lengths.sum())) if len(lengths) else lengths


def densities(targets: FloatArray, logs: FloatArray) -> FloatArray:
    """Share of a batch per unit of value at each quantile, shape (m,)."""
    if len(targets) == 1:
        return np.exp(-logs)
    lengths = gaps(logs)
    inner = (targets[2:] - targets[:-2]) / (lengths[1:] + lengths[:-1])
    outer = np.diff(targets) / lengths
    return np.concatenate((outer[:1], inner, outer[-1:]))


def common_moves(density: FloatArray) -> FloatArray:
    """Covariance, in units of squared rank, of quantiles that mostly move together, (m, m)."""
    stretch = 1.0 / density
    shift = np.exp(2.0 * np.log(stretch).mean())
    alone = STRETCH + ALONE * np.eye(len(density))
    return np.asarray(TOGETHER * shift + np.outer(stretch, stretch) * alone)
