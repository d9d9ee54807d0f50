"""Values between measured quantiles, were a batch spread by a smooth law.

Usual gaps come from few noisy releases, and a batch that is unlike the others is unlike them
between its measured quantiles too: there the belief is unsure, and a law with a tail on either
side says more. The tails are those that fit the usual gaps best. Where gaps follow no such law, by
what they are off counts as noise of it, so that the belief keeps what it knows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from streamdp.learning.experts.belief import density
from streamdp.priors.shapes import tukey
from streamdp.types import FloatArray

TAILS = (0.5, 0.25, 0.0, -0.25, -0.5, -1.0, -1.5)
"""Tukey's, of either half: from even to heavier than Cauchy's."""

LEAST_MISFIT = 0.05
"""Deviation, in ranks, of a quantile from a law that fits the usual gaps: batches differ."""

MISFITS = 2.0
"""Deviations of the usual gaps from the law that a quantile may be off."""


@lru_cache(maxsize=64)
def standard_laws(quantiles: tuple[float, ...]) -> FloatArray:
    """Quantiles of laws with two tails, of slope one at their median 0; shape (laws, m)."""
    targets = np.array(quantiles)
    at = np.array([0.5 - 1e-4, 0.5 + 1e-4])
    halves = []
    for tail in TAILS:
        law = np.full(1, tail)
        halves.append(tukey(targets, law) * (np.diff(at) / np.diff(tukey(at, law))))
    pairs = itertools.product(halves, repeat=2)
    laws = np.array([np.where(targets < 0.5, left, right) for left, right in pairs])
    laws.flags.writeable = False
    return laws


@dataclass(frozen=True, slots=True)
class SmoothLaw:
    """The smooth law of the usual gaps.

    Args:
        places: Its quantiles, shape (m,).
        variance: Of a quantile about it once some are known, in squared ranks.
    """

    places: FloatArray
    variance: float

    @classmethod
    def of(cls, targets: FloatArray, log_gaps: FloatArray, each: FloatArray) -> Self:
        """The law that fits best, by least squares in ranks; a point for a single quantile.

        Args:
            targets: Quantiles, shape (m,).
            log_gaps: Usual gaps between them.
            each: Density at each, shape (m,).
        """
        if len(each) == 1:
            return cls(np.zeros(1), LEAST_MISFIT**2)
        laws = standard_laws(tuple(targets.tolist()))
        usual = density.profile(log_gaps)
        weights = each**2 / (each**2).sum()
        off, away = laws - (laws @ weights)[:, None], usual - usual @ weights
        slopes = (off * away) @ weights / (off**2 @ weights)
        misfits = ((away - slopes[:, None] * off) * each) ** 2
        best = int(misfits.sum(axis=1).argmin())
        misfit = misfits[best].sum() / max(len(usual) - 4, 1)
        return cls(slopes[best] * laws[best], float(LEAST_MISFIT**2 + MISFITS**2 * misfit))

    def through(self, released: Mapping[int, float]) -> FloatArray:
        """All quantiles: the law stretched between the released ones, its slopes kept beyond."""
        known = sorted(released)
        places, values = self.places[known], np.array([released[j] for j in known])
        return density.extended(self.places, places, values)

    def filled(
        self,
        point: FloatArray,
        ranks: FloatArray,
        released: Mapping[int, float],
        repeated: FloatArray,
    ) -> FloatArray:
        """Quantiles that were not released, each as near to the law as the belief is unsure.

        Args:
            point: What is believed, non-decreasing, shape (m,); of released ones it stays.
            ranks: Its deviations, in ranks.
            released: Values by index, two at least.
            repeated: How far each quantile repeats exact values, which no smooth law does.
        """
        share = (1.0 - repeated) * ranks**2 / (ranks**2 + self.variance)
        share[list(released)] = 0.0
        return np.sort(point + share * (self.through(released) - point))
