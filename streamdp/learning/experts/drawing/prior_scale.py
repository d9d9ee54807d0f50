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

import numpy as np

from streamdp.learning.experts.facts import Facts
from streamdp.priors.families import Cauchy
from streamdp.priors.mixture import Mixture
from streamdp.priors.past import PastValues
from streamdp.types import Prior

SLOPE, START = 3.0, 0.1
NARROWEST, WIDEST = 0.25, 0.75
"""Scale of a prior in deviations s: SLOPE·(s/u - START), within these."""

DOUBT, DOUBTED = 0.3, 3.0
"""Weight of the wider Cauchy, and its scale in units of the larger of s and u."""

PAST = 0.3
"""Largest weight of exact past values."""

FAR_WEIGHT, FAR = 0.2, 300.0
"""Part of the robust weight that is spread over hundreds of guessed spreads."""


def prior_of(
    facts: Facts,
    robust: float,
    point: float,
    deviation: float,
    unit: float,
    past: tuple[float, ...],
) -> Prior:
    """The prior of one draw.

    Args:
        facts: About the stream.
        robust: Weight of the priors that hold when the past misleads.
        point: Believed value of the quantile.
        deviation: Believed deviation s from there.
        unit: Width u over which the cost of the draw changes by one.
        past: Exact values that were released of the quantile.
    """
    if robust >= 1.0:
        return facts.robust
    cell = facts.resolution
    factor = float(np.clip(SLOPE * (deviation / unit - START), NARROWEST, WIDEST))
    again, share = repeated_values(past, cell)
    exact = PAST * share
    near = (1.0 - robust) * (1.0 - exact)
    weighted: list[tuple[float, Prior]] = [
        (near * (1.0 - DOUBT), Cauchy(point, max(factor * deviation, cell / 4.0))),
        (near * DOUBT, Cauchy(point, max(DOUBTED * max(deviation, unit), cell / 4.0))),
        (robust * (1.0 - FAR_WEIGHT), facts.robust),
        (robust * FAR_WEIGHT, Cauchy(facts.guess[0], FAR * facts.guess[1])),
    ]
    if exact:
        weighted.append(((1.0 - robust) * exact, PastValues(again)))
    weights, priors = zip(*weighted, strict=True)
    return Mixture(weights, priors)


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
