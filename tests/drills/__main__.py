"""Restore drills: python -m tests.drills [--json] [--quick].

Figures of each drill: what was spent since the copy, what was charged for it, in units of 1e-9, and
releases afterwards. The exit status is 1 if any has violations.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.report import Row, main
from tests.drills.lost_anchor import drills

PASTS, QUICK = 20, 3


def rows(quick: bool) -> Iterator[Row]:
    """A row a past and way back."""
    for each in drills(QUICK if quick else PASTS):
        yield {
            "past": each.past,
            "bound": each.way,
            "measure": each.measure,
            "spent": each.spent,
            "charged": each.charged,
            "released after": each.released,
            "wrong": "; ".join(each.wrong),
        }


if __name__ == "__main__":
    main(
        "The anchor is lost: spent since the copy, and charged",
        rows,
        failed=lambda row: bool(row["wrong"]),
    )
