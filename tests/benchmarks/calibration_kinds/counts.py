"""Streams of counts, one array (days, series) each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.statistics import COUNTS, counts_by_day

DAYS = 200


@dataclass(frozen=True, slots=True)
class CountStream:
    """Exact counts.

    Args:
        name: In the rows.
        counts: Of each day and series.
    """

    name: str
    counts: Callable[[], FloatArray]


def development() -> tuple[CountStream, ...]:
    """Made-up shapes, and the flights by what they are counted by."""
    made = (
        CountStream("one, steady", lambda: _poisson(1, np.full((DAYS, 1), 900.0))),
        CountStream("one, weekdays", lambda: _poisson(2, 900.0 * _weekdays(2, 1, 0.3))),
        CountStream("one, jumps", lambda: _poisson(3, _jumps(3))),
        CountStream("sizes 1 to 10,000", lambda: _poisson(4, np.logspace(0, 4, 30) * _ones())),
        CountStream("few on Saturdays", _saturdays),
        CountStream("groups, drifting", lambda: _poisson(6, _drifting(6))),
        CountStream("groups, days that differ", lambda: _poisson(7, _differing(7))),
        CountStream("tiny", lambda: _poisson(8, np.full((DAYS, 40), 0.5))),
        CountStream("zero", lambda: np.zeros((DAYS, 10))),
    )
    names = ("total", "carriers", "destinations", "routes", "origins")
    return made + tuple(CountStream(f"flights, {each}", _flights(each)) for each in names)


def held_back(seed: int, number: int) -> tuple[CountStream, ...]:
    """Laws whose every part is drawn by a seed."""
    return tuple(CountStream(f"drawn {each}", _drawn(seed, each)) for each in range(number))


def _drawn(seed: int, number: int) -> Callable[[], FloatArray]:
    def counts() -> FloatArray:
        chance = np.random.default_rng([seed, number])
        series = int(chance.choice([1, 5, 40]))
        level = np.exp(chance.uniform(0.0, np.log(5000.0), series))
        walk = chance.choice([0.0, 0.01, 0.05]) * chance.normal(size=(DAYS, series))
        leaps = chance.random((DAYS, series)) < chance.choice([0.0, 0.01])
        path = np.cumsum(walk + leaps * chance.normal(0.0, 0.7, (DAYS, series)), axis=0)
        week = np.exp(chance.choice([0.0, 0.3, 1.0]) * chance.normal(size=(7, series)))
        rough = chance.choice([0.0, 0.1, 0.5]) * chance.normal(size=(DAYS, series))
        closed = chance.random((DAYS, series)) < chance.choice([0.0, 0.0, 0.1])
        mean = level * np.exp(path + rough) * week[np.arange(DAYS) % 7]
        return np.where(closed, 0.0, chance.poisson(np.minimum(mean, 1e6))).astype(float)

    return counts


def _flights(what: str) -> Callable[[], FloatArray]:
    return cache(lambda: counts_by_day(COUNTS[what])[0])


def by_hour() -> FloatArray:
    """Flights by hour of day, which nothing was tuned on."""
    return counts_by_day("hour")[0]


def _poisson(seed: int, means: FloatArray) -> FloatArray:
    return np.random.default_rng([seed, 13]).poisson(means).astype(float)


def _ones() -> FloatArray:
    return np.ones((DAYS, 1))


def _weekdays(seed: int, series: int, spread: float) -> FloatArray:
    profile = np.exp(spread * np.random.default_rng(seed).normal(size=(7, series)))
    return np.asarray(profile[np.arange(DAYS) % 7])


def _jumps(seed: int) -> FloatArray:
    levels = np.exp(np.random.default_rng(seed).normal(6.0, 1.0, (8, 1)))
    return np.asarray(levels[np.arange(DAYS) // 25])


def _saturdays() -> FloatArray:
    """Sixty routes, of which a third has a twentieth of its flights on Saturdays."""
    chance = np.random.default_rng(5)
    levels = np.exp(chance.uniform(1.0, 4.0, 60)) * _ones()
    few = (np.arange(DAYS)[:, None] % 7 == 5) & (np.arange(60) < 20)
    return _poisson(5, np.where(few, 0.05, 1.0) * levels)


def _drifting(seed: int) -> FloatArray:
    steps = 0.04 * np.random.default_rng(seed).normal(size=(DAYS, 20))
    return np.asarray(np.geomspace(5.0, 500.0, 20) * np.exp(np.cumsum(steps, axis=0)))


def _differing(seed: int) -> FloatArray:
    factors = np.random.default_rng(seed).gamma(4.0, 0.25, (DAYS, 20))
    return np.asarray(np.geomspace(5.0, 500.0, 20) * factors)
