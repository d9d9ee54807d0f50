"""The release kind `statistics`: its checks, and what its counts tell other releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.spec import KindSpec, LeftOut, RowCount
from streamdp.kinds.statistics.accuracy import CountError
from streamdp.kinds.statistics.build import build, tables
from streamdp.kinds.statistics.measure_sections import (
    CountSection,
    HistogramSection,
    MeasureSection,
    UnitSizesSection,
)
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.privacy.price import LEAST
from streamdp.sections.expressions import Derived
from streamdp.types import Row, Rows

if TYPE_CHECKING:
    from streamdp.kinds.study import Study


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
