"""The paper's gradient descent on the surrogate: at released points, or on bought gradients.

The quantile is not known, its release o is: the interval is o ± radius. Location and scale of
quantile j are (W_j·f)/φ_j and 1/φ_j, with public features f (a constant first). Steps are those of
coin betting, on the loss `log-sum-exp`.

References:
    Khodak et al. 2023, section 4 (proxy loss, robust mixing); Orabona & Tommasi 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from streamdp.learning.learner import Features, Learner, LinearPriors, Observation
from streamdp.learning.online_gradient.descent import Descent, laplace
from streamdp.learning.online_gradient.public_fit import PublicFit
from streamdp.mechanisms.quantile_tree.noisy_gradient import Slope
from streamdp.priors.shapes import robust_laplaces
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
        """Return the state before any release."""
        return {}

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """One prior for each of `count` quantiles, from the releases and public features."""
        descent = self._descent(state, count, len(features))
        locations = (descent.weights @ np.array([1.0, *features])) / descent.inverse_scales
        return robust_laplaces(locations, descent.scales, self.robust, self.robust_weight)

    def observe(self, state: Json, seen: Observation) -> Json:
        """One step on the loss of the release."""
        released, inputs = np.array(seen.values), np.array([1.0, *seen.features])
        descent = self._descent(state, len(released), len(seen.features))
        return _state(descent.updated(inputs, released - self.radius, released + self.radius))

    def linear_priors(self, state: Json) -> LinearPriors | None:
        """The priors, in the unit of the column; none before the first release."""
        if not state:
            return None
        count, columns = np.array(state["parameters"]).shape
        descent = self._descent(state, count, columns - 2)
        weights, phi, scales = descent.weights, descent.inverse_scales, descent.scales
        return LinearPriors(np.empty(0), weights, phi, weights * scales[:, None], scales)

    def _descent(self, state: Json, count: int, features: int) -> Descent:
        """Priors of `count` quantiles and so many features, in the unit of the column."""
        if state:
            parameters = np.array(state["parameters"])
            weights, phi, kept = parameters[:, :-1], parameters[:, -1], state["optimizer"]
        else:
            weights, kept = np.zeros((count, 1 + features)), {}
            if self.first is None:
                phi = np.full(count, 1.0 / self.guess[1])
                weights[:, 0] = self.guess[0] / self.guess[1]
            else:
                phi = 1.0 / np.maximum(self.first.scales, self.narrowest)
                weights[:, 0] = np.array(self.first.locations) * phi
        bounds = 1.0 / (LONGEST * self.guess[1]), 1.0 / self.narrowest
        return Descent(weights, phi, "log-sum-exp", "coin-betting", kept, bounds)


def _state(descent: Descent) -> Json:
    """Priors as `PointGradient` keeps them."""
    parameters = np.column_stack((descent.weights, descent.inverse_scales))
    return {"parameters": parameters.tolist(), "optimizer": descent.optimizer_state}


@dataclass(frozen=True, slots=True)
class PrivateGradient(PointGradient):
    """Priors learned from noisy gradients at the batches' own quantiles, which cost epsilon.

    It is worse than learning from releases, which is free: one record can reverse the sign of a
    gradient, however many records there are, so the noise of a gradient of norm one has scale
    2/(gradient_share·epsilon). Coin betting stakes little on such gradients: noise alone moves a
    prior by a tenth of the guessed scale.

    Gradients and steps are those of values standardised by the guess, z = (x - location)/scale, so
    that one is as much in every coordinate: θ' = θ - location·φ and φ' = scale·φ.

    Args:
        gradient_share: Part of a release's epsilon, in (0, 1), that buys the gradient.
    """

    gradient_share: Fraction = Fraction(1, 2)

    def describe(self) -> Json:
        """Public parameters a state depends on; the share is none of them, nor is epsilon."""
        return PointGradient.describe(self) | {"private_gradient": True}

    def slope(self, state: Json, count: int, features: Features = ()) -> Slope:
        """Return the gradient of the surrogate by each θ', then each φ', at the true quantiles."""
        location, scale = self.guess
        standard = self._standard(state, count, len(features))
        theta = standard.weights @ np.array([1.0, *features])
        half = self.radius / scale

        def at(values: FloatArray) -> FloatArray:
            where = (values - location) / scale
            losses = laplace(theta, standard.inverse_scales, where - half, where + half)
            return losses.gradient().T.ravel()

        return at

    def observe(self, state: Json, seen: Observation) -> Json:
        """One step along the noisy gradient that was bought."""
        assert seen.gradient is not None  # noqa: S101
        by_theta, by_phi = np.reshape(seen.gradient, (2, -1))
        standard = self._standard(state, len(by_phi), len(seen.features))
        after = standard.stepped(np.array([1.0, *seen.features]), by_theta, by_phi)
        location, scale = self.guess
        phi, weights = after.inverse_scales / scale, after.weights.copy()
        weights[:, 0] += location * phi
        return _state(replace(after, weights=weights, inverse_scales=phi))

    def _standard(self, state: Json, count: int, features: int) -> Descent:
        """The priors of standardised values."""
        location, scale = self.guess
        descent = self._descent(state, count, features)
        phi, weights = descent.inverse_scales, descent.weights.copy()
        weights[:, 0] -= location * phi
        bounds = 1.0 / LONGEST, scale / self.narrowest
        return replace(descent, weights=weights, inverse_scales=scale * phi, bounds=bounds)
