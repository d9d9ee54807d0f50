"""First beliefs from public rows of the same kind: the surrogate, before anything is spent.

Batches of the expected size are drawn from the public rows with replacement; online gradient
descent on the surrogate at each batch's own quantiles, and the average of its iterates, give
locations and scales that are near the best for a new batch (online-to-batch). Wrong public data
cost little: the beliefs they start are forgotten like any other that releases contradict.

References:
    Khodak et al. 2023, section 5.1 (public data); Cesa-Bianchi, Conconi & Gentile 2004.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.online_gradient.descent import bet, laplace, start_betting
from streamdp.priors.public import PublicSample
from streamdp.priors.shapes import robust_laplaces
from streamdp.types import Entropy, FloatArray, IntArray, Prior

ROUNDS = 300
"""Batches drawn from the public rows."""


@dataclass(frozen=True, slots=True)
class PublicFit:
    """Location and scale of each quantile, fitted to public rows.

    Args:
        locations: In the unit of the column, non-decreasing, shape (m,).
        scales: How far batches lie from them, shape (m,).
    """

    locations: tuple[float, ...]
    scales: tuple[float, ...]

    def priors(self, robust: Prior, weight: float, resolution: float) -> tuple[Prior, ...]:
        """First priors of the quantiles; no scale is below a cell."""
        scales = [max(scale, resolution) for scale in self.scales]
        return robust_laplaces(self.locations, scales, robust, weight)


def fit_public(public: PublicSample, targets: FloatArray, rows: int, entropy: Entropy) -> PublicFit:
    """Fit location and scale of each quantile to public rows.

    Works on values standardised by their own quartiles, so that steps have the same meaning for
    every column.

    Args:
        public: Intervals are at least as wide as its resolution.
        targets: Quantiles, shape (m,).
        rows: Expected number of rows of a batch.
        entropy: Draws the batches; nothing here is private.
    """
    low, middle, high = public.quantiles(np.array([0.25, 0.5, 0.75])).tolist()
    unit = max(high - low, public.resolution)
    standard, half = (public.values - middle) / unit, public.resolution / unit / 2.0
    total = np.cumsum(public.counts)
    start = (public.quantiles(targets) - middle) / unit
    parameters = np.column_stack((start, np.ones(len(targets))))
    summed, state = np.zeros_like(parameters), start_betting(parameters.shape)
    for _ in range(ROUNDS):
        drawn = np.sort(standard[_places(total, rows, entropy)])
        lower, upper = _interval(drawn, targets, half)
        losses = laplace(parameters[:, 0], parameters[:, 1], lower, upper)
        parameters, state = bet(losses.gradient(), state, parameters)
        parameters[:, 1] = np.clip(parameters[:, 1], 1e-3, 1.0 / half)
        summed += parameters
    theta, phi = (summed / ROUNDS).T
    locations = np.maximum.accumulate(middle + unit * theta / phi)
    return PublicFit(tuple(locations.tolist()), tuple((unit / phi).tolist()))


def _places(
    total: IntArray, count: int, entropy: Entropy
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Cells of `count` rows, drawn with replacement; `total` are running sums of their counts."""
    raw = entropy.bits(64 * count).to_bytes(8 * count, "little")
    ranks = (np.frombuffer(raw, dtype=np.uint64) % np.uint64(total[-1])).astype(np.int64)
    return np.searchsorted(total, ranks, side="right")


def _interval(
    ordered: FloatArray, targets: FloatArray, half: float
) -> tuple[FloatArray, FloatArray]:
    """The neighbours of each quantile in a sorted batch, at least a cell apart."""
    ranks = targets * len(ordered)
    below = np.clip(np.ceil(ranks).astype(np.intp) - 1, 0, len(ordered) - 1)
    above = np.clip(np.floor(ranks).astype(np.intp), 0, len(ordered) - 1)
    return ordered[below] - half, ordered[above] + half
