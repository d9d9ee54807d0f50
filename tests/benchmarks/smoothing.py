"""Smoothed statistics against what anyone can make of the same releases.

A row is a stream at a price: mean absolute error of `smoothed` on each batch's truth from the
second month on, and of the contenders that need no more than the released values: the values
themselves, their running mean, moving averages with weights of .1 and .3 for the newest, and 0 for
counts. `ratio` is over the best of them, which is chosen afterwards. `cover` is how often the
interval holds the truth, `surprised` on days that are far from the median of the two weeks before,
`first` in the first ten batches; `width` is that over what would hold 95 % of the errors.

`--held-back` runs streams that nothing was tuned on: hours, origins, laws drawn by a seed, means
and variances of departure delays (whose sums were seen), and the trips of the bases of a city where
TRIPS names them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np

from streamdp.privacy.price import Price
from streamdp.types import BoolArray, FloatArray
from tests.benchmarks.calibration_kinds import counts as of_counts
from tests.benchmarks.calibration_kinds import statistics as of_statistics
from tests.benchmarks.calibration_kinds import values as of_values
from tests.benchmarks.flights import PATH
from tests.benchmarks.peers.averages import simple
from tests.benchmarks.report import Row, main
from tests.benchmarks.statistics import COUNTS, LATE, counts_by_day

HELD_BACK_SEED = 40_000
"""Draws what is held back; chosen before any of it was looked at."""

SEEDS = 3
DAYS = 200
FEW = 1e-9
"""Slack of rounded ends."""

Values = list[list[FloatArray]]
"""Of each day and group."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What is measured of which records, at which price.

    Args:
        name: In the rows.
        epsilon: A batch.
        records: Counts, shape (days, series), or values of each day and group.
        measure: Keys of the measure of values.
        moment: Of values; None for counts.
    """

    name: str
    epsilon: str
    records: Callable[[], Any]
    measure: dict[str, Any]
    moment: str | None = None


AIR = {"resolution": 1, "bounds": [0, 1000], "guess": {"location": 150, "scale": 90}}
DELAY = {"resolution": 1, "bounds": [-200, 2000], "guess": {"location": 0, "scale": 40}}
MADE_UP = {"resolution": 1, "bounds": [-300, 300], "guess": {"location": 0, "scale": 20}}
DISTANCE = {"resolution": 1, "bounds": [0, 5000], "guess": {"location": 1000, "scale": 700}}
WIDE = {"resolution": 1, "bounds": [0, 100_000], "guess": {"location": 300, "scale": 600}}
NORMAL = {"resolution": 1, "guess": {"location": 100, "scale": 15}}
GAMMA = {"resolution": 1, "bounds": [0, 5000], "guess": {"location": 200, "scale": 200}}
TRIPS = {"resolution": 1, "bounds": [0, 20_000], "guess": {"location": 500, "scale": 500}}
HOUR = {"resolution": 1, "bounds": [0, 24]}


def development() -> Iterator[Stream]:
    """Flights, and laws that are made up; distances stand for miles, by the year's air time."""
    air, distance = _flights("air_time"), _flights("round(8 * of_destination)")
    won = _flights("departure_delay - arrival_delay")
    lognormal = _law(21, lambda g: np.round(g.lognormal(5.0, 1.5, 1000)))
    normal = _law(22, lambda g: g.normal(100.0, 15.0, g.poisson(900)))
    gamma = _law(26, lambda g: np.round(g.gamma(2.0, 100.0, 600)))
    for epsilon in (".1", "1"):
        for moment in ("mean", "variance"):
            yield Stream("air time", epsilon, air, AIR, moment)
            yield Stream("distance", epsilon, distance, DISTANCE, moment)
            yield Stream("normal", epsilon, normal, NORMAL, moment)
        yield Stream("time made up", epsilon, won, MADE_UP, "mean")
        yield Stream("lognormal", epsilon, lognormal, WIDE, "mean")
    yield Stream("arrival delay", ".1", _flights("arrival_delay"), DELAY, "mean")
    yield Stream("arrival delay", ".1", _flights("arrival_delay"), DELAY, "variance")
    yield Stream("air time, a tenth of days empty", ".1", _emptied(air, 5), AIR, "mean")
    yield Stream("gamma", ".1", gamma, GAMMA, "mean")
    yield Stream("air time", ".1", air, AIR, "sum")
    far = _law(23, lambda g: g.normal(5000.0, 100.0, g.poisson(900)))
    yield Stream("guess 5 scales away", "1", far, _guess(0, 1000), "mean")
    yield Stream("guess 100 times too wide", ".1", normal, _guess(100, 1500), "mean")
    narrow = _law(25, lambda g: g.normal(100.0, 150.0, g.poisson(900)))
    yield Stream("guess 30 times too narrow", ".1", narrow, _guess(100, 5), "mean")
    for each in of_values.development():
        if not each.name.startswith("flights"):
            yield Stream(each.name, ".1", each.values, each.measure, "mean")
    counted = {each.name: each.counts for each in of_counts.development()}
    counted |= {
        "tail numbers, 150": cache(_tail_numbers),
        "Poisson .3, 40": _poisson(33, np.full((DAYS, 40), 0.3)),
        "Poisson .3, one": _poisson(34, np.full((DAYS, 1), 0.3)),
        "growing": _poisson(31, np.geomspace(20.0, 4000.0, DAYS)[:, None]),
    }
    for epsilon in (".1", "1"):
        for name, counts in counted.items():
            yield Stream(name, epsilon, counts, {})


