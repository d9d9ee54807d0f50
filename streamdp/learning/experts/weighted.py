"""Quantiles of weighted points: means that no single point can carry away."""

from __future__ import annotations

import numpy as np

from streamdp.types import FloatArray


def weighted_quantiles(values: FloatArray, weights: FloatArray, quantile: float) -> FloatArray:
    """A quantile of each column of weighted points, linear between the middles of their weights.

    Args:
        values: Shape (e, m).
        weights: Positive, summing to one, shape (e,).
        quantile: In (0, 1).

    Example:
        >>> weighted_quantiles(np.array([[3.0], [1.0], [2.0]]), np.ones(3) / 3, 0.5)
        array([2.])
    """
    order = np.argsort(values, axis=0)
    ordered, shares = np.take_along_axis(values, order, axis=0), weights[order]
    middles = np.cumsum(shares, axis=0) - shares / 2.0
    columns = range(values.shape[1])
    return np.array([np.interp(quantile, middles[:, j], ordered[:, j]) for j in columns])
