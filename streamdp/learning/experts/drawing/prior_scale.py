"""From a belief to priors: as wide as lowers the error of the draws, which is not the belief.

If v ~ Normal(m, s²) and a draw falls off by e^(-|o - v|/u), then where the data say less than the
belief (s well below u) drawing anywhere but near m only adds noise, and where they say more the
prior need not narrow them: the best scale of a Cauchy prior goes from a quarter of s to most of
it. A wider Cauchy beside it costs little where the belief is right, and saves much where it is too
sure of itself. Exact past values have mass of their own, for where many records are equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.noise import NoisyDraw
from streamdp.learning.experts.facts import Facts
from streamdp.priors.families import Cauchy
from streamdp.priors.mixture import Mixture
from streamdp.priors.past import PastValues
from streamdp.types import FloatArray, Prior

SLOPE, START = 3.0, 0.1
NARROWEST, WIDEST = 0.25, 0.75
"""Scale of a prior in deviations s: SLOPE·(s/u - START), within these."""

DOUBT, DOUBTED = 0.3, 3.0
"""Weight of the wider Cauchy, and its scale in units of the larger of s and u."""

PAST = 0.3
"""Largest weight of exact past values."""

FAR_WEIGHT, FAR = 0.2, 300.0
"""Part of the robust weight that is spread over hundreds of guessed spreads."""

FIRST_ROBUST = 0.5
"""Robust weight before the first release; falls as 1/(releases + 1)."""


@dataclass(frozen=True, slots=True)
class PriorRule:
    """How a belief becomes a prior of each draw.

    Args:
        facts: About the stream.
        releases: How many came before.
        past: Exact values released of each quantile, shape (m, ...).
    """

    facts: Facts
    releases: int
    past: tuple[tuple[float, ...], ...]

    def priors(
        self, belief: Belief, draws: Sequence[NoisyDraw], density: FloatArray
    ) -> dict[int, Prior]:
        """The prior of each drawn quantile, by its index."""
        robust = max(self.facts.robust_weight, FIRST_ROBUST / (self.releases + 1))
        if robust >= 1.0:
            return {draw.target: self.facts.robust for draw in draws}
        point, deviations = belief.medians(), belief.deviations()
        return {
            draw.target: self._prior(draw, robust, point, deviations, density) for draw in draws
        }

    def _prior(
        self,
        draw: NoisyDraw,
        robust: float,
        point: FloatArray,
        deviations: FloatArray,
        density: FloatArray,
    ) -> Mixture:
        at, spread = float(point[draw.target]), float(deviations[draw.target])
        facts, cell = self.facts, self.facts.resolution
        unit, past = draw.unit(float(density[draw.target])), self.past[draw.target]
        factor = float(np.clip(SLOPE * (spread / unit - START), NARROWEST, WIDEST))
        again, share = repeated_values(past, cell)
        exact = PAST * share
        near = (1.0 - robust) * (1.0 - exact)
        weights = [
            near * (1.0 - DOUBT),
            near * DOUBT,
            robust * (1.0 - FAR_WEIGHT),
            robust * FAR_WEIGHT,
        ]
        parts: list[Prior] = [
            Cauchy(at, max(factor * spread, cell / 4.0)),
            Cauchy(at, max(DOUBTED * max(spread, unit), cell / 4.0)),
            facts.robust,
            Cauchy(facts.guess[0], FAR * facts.guess[1]),
        ]
        if exact:
            weights.append((1.0 - robust) * exact)
            parts.append(PastValues(again))
        return Mixture(tuple(weights), tuple(parts))


def repeated_values(past: tuple[float, ...], resolution: float) -> tuple[tuple[float, ...], float]:
    """Values that were released again, and by how much more often than chance alone repeats them.

    Of values spread evenly over ±√3 deviations, each is met again with 1 - e^(-count/cells).
    """
    counts = Counter(past)
    again = tuple(value for value in past if counts[value] > 1)
    if not again:
        return (), 0.0
    cells = 2.0 * math.sqrt(3.0) * float(np.std(past)) / resolution
    chance = -math.expm1(-len(past) / max(cells, 1e-9))
    return again, max(len(again) / len(past) - chance, 0.0)
