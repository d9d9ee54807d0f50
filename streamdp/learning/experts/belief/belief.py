"""Belief about the quantiles of one batch: a mixture of normal laws over all of them.

A draw of a release tells about one linear function of the quantiles. The belief is updated by the
mean and variance of the exact one-dimensional posterior of that function (assumed density
filtering), so what one quantile shows, the others learn through their covariance.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from streamdp.learning.experts.belief.noise import NoisyDraw, log_normaliser
from streamdp.types import FloatArray, Prior

SPREADS = np.linspace(-5.0, 5.0, 21)
"""Points of each component, in its standard deviations."""

_AWAY = np.geomspace(0.05, 12.0, 8)
OFFSETS = np.concatenate((-_AWAY[::-1], [0.0], _AWAY))
"""Points around the released value, in units of the noise."""

TINY = 1e-300

LOG_TRAPEZOID = math.log(2.0 * math.sqrt(2.0 * math.pi))
"""Of each draw that was observed, what its ln evidence is too large by."""

ROUNDING = 1e-12
"""Share of a variance that no release removes: what is left of it must not round to below zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Σ_e w_e·Normal(means_e, covariances_e).

    Args:
        log_weights: ln w_e, not normalised, shape (e,).
        means: Shape (e, m).
        covariances: Shape (e, m, m).
    """

    log_weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    def weights(self) -> FloatArray:
        """Normalised weights, shape (e,)."""
        shares = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(shares / shares.sum())

    def log_total(self) -> float:
        """ln of the sum of all weights: what draws add to it is the logarithm of their evidence."""
        return float(np.logaddexp.reduce(self.log_weights))

    def finite(self) -> bool:
        """Whether no number overflowed."""
        numbers = self.log_weights, self.means, self.covariances
        return all(np.isfinite(part).all() for part in numbers)

    def medians(self) -> FloatArray:
        """Weighted median of each quantile, shape (m,)."""
        return _middles(self)[0]

    def point(self) -> FloatArray:
        """The same, sorted."""
        return np.sort(self.medians())

    def deviations(self) -> FloatArray:
        """Weighted median distance of each quantile from its weighted median, shape (m,)."""
        return _middles(self)[1]


@functools.lru_cache(maxsize=4)
def _middles(belief: Belief) -> tuple[FloatArray, FloatArray]:
    """Medians and deviations: values, intervals and the next state all ask for them."""
    weights = belief.weights()
    middles = weighted_medians(belief.means, weights)
    variances = np.diagonal(belief.covariances, axis1=1, axis2=2)
    away = np.sqrt(np.maximum(variances, 0.0) + (belief.means - middles) ** 2)
    return middles, weighted_medians(away, weights)


def weighted_medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The median of each column of weighted points, linear between the middles of their weights.

    Args:
        values: Shape (e, m).
        weights: Positive, summing to one, shape (e,).

    Example:
        >>> weighted_medians(np.array([[3.0], [1.0], [2.0]]), np.ones(3) / 3)
        array([2.])
    """
    order = np.argsort(values, axis=0)
    ordered, shares = np.take_along_axis(values, order, axis=0), weights[order]
    middles = np.cumsum(shares, axis=0) - shares / 2.0
    columns = range(values.shape[1])
    return np.array([np.interp(0.5, middles[:, j], ordered[:, j]) for j in columns])


@dataclass(frozen=True, slots=True)
class Release:
    """Evidence of one release, and the public facts that give it a meaning.

    Args:
        values: Released quantiles, shape (m,).
        densities: Share of the batch per unit of value at each quantile, shape (m,).
        limits: Ends of the grid.
        resolution: Width of a cell.
    """

    values: FloatArray
    densities: FloatArray
    limits: tuple[float, float]
    resolution: float

    def region(self, draw: NoisyDraw) -> tuple[float, float]:
        """Where the draw may have fallen."""
        half = self.resolution / 2.0
        low = self.values[draw.left] - half if draw.left >= 0 else self.limits[0]
        high = self.values[draw.right] + half if draw.right < len(self.values) else self.limits[1]
        return float(low), float(high)

    def direction(self, draw: NoisyDraw) -> tuple[FloatArray, float]:
        """The value at the target rank as direction·v + shift.

        F(o) ≈ q + f·(o - v) near a quantile v of density f, so a neighbour released too far
        right by its noise moves the target right too.
        """
        direction, shift = np.zeros(len(self.values)), 0.0
        direction[draw.target] = 1.0
        for index, share in draw.ends():
            if 0 <= index < len(self.values):
                slope = share * float(self.densities[index] / self.densities[draw.target])
                direction[index] = -slope
                shift += slope * float(self.values[index])
        return direction, shift


