"""Adaptive importance sampling of a family with four parameters.

References:
    Cappé et al. 2004 (population Monte Carlo); Veach & Guibas 1995 (weights by the mixture).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.rank_law import uniforms
from streamdp.types import FloatArray

_ENOUGH = 30
"""Batches that share the weights, in effect, when the next are drawn about them."""


@dataclass(frozen=True, slots=True)
class Law:
    """Student's t with four degrees of freedom.

    Args:
        mean: Shape (4,).
        root: Lower triangular, times its transpose the covariance.
        inverse: Of the root.
    """

    mean: FloatArray
    root: FloatArray
    inverse: FloatArray

    @staticmethod
    def of(mean: FloatArray, covariance: FloatArray) -> Law:
        """The law of a mean and a covariance."""
        root = np.asarray(np.linalg.cholesky(covariance))
        return Law(mean, root, np.asarray(np.linalg.inv(root)))


def law_of(batches: FloatArray, weights: FloatArray, least: FloatArray) -> Law:
    """Mean and somewhat more than the covariance of weighted batches."""
    mean = weights @ batches
    off = batches - mean
    return Law.of(mean, 1.4 * (weights[:, None] * off).T @ off + np.diag(least**2))


def tempered(logs: FloatArray) -> FloatArray:
    """Temper the weights so far that the effective sample size is at least `_ENOUGH`."""
    low, high = 0.0, 1.0
    off = logs - logs.max()
    for power in (1.0, *([None] * 10)):
        middle = power or (low + high) / 2.0
        weights = np.exp(middle * off)
        weights /= weights.sum()
        enough = (weights**2).sum() * _ENOUGH < 1.0
        if enough and power:
            break
        low, high = (middle, high) if enough else (low, middle)
    return np.asarray(weights)


def draws(law: Law, count: int, number: int) -> FloatArray:
    """Batches of a law, the same ones for a number."""
    chance = uniforms(f"plausible {number}", 6, count)
    radius = np.sqrt(-2.0 * np.log(chance[:2]))
    angle = 2.0 * np.pi * chance[2:4]
    normal = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))
    heavy = np.sqrt(-0.5 * np.log(chance[4] * chance[5]))
    return np.asarray(law.mean + (law.root @ (normal / heavy)).T)


def log_mixture(at: FloatArray, laws: list[Law], counts: list[int]) -> FloatArray:
    """ln of the density of draws from several laws, so many from each, times their number."""
    found = []
    for law, count in zip(laws, counts, strict=True):
        squared = (((at - law.mean) @ law.inverse.T) ** 2).sum(axis=1)
        density = -4.0 * np.log1p(squared / 4.0) + np.log(np.diag(law.inverse)).sum()
        found.append(density + np.log(count))
    return np.asarray(np.logaddexp.reduce(found, axis=0))


def log_weights(log_targets: FloatArray, log_mixed: FloatArray) -> FloatArray:
    """ln of weights of draws from several laws, by the mixture of all."""
    found = log_targets - log_mixed
    return np.asarray(found - np.logaddexp.reduce(found))
