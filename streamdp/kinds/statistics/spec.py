"""The release kind `statistics`: its checks, its errors, and what its counts tell other releases.

Errors are expected from public facts alone, of released values as drawn. Smoothed values only help
on the average; how much depends on the stream, and `simulate` shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.charging import least_price
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.spec import KindSpec, LeftOut, RowCount
from streamdp.kinds.statistics.build import build, tables
from streamdp.kinds.statistics.measures.moments import MomentOf
from streamdp.kinds.statistics.measures.protocol import Allowance, Measure
from streamdp.kinds.statistics.section import (
    CountSection,
    HistogramSection,
    MeasureSection,
    StatisticsSection,
    UnitSizesSection,
)
from streamdp.privacy.price import LEAST, Price
from streamdp.sections.expressions import Derived
from streamdp.types import Row, Rows

if TYPE_CHECKING:
    from streamdp.kinds.statistics.kind import Statistics
    from streamdp.kinds.study import Study

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


KNOWN = 0.5
"""A count is known if its interval reaches down to no less than this share of it."""

DIGITS = 2
"""Significant digits of an expected number: it need not follow every wave of the noise."""


def row_count(section: StatisticsSection, measure: str) -> RowCount | None:
    """A function that reads the records of each group off a release.

    Args:
        section: Of the release.
        measure: Name of a count of all records; for others the answer is None.
    """
    match section.measures.get(measure):
        case CountSection(count="records"):
            by = section.by
        case _:
            return None

    def read(rows: Sequence[Row]) -> Rows:
        """Estimate from all releases, of each group that is known well enough."""
        found = {}
        for row in rows:
            point, lower = float(row.get("smoothed") or 0), float(row.get("smoothed_lower") or 0)
            if row.get("measure") == measure and point >= 1.0 and lower >= KNOWN * point:
                group = tuple(str(row[name]) for name in by)
                found[group] = int(float(f"{point:.{DIGITS - 1}e}"))
        return found

    return read


def left_out(section: StatisticsSection, rows: Sequence[Row]) -> Mapping[int, LeftOut]:
    """The share of records that each bound leaves out, by all releases so far, if one tells it.

    Args:
        section: Of the release.
        rows: Of one release.
    """
    of = "smoothed" if section.smoothed else "value"
    ends = ("smoothed_lower", "smoothed_upper") if section.smoothed else ("lower", "upper")
    found: dict[int, LeftOut] = {}
    for name, measure in section.measures.items():
        if not isinstance(measure, UnitSizesSection):
            continue
        cells = {row["cell"]: row for row in rows if row.get("measure") == name}
        for bound in (1, *measure.records_a_unit[:-1]):
            row = cells.get(f"rows: {bound}")
            if row is not None:
                found[bound] = LeftOut(*(float(row[column] or 0) for column in (of, *ends)))
        found[measure.records_a_unit[-1]] = LeftOut(0.0, 0.0, 0.0)
        break
    return found


def check(section: StatisticsSection, context: CheckContext) -> Iterator[Problem]:
    """All that does not hang together."""
    for name, measure in section.measures.items():
        key, source = _source(measure)
        if isinstance(source, Derived):
            found = context.problem_of(source.sql, ("measures", name, key))
            yield from () if found is None else (found,)
    weights = [measure.weight for measure in section.measures.values()]
    share = Fraction(min(weights), sum(weights))
    least = section.price.share(share).of_record(context.rows)
    if least.amount < LEAST[least.measure]:
        yield Problem(
            (least.measure,),
            f"a measure would get less than {float(LEAST[least.measure]):g} for one record",
            "raise it, or ask for fewer measures or rows of a unit",
        )


def _source(measure: MeasureSection) -> tuple[str, str | Derived | None]:
    """Key and value of what is counted or summed."""
    if isinstance(measure, CountSection):
        return "count", measure.count
    if isinstance(measure, UnitSizesSection):
        return "records_a_unit", None
    if isinstance(measure, HistogramSection):
        return "histogram", measure.histogram
    found = {"sum": measure.sum, "mean": measure.mean, "variance": measure.variance}
    return next((key, value) for key, value in found.items() if value is not None)


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.statistics.study import StatisticsStudy

    return StatisticsStudy()


SPEC = KindSpec(
    "statistics",
    StatisticsSection,
    check,
    build,
    CountError(),
    study=_study,
    counts=tables,
    rows=row_count,
    pools_groups=True,
    left_out=left_out,
)
