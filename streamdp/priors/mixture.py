"""Mixtures: how a learned belief is kept robust."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from streamdp.priors.families import Laplace
from streamdp.types import FloatArray, Json, Prior


@dataclass(frozen=True, slots=True)
class Mixture:
    """Σ_k w_k·prior_k.

    With weight λ on a robust prior, the error of a draw is at most (1/c)·ln(1/λ) worse than with
    the robust prior alone (Khodak et al. 2023, section 3.2).

    Args:
        weights: Positive, shape (k,); they need not sum to one.
        components: Priors, shape (k,).
    """

    weights: tuple[float, ...]
    components: tuple[Prior, ...]

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln Σ_k w_k·mass_k of each interval."""
        terms = np.stack(
            [
                component.log_mass(lower, upper) + math.log(weight)
                for weight, component in zip(self.weights, self.components, strict=True)
            ]
        )
        peak = terms.max(axis=0)
        safe = np.where(np.isfinite(peak), peak, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(terms - safe).sum(axis=0)) + safe)

    def describe(self) -> Json:
        """Weights and components."""
        return {
            "family": "mixture",
            "weights": list(self.weights),
            "components": [component.describe() for component in self.components],
        }


def robust_laplaces(
    locations: Iterable[float], scales: Iterable[float], robust: Prior, weight: float
) -> tuple[Prior, ...]:
    """Prior of each quantile: (1 - weight)·Laplace(location, scale) + weight·robust."""
    shares = (1.0 - weight, weight)
    return tuple(
        Mixture(shares, (Laplace(float(location), float(scale)), robust))
        for location, scale in zip(locations, scales, strict=True)
    )
