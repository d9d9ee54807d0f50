"""ApproximateQuantiles (Kaplan, Schnapp & Stemmer 2022), as published, with the textbook sharpness.

The middle target by the exponential mechanism on the records strictly between two released
values, then each half: epsilon is shared evenly by the levels, P ∝ length·exp(-ε_l·cost/2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.peers import Bounds


def release(
    values: FloatArray,
    quantiles: Sequence[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    """All targets, by halving."""
    levels = math.floor(math.log2(len(quantiles))) + 1
    return _halve(values, list(quantiles), epsilon / levels, bounds, generator)


def _halve(
    values: FloatArray,
    quantiles: list[float],
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> list[float]:
    if not quantiles:
        return []
    middle = len(quantiles) // 2
    target = quantiles[middle]
    found = _single(values, target, epsilon, bounds, generator)
    left = [each / target for each in quantiles[:middle]]
    right = [(each - target) / (1.0 - target) for each in quantiles[middle + 1 :]]
    lower, upper = bounds
    return [
        *_halve(values[values < found], left, epsilon, (lower, found), generator),
        found,
        *_halve(values[values > found], right, epsilon, (found, upper), generator),
    ]


def _single(
    values: FloatArray,
    quantile: float,
    epsilon: float,
    bounds: Bounds,
    generator: np.random.Generator,
) -> float:
    edges = np.concatenate(([bounds[0]], values, [bounds[1]]))
    cost = np.abs(np.arange(len(values) + 1) - quantile * len(values))
    with np.errstate(divide="ignore"):
        log_weights = np.log(np.diff(edges)) - epsilon / 2.0 * cost
    if not np.isfinite(log_weights).any():
        return bounds[0]
    noise = generator.gumbel(size=len(log_weights))
    chosen = int(np.argmax(log_weights + noise))
    return float(generator.uniform(edges[chosen], edges[chosen + 1]))
