"""The walk through a shop's orders: how often intervals hold, how wide, what is flagged.

python -m tests.stories [--json] [--quick]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.benchmarks.report import Row, main
from tests.stories.orders import EMPTY, Said, by_what, held, walk

LATE = 30
"""First day whose widths are compared."""


def rows(quick: bool) -> Iterable[Row]:
    """One row for each job, measure and group, over the seeds."""
    said: list[Said] = []
    for seed in range(1 if quick else 4):
        with tempfile.TemporaryDirectory() as folder:
            said += walk(Path(folder), 60, seed)
    found = by_what(said)
    for what, each in found.items():
        width, other = _width(each), _width(found.get(what.replace("wide", "narrow"), []))
        yield {
            "what": what,
            "days": len(each),
            "held": round(held(each), 3),
            "width": width and round(width, 1),
            "over_narrow": round(width / other, 2) if width and other and "wide" in what else None,
            "flagged_when_empty": sum(bool(one.flag) for one in each if one.day == EMPTY),
            "flagged_else": sum(bool(one.flag) for one in each if one.day != EMPTY),
        }


def _width(said: Iterable[Said]) -> float | None:
    late = [each.upper - each.lower for each in said if each.day >= LATE and each.day != EMPTY]
    return float(np.mean(late)) if late else None


if __name__ == "__main__":
    main("A walk through a shop's orders", rows)
