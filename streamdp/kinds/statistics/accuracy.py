"""Expected errors of statistics, from public facts alone: of released values as drawn.

Smoothed values only help on the average; how much depends on the stream, and `simulate` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.mechanisms.additive_noise import AdditiveNoise

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Statistics

LEVEL = 0.95


class CountError:
    """The error that 95 % of released counts stay within: the reach of their noise."""

    def expected(self, kind: Statistics) -> Mapping[str, float | None]:
        """One a measure of counts; means depend on how many records there are."""
        return {
            f"{measure.name} error_95": float(measure.asked(None, price)[0].noise.reach(LEVEL))
            for measure, price in kind.prices()
            if measure.counts
        }

    def epsilon_for(self, kind: Statistics, error: float) -> Fraction | None:
        """Price for one record of all measures, at which the first count is so near.

        None too for a price in rho, which no epsilon stands for.
        """
        if kind.price.measure == "rho":
            return None
        for (measure, price), share in zip(kind.prices(), kind.shares, strict=True):
            if not measure.counts:
                continue
            sensitivity = measure.asked(None, price)[0].noise.sensitivity
            low, high = Fraction(1, 10**6), Fraction(100)
            if AdditiveNoise(high, sensitivity).reach(LEVEL) > error:
                return None
            for _ in range(40):
                middle = (low + high) / 2
                if AdditiveNoise(middle, sensitivity).reach(LEVEL) <= error:
                    high = middle
                else:
                    low = middle
            return high / share
        return None