def observe(belief: Belief, draw: NoisyDraw, prior: Prior, release: Release) -> Belief:
    """The belief after one draw of a release, made from `prior`."""
    direction, shift = release.direction(draw)
    carried = belief.covariances @ direction
    variances = np.maximum(carried @ direction, TINY)
    centres = belief.means @ direction + shift
    value, region = float(release.values[draw.target]), release.region(draw)
    density = float(release.densities[draw.target])
    unit = max(draw.unit(density), release.resolution)
    peaks = np.array([value, np.clip(belief.weights() @ centres, *region)])
    points, log_z = log_normaliser(draw, density, prior, region, peaks, unit)
    targets = np.empty((len(centres), len(SPREADS) + len(OFFSETS)))
    targets[:, : len(SPREADS)] = centres[:, None] + np.sqrt(variances)[:, None] * SPREADS
    around, ends = value + unit * OFFSETS, targets[:, [0, len(SPREADS) - 1]]
    targets[:, len(SPREADS) :] = np.clip(around, ends[:, :1], ends[:, 1:])
    targets.sort(axis=1)
    log_law = -draw.cost(value - targets, density) - np.interp(targets, points, log_z)
    evidence, moved, spreads = _posterior(targets - centres[:, None], variances, log_law)
    gain = carried / variances[:, None]
    shrink = (variances - spreads)[:, None, None]
    return Belief(
        belief.log_weights + evidence,
        belief.means + gain * moved[:, None],
        belief.covariances * (1.0 + ROUNDING * np.eye(len(direction)))
        - gain[:, :, None] * gain[:, None, :] * shrink,
    )


def observe_all(belief: Belief, values: FloatArray, noise: FloatArray) -> Belief:
    """The belief once all quantiles were seen with normal noise of a covariance (Kalman 1960)."""
    innovations = belief.covariances + noise
    gain = np.linalg.solve(innovations, belief.covariances).transpose(0, 2, 1)
    off = values - belief.means
    pulled = np.linalg.solve(innovations, off[:, :, None])[:, :, 0]
    evidence = -0.5 * ((off * pulled).sum(axis=1) + np.linalg.slogdet(innovations)[1])
    left = belief.covariances - gain @ belief.covariances
    rows = np.arange(left.shape[1])
    left[:, rows, rows] = np.maximum(left[:, rows, rows], TINY)
    means = belief.means + np.einsum("eij,ej->ei", gain, off)
    return Belief(belief.log_weights + evidence, means, left)


def _posterior(
    offsets: FloatArray, variances: FloatArray, log_law: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ln evidence, mean and variance of Normal(0, variance)·law, by the trapezoid rule.

    Args:
        offsets: Increasing points, from -5 deviations or less to 5 or more, shape (e, points).
        variances: Shape (e,).
        log_law: ln of the law at the points, same shape as they.
    """
    inner = offsets[:, 1:-1]
    log_terms = log_law[:, 1:-1] - inner**2 / (2.0 * variances[:, None])
    peak = log_terms.max(axis=1)
    terms = np.exp(log_terms - peak[:, None]) * (offsets[:, 2:] - offsets[:, :-2])
    total = np.maximum(terms.sum(axis=1), TINY)
    terms /= total[:, None]
    mean = (terms * inner).sum(axis=1)
    spread = (terms * (inner - mean[:, None]) ** 2).sum(axis=1)
    return peak + np.log(total / np.sqrt(variances)), mean, spread
