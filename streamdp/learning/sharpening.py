"""From a belief to priors: as wide as lowers the error of the draws, which is not the belief.

If v ~ Normal(m, s²) and a draw falls off by e^(-|o - v|/u), then where the data say less than the
belief (s well below u) drawing anywhere but near m only adds noise, and where they say more the
prior need not narrow them: the best scale of a Cauchy prior goes from a quarter of s to most of
it. It never goes to nothing, for a draw that is sure to fall on m teaches nothing for the next.
A Cauchy forgives a belief that is too sure of itself: its error grows with ln of the surprise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.belief import Belief
from streamdp.learning.weighted import weighted_quantiles
from streamdp.priors.families import Cauchy
from streamdp.priors.mixture import Mixture
from streamdp.types import FloatArray, Prior

SLOPE, START = 3.0, 0.1
NARROWEST, WIDEST = 0.25, 0.75
"""Scale of a prior in deviations s: SLOPE·(s/u - START), within these."""

FAR_WEIGHT, FAR = 0.2, 300.0
"""Part of the robust weight that is spread over hundreds of guessed spreads."""

FIRST_ROBUST = 0.5
"""Robust weight before the first release; falls as 1/(releases + 1)."""


@dataclass(frozen=True, slots=True)
class Sharpening:
    """How beliefs become priors: (1 - λ)·Cauchy + λ·(robust + far).

    Args:
        robust: Prior that holds when the past misleads.
        robust_weight: λ.
        guess: Location and spread before any release.
        resolution: Width of a cell.
    """

    robust: Prior
    robust_weight: float
    guess: tuple[float, float]
    resolution: float

    def priors(self, belief: Belief, units: FloatArray, releases: int) -> tuple[Prior, ...]:
        """One prior a quantile; `units` are the value widths of one unit of noise, shape (m,)."""
        robust = max(self.robust_weight, FIRST_ROBUST / (releases + 1))
        if robust >= 1.0:
            return (self.robust,) * len(units)
        weights = belief.weights()
        middles = weighted_quantiles(belief.means, weights, 0.5)
        variances = np.diagonal(belief.covariances, axis1=1, axis2=2)
        away = np.sqrt(variances + (belief.means - middles) ** 2)
        deviations = weighted_quantiles(away, weights, 0.5)
        factors = np.clip(SLOPE * (deviations / units - START), NARROWEST, WIDEST)
        scales = np.maximum(factors * deviations, self.resolution / 4.0)
        shares = (1.0 - robust, robust * (1.0 - FAR_WEIGHT), robust * FAR_WEIGHT)
        far = Cauchy(self.guess[0], FAR * self.guess[1])
        return tuple(
            Mixture(shares, (Cauchy(float(middle), float(scale)), self.robust, far))
            for middle, scale in zip(middles, scales, strict=True)
        )
