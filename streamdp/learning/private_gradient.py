"""Online gradient descent on gradients that are bought: noisy, at the batches' own quantiles.

Worse than learning from releases, which is free: one record can turn a gradient round, however
many records there are, so the noise of a gradient of norm one has scale 2/(share·epsilon). Coin
betting stakes little on such gradients: noise alone moves a prior by a tenth of the guessed scale.

References:
    Khodak et al. 2023, section 4 (the surrogate); Orabona & Tommasi 2017 (coin betting).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.learning import coin_betting
from streamdp.learning.learner import Features, Observation
from streamdp.learning.point_gradient import LONGEST, PointGradient
from streamdp.learning.surrogate import laplace
from streamdp.mechanisms.quantile_tree.noisy_gradient import Slope
from streamdp.types import FloatArray, Json


@dataclass(frozen=True, slots=True)
class PrivateGradient(PointGradient):
    """The same priors, learned from noisy gradients alone.

    Gradients and steps are those of values standardised by the guess, z = (x - location)/scale, so
    that one is as much in every coordinate: θ' = θ - location·φ and φ' = scale·φ.

    Args:
        share: Of a release's epsilon, in (0, 1); buys the gradient.
    """

    share: Fraction = Fraction(1, 2)

    def describe(self) -> Json:
        """Public parameters a state depends on; the share is none of them, nor is epsilon."""
        return PointGradient.describe(self) | {"private_gradient": True}

    def slope(self, state: Json, count: int, features: Features = ()) -> Slope:
        """How the surrogate rises in (θ', φ') where quantiles lie at some values.

        Args:
            state: What was learned before.
            count: Number m of quantiles.
            features: Of the batch.

        Returns:
            Values, shape (m,), to gradients, shape (2m,): by θ' and then by φ'.
        """
        location, scale = self.guess
        standard = self._standard(state, count, features)
        theta, phi = standard[:, :-1] @ np.array([1.0, *features]), standard[:, -1]
        half = self.radius / scale

        def at(values: FloatArray) -> FloatArray:
            where = (values - location) / scale
            return laplace(theta, phi, where - half, where + half).gradient().T.ravel()

        return at

    def observe(self, state: Json, seen: Observation) -> Json:
        """One step along the noisy gradient that was bought."""
        assert seen.gradient is not None  # noqa: S101
        by_theta, by_phi = np.reshape(seen.gradient, (2, -1))
        standard = self._standard(state, len(by_phi), seen.features)
        gradient = np.column_stack((np.outer(by_theta, [1.0, *seen.features]), by_phi))
        kept = state["optimizer"] if state else coin_betting.start(standard.shape)
        stepped, kept = coin_betting.step(gradient, kept, standard)
        location, scale = self.guess
        phi = np.clip(stepped[:, -1], 1.0 / LONGEST, scale / self.narrowest) / scale
        stepped[:, -1] = phi
        stepped[:, 0] += location * phi
        return {"parameters": stepped.tolist(), "optimizer": kept}

    def _standard(self, state: Json, count: int, features: Features) -> FloatArray:
        """(W', φ') of shape (m, 2 + d), d features."""
        location, scale = self.guess
        weights, phi = self._parameters(state, count, len(features))
        standard = np.column_stack((weights, scale * phi))
        standard[:, 0] -= location * phi
        return standard