def held_back() -> Iterator[Stream]:
    """Columns and laws that nothing was tuned on."""
    departure, hour = _flights("departure_delay"), _flights("hour")
    for moment in ("mean", "variance"):
        yield Stream("departure delay", ".1", departure, DELAY, moment)
        yield Stream("hour", ".1", hour, HOUR, moment)
    if trips := os.environ.get("TRIPS"):
        bases = cache(lambda: _by_day(f"SELECT date, v::DOUBLE FROM '{trips}'"))
        for moment in ("mean", "variance"):
            yield Stream("trips of bases", ".1", bases, TRIPS, moment)
    yield Stream("departure delay, empty days", ".1", _emptied(departure, 6), DELAY, "mean")
    for values in of_values.held_back(HELD_BACK_SEED, 8):
        records = cache(values.values)
        for moment in values.moments:
            yield Stream(values.name, ".1", records, values.measure, moment)
    origins = cache(lambda: counts_by_day(COUNTS["origins"])[0])
    hours = cache(of_counts.by_hour)
    for epsilon in (".1", "1"):
        yield Stream("origins", epsilon, origins, {})
        yield Stream("hours", epsilon, hours, {})
        for name, counts in _sparse().items():
            yield Stream(name, epsilon, counts, {})
    for each in of_counts.held_back(HELD_BACK_SEED, 12):
        yield Stream(each.name, ".1", each.counts, {})


def rows(quick: bool) -> Iterator[Row]:
    """All streams; quick: one seed of fifty days."""
    streams = held_back() if "--held-back" in sys.argv else development()
    for stream in streams:
        yield row(stream, *((1, 50) if quick else (SEEDS, None)))


def row(stream: Stream, seeds: int = SEEDS, days: int | None = None) -> Row:
    """Errors, cover and widths of a stream, means over seeds."""
    found = [_one(stream, *released(stream, seed, days)) for seed in range(seeds)]
    errors = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    about: dict[str, Any] = {"what": stream.moment or "count", "data": stream.name}
    about |= {"epsilon": float(Fraction(stream.epsilon)), "smoothed": errors["smoothed"]}
    names = [name for name in errors if name.startswith("by ")]
    best = min(names, key=errors.__getitem__)
    about |= {"ratio": errors["smoothed"] / max(errors[best], 1e-3), "best": best}
    about |= {name: errors[name] for name in (*names, "cover", "surprised", "first", "width")}
    return {key: _rounded(each) for key, each in about.items()}


def _rounded(value: Any) -> str | float | None:
    """Four significant digits; None of what there is none of."""
    if not isinstance(value, float):
        return str(value)
    return float(f"{value:.4g}") if np.isfinite(value) else None


