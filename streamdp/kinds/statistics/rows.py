"""What released counts tell of other releases: records of a batch, and records of a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamdp.kinds.spec import LeftOut, RowCount
from streamdp.kinds.statistics.measure_sections import CountSection, UnitSizesSection
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.types import Row, Rows

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
