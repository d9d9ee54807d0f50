"""Streams of values, a list of arrays (one a group) each day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.flights import PATH

DAYS = 120

Values = list[list[FloatArray]]


@dataclass(frozen=True, slots=True)
class ValueStream:
    """Values, and the section of what is measured of them.

    Args:
        name: In the rows.
        values: Of each day and group.
        measure: Keys of the measure: resolution, bounds, guess.
        moments: What is released.
    """

    name: str
    values: Callable[[], Values]
    measure: dict[str, Any] = field(default_factory=dict)
    moments: tuple[str, ...] = ("mean", "sum", "variance")


def development() -> tuple[ValueStream, ...]:
    """Made-up laws, and three columns of the flights."""
    guess = {"location": 0.5, "scale": 1.5}
    fine = {"resolution": 0.001, "guess": guess}
    wide = {"resolution": 1, "bounds": [-200, 2000], "guess": {"location": 0, "scale": 40}}
    air = {"resolution": 1, "bounds": [0, 1000], "guess": {"location": 150, "scale": 90}}
    money = {"resolution": 0.01, "guess": {"location": 10, "scale": 20}}
    share = {"resolution": 1, "bounds": [0, 1]}
    return (
        ValueStream("normal", _law(1, lambda g: g.normal(size=1000)), fine),
        ValueStream("lognormal", _law(2, lambda g: g.lognormal(2.0, 1.0, 1000)), money),
        ValueStream("heavy tails", _law(3, lambda g: g.standard_t(2.5, 1000)), fine),
        ValueStream(
            "rate", _law(4, lambda g: g.binomial(1, 0.2, 800).astype(float)), share, ("mean", "sum")
        ),
        ValueStream(
            "bounds that clip",
            _law(5, lambda g: g.lognormal(3.0, 1.0, 700)),
            {"resolution": 0.1, "bounds": [0, 30]},
        ),
        ValueStream("tiny", _law(6, lambda g: g.normal(size=g.poisson(6.0))), fine),
        ValueStream("groups of 10 to 2,000", _groups(7), fine),
        ValueStream("place that moves", _moving(8), fine),
        ValueStream("flights, air time", _flights("air_time"), air),
        ValueStream("flights, arrival delay", _flights("arrival_delay"), wide),
        ValueStream("flights, departure delay", _flights("departure_delay"), wide),
    )


def held_back(seed: int, number: int) -> tuple[ValueStream, ...]:
    """Laws whose every part is drawn by a seed."""
    return tuple(_drawn(seed, each) for each in range(number))


def _drawn(seed: int, number: int) -> ValueStream:
    chance = np.random.default_rng([seed, number])
    shape = str(chance.choice(["normal", "lognormal", "gamma", "t", "mixture"]))
    scale, place = float(np.exp(chance.normal(1.0, 1.0))), float(chance.normal(0.0, 5.0))
    rows = np.exp(chance.uniform(np.log(20), np.log(3000), int(chance.choice([1, 1, 6]))))
    moves = float(chance.choice([0.0, 0.0, 0.2]))
    missed = chance.uniform(0.5, 2.0)
    guess = {
        "location": round(place + scale * chance.normal(), 2),
        "scale": round(scale * missed, 2),
    }

    def values() -> Values:
        walk, found = 0.0, []
        for _ in range(DAYS):
            walk += moves * chance.normal()
            drawn = [_standard(shape, chance, chance.poisson(n)) for n in rows]
            found.append([np.round(place + scale * (walk + each), 2) for each in drawn])
        return found

    return ValueStream(f"drawn {number}, {shape}", values, {"resolution": 0.01, "guess": guess})


def _standard(shape: str, chance: np.random.Generator, count: int) -> FloatArray:
    match shape:
        case "lognormal":
            return chance.lognormal(size=count) - 1.0
        case "gamma":
            return chance.gamma(2.0, 0.7, count)
        case "t":
            return chance.standard_t(3.0, count)
        case "mixture":
            return chance.normal(np.where(chance.random(count) < 0.2, 4.0, 0.0), 0.5)
        case _:
            return chance.normal(size=count)


def _law(seed: int, law: Callable[[np.random.Generator], FloatArray]) -> Callable[[], Values]:
    return lambda: [[law(np.random.default_rng([seed, day]))] for day in range(DAYS)]


def _groups(seed: int) -> Callable[[], Values]:
    sizes = (10, 30, 100, 300, 1000, 2000)
    groups = tuple(zip(sizes, np.linspace(-1.0, 1.0, len(sizes)), strict=True))

    def values() -> Values:
        chance = np.random.default_rng(seed)
        return [
            [chance.normal(place, 1.0, chance.poisson(n)) for n, place in groups]
            for _ in range(DAYS)
        ]

    return values


def _moving(seed: int) -> Callable[[], Values]:
    def values() -> Values:
        chance = np.random.default_rng(seed)
        places = np.cumsum(0.1 * chance.normal(size=DAYS)) + 3.0 * (np.arange(DAYS) > DAYS // 2)
        return [[chance.normal(place, 1.0, 1000)] for place in places]

    return values


def _flights(column: str) -> Callable[[], Values]:
    def values() -> Values:
        asked = f"SELECT list({column}::DOUBLE) FROM '{PATH}' WHERE {column} IS NOT NULL"
        found = duckdb.execute(f"{asked} GROUP BY date ORDER BY date").fetchall()
        return [[np.array(each)] for (each,) in found]

    return values
