"""The streams: what happens in the batches, whose truth only a benchmark knows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources

import numpy as np

from streamdp.types import CellCounts, FloatArray, Grid

DECILES = tuple(Fraction(index, 10) for index in range(1, 10))


@dataclass(frozen=True, slots=True)
class Stream:
    """Batches in order with what is public about them.

    Args:
        name: As the benchmark prints it.
        batches: Cell counts of each batch.
        features: Public features of each batch, shape (batches, d); d may be 0.
        grid: Public cells.
        guess: Location and scale a user would write down, in the unit of the column.
        rows: Expected number of rows of a batch, public.
    """

    name: str
    batches: tuple[CellCounts, ...]
    features: FloatArray
    grid: Grid
    guess: tuple[float, float]
    rows: int

    def take(self, count: int) -> Stream:
        """The first `count` batches."""
        head = self.batches[:count], self.features[:count]
        return Stream(self.name, *head, self.grid, self.guess, self.rows)


def flights(column: str) -> Stream:
    """Every day of the flights shipped with the package; the guess is a round number."""
    import duckdb

    path = resources.files("streamdp.demo") / "flights.parquet"
    table = (
        duckdb.connect()
        .execute(
            f"SELECT epoch(date)::BIGINT // 86400 AS day, {column} AS cell, count(*) AS rows "
            f"FROM '{path}' WHERE {column} IS NOT NULL GROUP BY ALL ORDER BY ALL"
        )
        .fetchnumpy()
    )
    days = np.unique(table["day"])
    batches = []
    for day in days:
        own = table["day"] == day
        cells, rows = table["cell"][own], table["rows"][own]
        batches.append(CellCounts(cells.astype(np.int64), rows.astype(np.int64)))
    guesses = {"air_time": (120.0, 60.0), "arrival_delay": (0.0, 30.0)}
    bounds = {"air_time": (0, 1440), "arrival_delay": (-1440, 1440)}
    grid = Grid(Fraction(1), *bounds[column])
    features = np.zeros((len(days), 0))
    return Stream(f"flights-{column}", tuple(batches), features, grid, guesses[column], 900)


def synthetic(seed: int, length: int = 2500) -> Stream:
    """Khodak et al. 2023: ten records between neighbouring quantiles w·f_t + b_j, w and b fixed."""
    rng = np.random.default_rng([seed, 1])
    weights, offsets = rng.normal(size=10), np.sort(rng.normal(size=11))
    features = rng.normal(size=(length, 10))
    batches = []
    for row in features:
        edges = itertools.pairwise(weights @ row + offsets)
        batches.append(np.concatenate([rng.uniform(low, high, 10) for low, high in edges]))
    return _continuous("synthetic", batches, features, (0.0, 1.0), 100)


def moving(name: str, seed: int, path: Callable[[np.random.Generator, int], FloatArray]) -> Stream:
    """Batches of about 500 standard normal records around a location that moves along `path`."""
    rng = np.random.default_rng([seed, 2])
    locations = path(rng, 200)
    batches = [rng.normal(where, 1.0, rng.poisson(500)) for where in locations]
    return _continuous(name, batches, np.zeros((200, 0)), (0.0, 1.0), 500)


def level_shift(rng: np.random.Generator, length: int) -> FloatArray:
    """Stable, then five spreads away from the middle on."""
    return np.where(np.arange(length) < length // 2, 0.0, 5.0)


def random_walk(rng: np.random.Generator, length: int) -> FloatArray:
    """Steps of a tenth of the spread."""
    return np.cumsum(rng.normal(0.0, 0.1, length))


def seasonal(rng: np.random.Generator, length: int) -> FloatArray:
    """A week whose weekend lies two spreads lower."""
    return np.where(np.arange(length) % 7 >= 5, -2.0, 0.0)


def independent(rng: np.random.Generator, length: int) -> FloatArray:
    """A new location every day: nothing to learn but how far they lie apart."""
    return rng.normal(0.0, 1.0, length)


def wrong_guess(rng: np.random.Generator, length: int) -> FloatArray:
    """A thousand scales off the guess, and stays there."""
    return np.full(length, 1000.0)


def _continuous(
    name: str,
    batches: list[FloatArray],
    features: FloatArray,
    guess: tuple[float, float],
    rows: int,
) -> Stream:
    grid = Grid(Fraction(1, 10_000), -100_000_000, 100_000_000)
    counted = []
    for batch in batches:
        cells, counts = np.unique(
            np.floor(batch * 10_000 + 0.5).astype(np.int64), return_counts=True
        )
        counted.append(CellCounts(cells, counts.astype(np.int64)))
    return Stream(name, tuple(counted), features, grid, guess, rows)
