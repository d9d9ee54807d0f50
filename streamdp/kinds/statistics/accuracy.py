"""Expected errors of statistics, from public facts alone: of released values as drawn.

Smoothed values only help on the average; how much depends on the stream, and `simulate` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.least_price import least_price
from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.protocol import Allowance, Measure
from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Statistics

LEVEL = 0.95


class CountError:
    """The error that 95 % of released counts stay within: the reach of their noise."""

    def expected(self, kind: Statistics) -> Mapping[str, float | None]:
        """One a measure, in its unit, of a first release.

        That of a mean is given times the records of a batch, since it is so much less the more
        there are; what clipping hides comes on top. A variance has none.
        """
        found: dict[str, float | None] = {}
        for measure, price in kind.prices():
            asked = measure.asked(None, price)
            if measure.counts:
                found[f"{measure.name} error_95"] = float(asked[0].noise.reach(LEVEL))
            elif isinstance(measure, MomentOf) and measure.moment != "variance":
                reach = asked[1].noise.reach(LEVEL) * float(measure.grid.resolution)
                times = " times records" if measure.moment == "mean" else ""
                found[f"{measure.name} error_95{times}"] = float(f"{reach:.4g}")
        return found

    def price_for(self, kind: Statistics, error: float) -> Price | None:
        """Price for one record of all measures, at which the first count is so near."""
        for measure, share in zip(kind.measures, kind.shares, strict=True):
            if measure.counts:
                return _for_count(kind, measure, share, error)
        return None


def _for_count(kind: Statistics, measure: Measure, share: Fraction, error: float) -> Price | None:
    def reach(price: Price) -> float:
        allowance = Allowance(price.share(share), kind.neighbours)
        return measure.asked(None, allowance)[0].noise.reach(LEVEL)

    return least_price(reach, error, kind.price.measure)