def _one(stream: Stream, found: FloatArray, truth: FloatArray) -> dict[str, float]:
    value, _, _, smoothed, lower, upper = found
    known = np.isfinite(truth)
    truth = np.where(known, truth, 0.0)
    late = known & (np.arange(len(truth)) >= min(LATE, len(truth) // 2))[:, None]
    slack = FEW * np.maximum(np.abs(truth), 1.0)
    held = (lower - slack <= truth) & (truth <= upper + slack)
    off = np.abs(smoothed - truth)
    least = 1.0 if stream.moment is None else 1e-12
    needed = 2.0 * np.nanquantile(np.where(late, off, np.nan), 0.95, axis=0)
    strange = late & surprising(truth, 1.5 * float(np.median(np.abs(value - truth)[late])))
    errors = {
        name: float(np.abs(each - truth)[late].mean())
        for name, each in simple(value, counts=stream.moment is None).items()
    }
    wide = np.where(late, upper - lower, np.nan)
    return {
        "smoothed": float(off[late].mean()),
        **errors,
        "cover": float(held[late].mean()),
        "surprised": float(held[strange].mean()) if strange.any() else float("nan"),
        "first": float(held[:10][known[:10]].mean()),
        "width": float(np.median(np.nanmean(wide, axis=0) / np.maximum(needed, least))),
    }


def surprising(truth: FloatArray, noise: float) -> BoolArray:
    """Days four spreads and three deviations of noise from the median of the two weeks before."""
    found = np.zeros(truth.shape, dtype=np.bool_)
    for day in range(14, len(truth)):
        past = truth[day - 14 : day]
        usual = np.median(past, axis=0)
        spread = 1.4826 * np.median(np.abs(past - usual), axis=0)
        found[day] = np.abs(truth[day] - usual) > np.maximum(4.0 * spread, 3.0 * noise)
    return found


def released(stream: Stream, seed: int, days: int | None) -> tuple[FloatArray, FloatArray]:
    """Value and smoothed with their intervals, shape (6, days, series), and the truth.

    The production kind as a configuration builds it, with chance that can be repeated.
    """
    records, price = stream.records()[:days], Price(Fraction(stream.epsilon))
    if stream.moment is None:
        about = of_statistics.counted(records, price)
    else:
        about = of_statistics.measured(records, stream.moment, stream.measure, price)
    names = ("value", "lower", "upper", "smoothed", "smoothed_lower", "smoothed_upper")
    chance = f"{stream.name} {stream.moment} {stream.epsilon} {seed}"
    found = [
        [[float(row[name] or 0) for row in rows] for name in names]
        for rows in of_statistics.released(about, chance)
    ]
    return np.array(found).transpose(1, 0, 2), about.truth


def _guess(location: int, scale: int) -> dict[str, Any]:
    return {"resolution": 1, "guess": {"location": location, "scale": scale}}


def _flights(sql: str) -> Callable[[], Values]:
    of_destination = "avg(air_time) OVER (PARTITION BY dest) AS of_destination"
    return cache(
        lambda: _by_day(
            f"SELECT date, ({sql})::DOUBLE FROM (SELECT *, {of_destination} FROM '{PATH}')"
        )
    )


def _by_day(sql: str) -> Values:
    asked = (
        f"SELECT list(v) FROM ({sql}) AS t(day, v) WHERE v IS NOT NULL GROUP BY day ORDER BY day"
    )
    return [[np.array(each)] for (each,) in duckdb.execute(asked).fetchall()]


def _emptied(records: Callable[[], Values], seed: int) -> Callable[[], Values]:
    def values() -> Values:
        days = records()
        empty = np.random.default_rng(seed).random(len(days)) < 0.1
        return [
            [np.array([])] if none else day for none, day in zip(empty.tolist(), days, strict=True)
        ]

    return values


def _law(seed: int, law: Callable[[np.random.Generator], FloatArray]) -> Callable[[], Values]:
    return cache(lambda: [[law(np.random.default_rng([seed, day]))] for day in range(DAYS)])


def _poisson(seed: int, means: FloatArray) -> Callable[[], FloatArray]:
    return lambda: np.random.default_rng(seed).poisson(means).astype(float)


def _tail_numbers() -> FloatArray:
    """Flights of the 150 aircraft that fly most."""
    counts, _ = counts_by_day("coalesce(tail_number, '')")
    most = np.argsort(-counts[:, 1:].sum(axis=0), kind="stable")[:150] + 1
    return np.asarray(counts[:, most])


def _sparse() -> dict[str, Callable[[], FloatArray]]:
    """Small counts, and one that grows, by the seed of what is held back."""
    chance = np.random.default_rng(HELD_BACK_SEED)
    few = chance.uniform(0.1, 0.6, 60) * np.ones((DAYS, 1))
    mixed = np.where(np.arange(80) < 60, 0.2, np.exp(chance.uniform(1.0, 6.0, 80)))
    grows = 30.0 * np.exp(np.linspace(0.0, 4.0, DAYS))[:, None]
    return {
        "sparse": _poisson(HELD_BACK_SEED + 1, few),
        "sparse beside large": _poisson(HELD_BACK_SEED + 2, mixed * np.ones((DAYS, 1))),
        "one that grows": _poisson(HELD_BACK_SEED + 3, grows),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--held-back", action="store_true", help="streams nothing was tuned on")
    main(
        "Smoothed statistics against what anyone can make of the same releases", rows, parser=parser
    )
