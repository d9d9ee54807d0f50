"""Means over all streams of a part, beside the figures that were recorded before."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from streamdp.simulation.comparison import Figures
from tests.benchmarks.report import Row
from tests.benchmarks.streams.settings import Setting

RECORDED = Path(__file__).parent / "c7b2b41.json"
"""Late errors, average and largest, of the commit of that name, on streams of this length.

Its default learner, `mixture`, is what later ones are compared with.
"""

SUMMED = ("mixture", "no-learning", "last-release")

ERRORS = ("average_error", "largest_error")

RATIOS = ("to_c7b2b41", "loss_to_best_plan")


def to_recorded(setting: Setting, found: Figures) -> float | None:
    """Average error over that of the recorded default learner; None where it was not recorded."""
    known = _recorded().get(setting.key)
    return None if known is None else round(found.late_average / known["mixture"][0], 3)


@functools.cache
def _recorded() -> dict[str, dict[str, tuple[float, float]]]:
    found: dict[str, dict[str, tuple[float, float]]] = json.loads(RECORDED.read_text("utf-8"))
    return found


def summary(rows: Sequence[Row]) -> Iterator[Row]:
    """Geometric means and the largest ratio, of each part and each of `SUMMED`."""
    parts = list(dict.fromkeys(str(row["part"]) for row in rows))
    for part in parts:
        for who in SUMMED:
            ours = [row for row in rows if (row["part"], row["who"]) == (part, who)]
            held = [row for row in ours if row["sharpness"] == "ours"]
            base: Row = {"part": part, "who": who, "sharpness": "ours"}
            errors = {name: _mean(_values(held, name), 4) for name in ERRORS}
            ratios = {name: _mean(_values(held, name), 3) for name in RATIOS}
            yield {**base, "stream": f"geometric mean of {len(held)}", **errors, **ratios}
            largest = {name: max(_values(held, name), default=None) for name in RATIOS}
            yield {**base, "stream": f"largest of {len(held)}", **largest}


def _values(rows: Iterable[Row], name: str) -> list[float]:
    """Those above zero, which have a logarithm."""
    found = [row.get(name) for row in rows]
    return [each for each in found if isinstance(each, float) and each > 0.0]


def _mean(values: Sequence[float], digits: int) -> float | None:
    """Geometric."""
    if not values:
        return None
    return round(math.exp(math.fsum(map(math.log, values)) / len(values)), digits)
