"""How many records a batch has, from released counts: what other releases may expect."""

from __future__ import annotations

from collections.abc import Sequence

from streamdp.kinds.spec import RowCount
from streamdp.kinds.statistics.measure_sections import CountSection
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
