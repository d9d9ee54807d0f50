"""Groups of one release: errors with what they share and each alone, by size.

    python -m tests.benchmarks.groups [--json] [--quick]

One row a group, price and stretch of days. `ratio` is the average error over that of the same group
alone, `off` its standard error as if days were independent, which is the least it may be. `cover`
is the share of true quantiles within `lower` and `upper`, `smoothed` that of the smoothed
intervals. The first group of a release knows of no other, so it has no row.

Cut before anything was tuned. Development: arrival delays by carrier, origin and hour, air time by
carrier and hour, synthetic seeds from 10. Final, run once: departure delays by destination, carrier
and hour, air time by destination, synthetic seeds from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.kinds.grouped import Grouped
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.study import Stream
from streamdp.learning.learner import Observation
from streamdp.learning.mixture.mixture import BayesianMixture, GroupEvidence
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.simulation.comparison import chance
from streamdp.types import Batch, CellCounts, FloatArray, Grid, IntArray, ReleaseKind, Row
from tests.benchmarks.report import Row as Figures
from tests.benchmarks.report import main
from tests.benchmarks.streams.contenders import mixture
from tests.benchmarks.streams.settings import BOUNDS, DECILES, GUESSES, Setting, flights

DAYS, QUICK_DAYS, SEEDS = 60, 20, 1

STRETCHES = {"first ten": slice(0, 10), "next thirty": slice(10, 40), "later": slice(40, None)}

KEYS: dict[str, tuple[str | int, ...]] = {
    "origin": ("EWR", "JFK", "LGA"),
    "carrier": ("UA", "EV", "DL", "MQ", "9E", "WN", "F9"),
    "dest": ("ORD", "ATL", "LAX", "CLT", "DTW", "PHX"),
    "hour": (8, 6, 17, 15, 12, 20),
}

FLIGHTS: dict[str, tuple[tuple[str, str], ...]] = {
    "development": (
        ("arrival_delay", "carrier"),
        ("arrival_delay", "origin"),
        ("arrival_delay", "hour"),
        ("air_time", "carrier"),
        ("air_time", "hour"),
    ),
    "final": (
        ("departure_delay", "dest"),
        ("departure_delay", "carrier"),
        ("departure_delay", "hour"),
        ("air_time", "dest"),
    ),
}

SIZES = (2000, 600, 200, 60, 20)

SHARES: tuple[float, ...] = (0.0, 0.5, 0.9)
"""Of the variance of moves that synthetic groups have in common."""

EPSILONS = ("0.1", "0.3", "1")

Part = Literal["development", "final"]


class Alone(BayesianMixture):
    """The default learner of a group that shows nothing to others."""

    def evidence_for_groups(self, seen: Observation) -> tuple[GroupEvidence, ...]:
        return ()


@dataclass(frozen=True)
class Data:
    """Groups of one column.

    Args:
        name: As the benchmark prints it.
        part: Development or final.
        groups: Names and public sizes.
        days: Counts of each day, one a group.
        grid: Public cells.
        guess: Location and scale a user would write down.
    """

    name: str
    part: Part
    groups: tuple[tuple[str, int], ...]
    days: tuple[tuple[CellCounts, ...], ...]
    grid: Grid
    guess: tuple[float, float]


def rows(quick: bool) -> Iterable[Figures]:
    """Rows of all data and prices."""
    for epsilon in EPSILONS[1:2] if quick else EPSILONS:
        for part in FLIGHTS:
            for column, by in FLIGHTS[part][: 1 if quick else None]:
                days = QUICK_DAYS if quick else DAYS
                yield from _rows([_flights(part, column, by, days)], epsilon, 1 if quick else SEEDS)
            for share, unlike in [*((each, False) for each in SHARES), (0.5, True)]:
                if quick and not unlike:
                    continue
                days, first = QUICK_DAYS if quick else DAYS, 10 if part == "development" else 0
                seeds = range(first, first + (1 if quick else SEEDS))
                data = [_synthetic(part, share, unlike, seed, days) for seed in seeds]
                yield from _rows(data, epsilon, len(data))


def _rows(data: Sequence[Data], epsilon: str, seeds: int) -> Iterator[Figures]:
    measured = {
        who: [
            _measure(data[seed % len(data)], Fraction(epsilon), who, seed) for seed in range(seeds)
        ]
        for who in ("alone", "shared")
    }
    for index, (name, size) in enumerate(data[0].groups):
        for days, stretch in STRETCHES.items():
            alone = np.zeros(0)
            for who, each in measured.items():
                part = np.concatenate([run[:, index, stretch] for run in each], axis=1)
                if index == 0 or not part.size:
                    continue
                errors, cover, smoothed = (np.nanmean(kind) for kind in part)
                daily = part[0].mean(axis=-1)
                alone = daily if who == "alone" else alone
                yield {
                    "data": data[0].name,
                    "part": data[0].part,
                    "group": name,
                    "n": size,
                    "epsilon": float(epsilon),
                    "days": days,
                    "who": who,
                    "average": round(float(errors), 4),
                    "largest": round(float(np.nanmean(np.max(part[0], axis=-1))), 4),
                    "ratio": round(float(errors / np.nanmean(alone)), 3),
                    "off": round(_standard_error(daily, alone), 3),
                    "cover": round(float(cover), 3),
                    "smoothed": round(float(smoothed), 3),
                }


def _standard_error(daily: FloatArray, alone: FloatArray) -> float:
    """Of the ratio of two means of the same days."""
    ratio = np.nanmean(daily) / np.nanmean(alone)
    rest = (daily - ratio * alone)[~np.isnan(daily)]
    return float(rest.std() / np.sqrt(len(rest)) / np.nanmean(alone))


def _measure(data: Data, epsilon: Fraction, who: str, seed: int) -> FloatArray:
    """Errors, and whether intervals hold; shape (3, groups, days, quantiles)."""
    own: dict[tuple[str, ...], ReleaseKind] = {
        (name,): _kind(data, epsilon, size, who) for name, size in data.groups
    }
    names = tuple(own)
    kind, entropy = Grouped(own[names[0]], ("g",), names, own=own), chance(seed)
    state = kind.init()
    found = np.full((3, len(names), len(data.days), len(DECILES)), np.nan)
    for day, counts in enumerate(data.days):
        plan = kind.plan(state, Batch("s", str(day), day * 86_400, (day + 1) * 86_400))
        outcome = kind.draw(plan, counts, entropy)
        state = kind.learn(state, plan, outcome)
        released = kind.publish(state, outcome).rows
        for index, each in enumerate(counts):
            part = released[index * len(DECILES) : (index + 1) * len(DECILES)]
            if len(each.cells):
                found[:, index, day] = _judged(data.grid, each, part)
    return found


def _judged(grid: Grid, counts: CellCounts, part: Sequence[Row]) -> FloatArray:
    width = float(grid.resolution)
    truth = exact_quantiles(counts, DECILES) * width
    columns = ("value", "lower", "upper", "smoothed_lower", "smoothed_upper")
    value, *ends = (np.array([float(row[name] or 0) for row in part]) for name in columns)
    lower, upper, smoothed_lower, smoothed_upper = (end + 0.0 for end in ends)
    slack = 1e-6 * width
    return np.stack(
        (
            rank_errors(counts, DECILES, _cells(value, width)),
            (lower - slack <= truth) & (truth <= upper + slack),
            (smoothed_lower - slack <= truth) & (truth <= smoothed_upper + slack),
        )
    )


def _cells(values: FloatArray, width: float) -> IntArray:
    return np.rint(values / width).astype(np.int64)


def _kind(data: Data, epsilon: Fraction, rows: int, who: str) -> Quantiles:
    grid, guess = data.grid, data.guess
    setting = Setting(data.name, epsilon, _no_stream, grid, guess, rows)
    learner = mixture(setting, QuantileTree(DECILES, epsilon, grid), _no_stream(0, None))
    if who == "alone":
        values = {each.name: getattr(learner, each.name) for each in fields(learner) if each.init}
        learner = Alone(**values)
    return Quantiles("value", DECILES, epsilon, grid, learner, expected_rows=rows)


def _no_stream(seed: int, length: int | None) -> Stream:
    return Stream("groups", (), ())


def _flights(part: str, column: str, by: str, days: int) -> Data:
    """The groups of most flights first, as a user would say their sizes: the mean of the year."""
    streams = {key: flights(column, f"{by} = {key!r}") for key in KEYS[by]}
    sizes = {
        key: max(round(float(np.mean([each.counts.sum() for each in stream.counts]))), 1)
        for key, stream in streams.items()
    }
    order = sorted(sizes, key=lambda key: -sizes[key])
    counts = zip(*(streams[key].counts[:days] for key in order), strict=True)
    groups = tuple((str(key), sizes[key]) for key in order)
    grid = Grid(Fraction(1), *BOUNDS[column])
    return Data(f"{column} by {by}", _part(part), groups, tuple(counts), grid, GUESSES[column])


def _part(name: str) -> Part:
    return "final" if name == "final" else "development"


def _synthetic(part: str, share: float, unlike: bool, seed: int, days: int) -> Data:
    """Groups about places of their own, with a spread and, if `unlike`, a law of their own."""
    random, grid = np.random.default_rng(seed), Grid(Fraction(1, 10), -1_000_000, 1_000_000)
    common, series = random.normal(size=days), []
    for index, size in enumerate(SIZES):
        place, spread = 20.0 * random.normal(), 10.0 * np.exp(0.4 * random.normal())
        group = []
        for day in range(days):
            own = random.normal()
            move = 0.5 * (np.sqrt(share) * common[day] + np.sqrt(1.0 - share) * own)
            law = _law(random, random.poisson(size), index % 3 if unlike else 0)
            group.append(_counted(_cells(place + spread * (law + move), 0.1)))
        series.append(group)
    name = f"synthetic, common {share:g}{', unlike' if unlike else ''}"
    groups = tuple((f"group of {size}", size) for size in SIZES)
    return Data(name, _part(part), groups, tuple(zip(*series, strict=True)), grid, (0.0, 20.0))


def _law(random: np.random.Generator, size: int, which: int) -> FloatArray:
    match which:
        case 0:
            return random.normal(size=size)
        case 1:
            return 1.5 * random.exponential(size=size) - 1.0
    return np.where(random.random(size) < 0.5, -1.2, 1.2) + 0.4 * random.normal(size=size)


def _counted(cells: IntArray) -> CellCounts:
    distinct, counts = np.unique(cells, return_counts=True)
    return CellCounts(distinct, counts)


if __name__ == "__main__":
    main("Groups of one release, with what they share and alone", rows)
