"""Expected errors of statistics, from public facts alone: of released values as drawn.

Smoothed values only help on the average; how much depends on the stream, and `simulate` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.charging import least_price
from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.protocol import Allowance, Measure
from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Statistics

LEVEL = 0.95


class CountError:
    """The error that 95 % of released values stay within: the reach of their noise."""

    def expected(self, kind: Statistics) -> Mapping[str, float | None]:
        """One a measure, in its unit, of a first release; what clipping hides comes on top.

        Of a mean or variance the error is so much less the more records there are: without expected
        rows that of a mean is given times the records, and a variance has none.
        """
        found: dict[str, float | None] = {}
        for measure, price in kind.prices():
            error = error_of(measure, price, kind.expected_rows)
            if error is not None:
                found[f"{measure.name} error_95"] = float(f"{error:.4g}")
            elif isinstance(measure, MomentOf) and measure.moment == "mean":
                error = error_of(measure, price, 1) or 0.0
                found[f"{measure.name} error_95 times records"] = float(f"{error:.4g}")
        return found

    def price_for(self, kind: Statistics, error: float) -> Price | None:
        """Price for one record of all measures, at which the first count is so near."""
        first = next((each for each in kind.measures if each.counts), None)
        return None if first is None else self.prices_for(kind, error)[first.name]

    def prices_for(self, kind: Statistics, error: float) -> Mapping[str, Price | None]:
        """The price for one record of all measures at which each measure is so near in its unit.

        Args:
            kind: Of the release.
            error: In records, or the unit of a column.
        """
        found: dict[str, Price | None] = {}
        for measure, share in zip(kind.measures, kind.shares, strict=True):
            if (
                error_of(measure, Allowance(kind.price, kind.neighbours), kind.expected_rows)
                is None
            ):
                continue

            def reach(price: Price, measure: Measure = measure, share: Fraction = share) -> float:
                allowance = Allowance(price.share(share), kind.neighbours)
                return error_of(measure, allowance, kind.expected_rows) or 0.0

            found[measure.name] = least_price(reach, error, kind.price.measure)
        return found


def error_of(measure: Measure, price: Allowance, records: int | None) -> float | None:
    """The error of a first release that 95 % stay within, in the unit of the measure.

    Args:
        measure: What is released.
        price: Of the measure.
        records: Of a batch or group; a mean or variance has no error without them.
    """
    asked = measure.asked(None, price)
    if measure.counts:
        return float(asked[0].noise.reach(LEVEL))
    if not isinstance(measure, MomentOf):
        return None
    width = float(measure.grid.resolution)
    if measure.moment == "sum":
        return asked[1].noise.reach(LEVEL) * width
    if records is None:
        return None
    if measure.moment == "mean":
        return asked[1].noise.reach(LEVEL) * width / records
    return asked[2].noise.reach(LEVEL) * width**2 / records
