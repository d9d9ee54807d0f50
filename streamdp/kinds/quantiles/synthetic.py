"""Synthetic streams in their own unit: guess 0 ± 1, cells of 1/10,000, no bounds.

`linear` is the paper's sequence; all others are batches of standard normal records around a
location that moves. Chance is seeded, so that a simulation can be repeated: no release comes of it.

References:
    Khodak, Amin, Dick & Vassilvitskii 2023, section 5 (the linear sequence).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from streamdp.kinds.study import Stream
from streamdp.types import Batch, CellCounts, FloatArray

RESOLUTION = Fraction(1, 10_000)
GUESS = (0.0, 1.0)

LINEAR_ROWS, LINEAR_LENGTH, LINEAR_FEATURES = 100, 2500, 10
"""Size of the paper's sequence."""

ROWS, LENGTH = 500, 200
"""Size of all other streams, where nothing else is asked for."""

FIRST = 946_857_600
"""2000-01-03, a Monday: when the first batch begins; each is a day."""

DAY = 86_400

Path = Callable[[np.random.Generator, int], FloatArray]


def level_shift(chance: np.random.Generator, length: int) -> FloatArray:
    """Stable, then five spreads away from the middle on."""
    return np.where(np.arange(length) < length // 2, 0.0, 5.0)


def random_walk(chance: np.random.Generator, length: int) -> FloatArray:
    """Steps of a tenth of the spread."""
    return np.cumsum(chance.normal(0.0, 0.1, length))


def seasonal(chance: np.random.Generator, length: int) -> FloatArray:
    """A week whose weekend lies two spreads lower."""
    return np.where(np.arange(length) % 7 >= 5, -2.0, 0.0)


def season_that_ends(chance: np.random.Generator, length: int) -> FloatArray:
    """A stream of equal weeks until its middle, and of Mondays from then on."""
    return np.where(np.arange(length) < length // 2, seasonal(chance, length), 0.0)


def strange_day(chance: np.random.Generator, length: int) -> FloatArray:
    """One day in the middle lies thirty spreads off and never comes back."""
    return np.where(np.arange(length) == length // 2, 30.0, 0.0)


def independent(chance: np.random.Generator, length: int) -> FloatArray:
    """A new location every day: nothing to learn but how far they lie apart."""
    return chance.normal(0.0, 1.0, length)


def wrong_guess(chance: np.random.Generator, length: int) -> FloatArray:
    """A thousand spreads off the guess, and stays there."""
    return np.full(length, 1000.0)


PATHS: dict[str, Path] = {
    "seasonal": seasonal,
    "season-ends": season_that_ends,
    "level-shift": level_shift,
    "random-walk": random_walk,
    "iid": independent,
    "strange-day": strange_day,
    "wrong-guess": wrong_guess,
}
"""Where the location of the batches moves, by the name of the stream."""

NAMES = ("linear", *PATHS)


def locations(name: str, seed: int, length: int) -> tuple[FloatArray, np.random.Generator]:
    """Means of the normal laws of a moving stream, shape (length,), and the chance that is left."""
    chance = np.random.default_rng([seed, 2])
    return PATHS[name](chance, length), chance


def moving(name: str, seed: int, length: int = LENGTH, rows: int = ROWS) -> Stream:
    """Poisson(rows) records a batch, each Normal(location_t, 1)."""
    where, chance = locations(name, seed, length)
    records = [chance.normal(each, 1.0, chance.poisson(rows)) for each in where]
    return _stream(name, records)


def linear_edges(
    quantiles: tuple[Fraction, ...], seed: int, length: int
) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    """The paper's law: edge j of batch t is w·f_t + b_j; w, b and all features are normal.

    Returns:
        Edges, the quantiles 0, q_1, ..., q_m, 1 of each batch, shape (length, m + 2); features,
        shape (length, 10); the chance that is left.
    """
    chance = np.random.default_rng([seed, 1])
    weights = chance.normal(size=LINEAR_FEATURES)
    offsets = np.sort(chance.normal(size=len(quantiles) + 2))
    features = chance.normal(size=(length, LINEAR_FEATURES))
    return (features @ weights)[:, None] + offsets, features, chance


def linear(
    quantiles: tuple[Fraction, ...],
    seed: int,
    length: int = LINEAR_LENGTH,
    rows: int = LINEAR_ROWS,
) -> Stream:
    """Records uniform between neighbouring quantiles, as many as the quantiles say."""
    edges, features, chance = linear_edges(quantiles, seed, length)
    ranks = np.array([round(q * rows) for q in (Fraction(0), *quantiles, Fraction(1))])
    part = np.repeat(np.arange(len(ranks) - 1), np.diff(ranks))
    within = chance.random((length, len(part)))
    records = edges[:, part] + within * np.diff(edges, axis=1)[:, part]
    return _stream("linear", list(records), features)


def synthetic(
    name: str,
    quantiles: tuple[Fraction, ...],
    seed: int,
    length: int | None = None,
) -> Stream:
    """A stream by name, of its usual length if no other is given."""
    if name == "linear":
        return linear(quantiles, seed, length or LINEAR_LENGTH)
    return moving(name, seed, length or LENGTH)


def expected_rows(name: str) -> int:
    """Expected rows that a configuration would state for a stream."""
    return LINEAR_ROWS if name == "linear" else ROWS


def _stream(name: str, records: list[FloatArray], features: FloatArray | None = None) -> Stream:
    starts = [FIRST + index * DAY for index in range(len(records))]
    batches = tuple(
        Batch(name, f"{index:05d}", start, start + DAY) for index, start in enumerate(starts)
    )
    return Stream(name, batches, tuple(map(_counted, records)), features, synthetic=True)


def _counted(records: FloatArray) -> CellCounts:
    cells = np.floor(records * float(1 / RESOLUTION) + 0.5).astype(np.int64)
    found, counts = np.unique(cells, return_counts=True)
    return CellCounts(found, counts.astype(np.int64))
