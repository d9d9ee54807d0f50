"""Online gradient descent on the surrogate at released points, as in the paper.

The quantile is not known, its release o is: the interval is o ± radius. Location and scale of
quantile j are (W_j·f)/φ_j and 1/φ_j, with public features f (a constant first).

References:
    Khodak et al. 2023, section 4 (proxy loss, robust mixing).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning import coin_betting
from streamdp.learning.learner import Features, Learner, Observation
from streamdp.learning.public_fit import PublicFit
from streamdp.learning.surrogate import laplace
from streamdp.priors.mixture import robust_laplaces
from streamdp.types import FloatArray, Json, Prior

LONGEST = 1_000.0
"""Largest scale of a prior, in guessed scales."""


@dataclass(frozen=True, slots=True)
class PointGradient(Learner):
    """Prior of quantile j: (1 - λ)·Laplace((W_j·f)/φ_j, 1/φ_j) + λ·robust.

    Args:
        robust: Prior that holds when the past misleads.
        robust_weight: λ in (0, 1].
        guess: Location and scale before any release.
        radius: Half of the interval around a release; half the resolution at least.
        narrowest: Least scale; φ is projected on [1/(1,000·guessed scale), 1/narrowest].
        first: What public rows say before any release, instead of the guess.
    """

    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    radius: float
    narrowest: float
    first: PublicFit | None = None

    def describe(self) -> Json:
        """Public parameters a state depends on."""
        return {"learner": "online-gradient", "guess": list(self.guess), "radius": self.radius}

    def init(self) -> Json:
        """Nothing released yet."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """One prior for each of `count` quantiles, from the releases and public features."""
        weights, phi = self._parameters(state, count, len(features))
        locations = (weights @ np.array([1.0, *features])) / phi
        return robust_laplaces(locations, 1.0 / phi, self.robust, self.robust_weight)

    def observe(self, state: Json, seen: Observation) -> Json:
        """One step on the loss of the release."""
        released, inputs = np.array(seen.values), np.array([1.0, *seen.features])
        weights, phi = self._parameters(state, len(released), len(seen.features))
        lower, upper = released - self.radius, released + self.radius
        by_theta, by_phi = laplace(weights @ inputs, phi, lower, upper).gradient().T
        gradient = np.column_stack((np.outer(by_theta, inputs), by_phi))
        parameters = np.column_stack((weights, phi))
        kept = state["optimizer"] if state else coin_betting.start(parameters.shape)
        stepped, kept = coin_betting.step(gradient, kept, parameters)
        longest = LONGEST * self.guess[1]
        stepped[:, -1] = np.clip(stepped[:, -1], 1.0 / longest, 1.0 / self.narrowest)
        return {"parameters": stepped.tolist(), "optimizer": kept}

    def _parameters(self, state: Json, count: int, features: int) -> tuple[FloatArray, FloatArray]:
        """W of shape (m, 1 + features) and φ of shape (m,)."""
        if state:
            parameters = np.array(state["parameters"])
            return parameters[:, :-1], parameters[:, -1]
        weights = np.zeros((count, 1 + features))
        if self.first is not None:
            phi = 1.0 / np.maximum(self.first.scales, self.narrowest)
            weights[:, 0] = np.array(self.first.locations) * phi
            return weights, phi
        weights[:, 0] = self.guess[0] / self.guess[1]
        return weights, np.full(count, 1.0 / self.guess[1])
