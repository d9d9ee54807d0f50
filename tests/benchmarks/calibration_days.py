"""How often intervals hold on first days, on the day of a shift, on the days after it, and else.

`python -m tests.benchmarks.calibration_days [--json] [--quick] [--first N] [--streams N]`. Streams
are those of `calibration_family`, by number; every release counts, the first too. A row of a part
says, of all streams that have such days: the mean cover, the share of streams of .93 or more, the
mean of the tenth that hold least, and the median of the widths over those that would hold 95 % of
the stream's errors on such days, 1 at best. Streams that jump every day, and outermost quantiles
alone, are parts too. Rows of one stream say on which side the intervals that miss lie.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from streamdp.types import BoolArray, FloatArray
from tests.benchmarks.calibration import WARM, Seen, kind_of, released
from tests.benchmarks.calibration_family import FEW, FIRST, STREAMS, releases, stream
from tests.benchmarks.report import Row, main

SHIFT = 12
"""The day on which streams of `calibration_family` that shift do so."""

GOOD = 0.93


def parts(title: str, number: int) -> tuple[str, ...]:
    """What sort of day this is of its stream; 0 is the first."""
    here = ["all days", "days 1 to 10" if number < 10 else "later days"]
    if number >= WARM:
        here.append("days that calibration_family counts")
    if ", jumps" in title:
        here.append("streams that jump")
    if ", shift" in title and number >= SHIFT:
        since = number - SHIFT
        here.append("day of a shift" if not since else "three days after" if since < 4 else "")
    return tuple(each for each in here if each)


def found(title: str, seen: list[Seen], about: str, lower: str) -> dict[str, tuple[float, ...]]:
    """By part: cover, width over the needed, shares of intervals below and above what they miss."""
    upper = lower.replace("lower", "upper")
    ends = np.array([[(row[lower], row[upper]) for row in each.rows] for each in seen])
    points = np.array([[row[about] for row in each.rows] for each in seen])
    first, last = (np.array([getattr(each, name) for each in seen]) for name in ("first", "last"))
    below, above = ends[..., 1] < first, ends[..., 0] > last
    errors = np.maximum(np.maximum(first - points, points - last), 0.0)
    units = np.array([each.unit for each in seen])
    result: dict[str, tuple[float, ...]] = {}
    days = [parts(title, number) for number in range(len(seen))]
    for part in dict.fromkeys(each for day in days for each in day):
        these = np.array([part in day for day in days])
        result[part] = _measured(
            below[these], above[these], ends[these], errors[these], units[these]
        )
    if below.shape[1] > 1:
        at = slice(WARM, None), slice(None, None, below.shape[1] - 1)
        result["outermost of those"] = _measured(
            below[at], above[at], ends[at], errors[at], units[at]
        )
    return result


def _measured(
    below: BoolArray, above: BoolArray, ends: FloatArray, errors: FloatArray, units: FloatArray
) -> tuple[float, ...]:
    needed = 2.0 * np.maximum(np.quantile(errors, 0.95, axis=0), units.mean(axis=0))
    ratio = np.median(ends[..., 1] - ends[..., 0], axis=0) / needed
    held = 1.0 - (below | above).mean()
    return float(held), float(np.median(ratio)), float(below.mean()), float(above.mean())


def rows(quick: bool, first: int, streams: int) -> Iterator[Row]:
    """A row of every stream, then one of each part over all."""
    by_part: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for number in range(first, first + (FEW if quick else streams)):
        data, quantiles, information, who = stream(number)
        kind = kind_of(data, quantiles, information, who)
        seen = list(released(kind, data, releases(quantiles) + WARM, 0))
        for column in kind.columns:
            if column.about in ("value", "smoothed") and column.role == "lower":
                if column.name not in seen[0].rows[0]:
                    continue
                for part, each in found(data.name, seen, column.about, column.name).items():
                    by_part.setdefault((column.about, part), []).append(each)
                    yield _of_stream(data.name, quantiles, column.about, part, each)
    for (about, part), all_of_it in sorted(by_part.items()):
        cover, width, below, above = np.array(all_of_it).T
        worst = np.sort(cover)[: max(1, len(cover) // 10)]
        yield {
            "data": f"{len(cover)} streams",
            "quantiles": "all",
            "what": about,
            "part": part,
            "coverage": round(float(cover.mean()), 3),
            "width_ratio": round(float(np.median(width)), 2),
            "share_good": round(float((cover >= GOOD).mean()), 3),
            "worst_tenth": round(float(worst.mean()), 3),
            "below": round(float(below.mean()), 3),
            "above": round(float(above.mean()), 3),
        }


def _of_stream(
    name: str, quantiles: str, about: str, part: str, each: tuple[float, ...]
) -> dict[str, Any]:
    return {
        "data": name,
        "quantiles": quantiles,
        "what": about,
        "part": part,
        "coverage": round(each[0], 3),
        "width_ratio": round(each[1], 2),
        "share_good": None,
        "worst_tenth": None,
        "below": round(each[2], 3),
        "above": round(each[3], 3),
    }


if __name__ == "__main__":
    asked = argparse.ArgumentParser(add_help=False)
    asked.add_argument("--first", type=int, default=FIRST, help="number of the first stream")
    asked.add_argument("--streams", type=int, default=STREAMS, help="how many")
    known, _ = asked.parse_known_args()
    main(
        "Intervals by the sort of day: how often they hold, and how wide they are",
        partial(rows, first=known.first, streams=known.streams),
        parser=asked,
    )
