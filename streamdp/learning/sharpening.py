"""From a belief to a prior: as sharp as lowers the error of the draw, which is not the belief.

If v ~ Normal(m, s²) and the draw falls off by e^(-|o - v|/u), then a prior of scale
s·(1.5·s/u - 0.45), between 0.03·s and 1.5·s, is near the best (numerically, over Laplace priors):
where the data say less than the belief (s < u/2) drawing anywhere but at m only adds noise; where
they say more, the prior need not narrow them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.belief import Belief
from streamdp.learning.noise import NoisyDraw
from streamdp.learning.update import weighted_quantile
from streamdp.priors.families import Cauchy, Laplace
from streamdp.priors.mixture import Mixture
from streamdp.types import Prior

SLOPE, START = 1.5, 0.3
NARROWEST, WIDEST = 0.03, 1.5

TAIL_WEIGHT, TAIL = 0.1, 4.0
"""Part of the prior that is several deviations wide, should the belief be too sure of itself."""

FAR_WEIGHT, FAR = 0.2, 300.0
"""Part of the robust weight that is spread over hundreds of guessed spreads."""

FIRST_ROBUST = 0.5
"""Robust weight before the first release; falls as 1/(releases + 1)."""


@dataclass(frozen=True, slots=True)
class Sharpening:
    """How beliefs become priors: (1 - λ)·(narrow + tail) + λ·(robust + far).

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

    def prior(self, belief: Belief, draw: NoisyDraw, density: float, releases: int) -> Prior:
        """The prior of one draw; `density` is the share of the batch per unit at its quantile."""
        weights, means = belief.weights(), belief.means[:, draw.target]
        variances = belief.covariances[:, draw.target, draw.target]
        middle = weighted_quantile(means, weights, 0.5)
        away = np.hypot(np.sqrt(variances), means - middle)
        deviation = weighted_quantile(away, weights, 0.5)
        factor = SLOPE * (deviation / draw.unit(density) - START)
        narrow = min(max(factor, NARROWEST), WIDEST) * deviation
        tail = max(TAIL * deviation, weighted_quantile(away, weights, 0.9), self.resolution)
        robust = min(max(self.robust_weight, FIRST_ROBUST / (releases + 1)), 1.0)
        far = Cauchy(self.guess[0], FAR * self.guess[1])
        if robust >= 1.0:
            return self.robust
        return Mixture(
            (
                (1.0 - robust) * (1.0 - TAIL_WEIGHT),
                (1.0 - robust) * TAIL_WEIGHT,
                robust * (1.0 - FAR_WEIGHT),
                robust * FAR_WEIGHT,
            ),
            (
                Laplace(middle, max(narrow, self.resolution / 4.0)),
                Laplace(middle, tail),
                self.robust,
                far,
            ),
        )
