"""Synthetic streams of statistics: numbers of records by cell, and normal values, that move.

Chance is seeded, so that a simulation can be repeated: no release comes of it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamdp.types import FloatArray, IntArray

LENGTH = 200
"""Batches, where nothing else is asked for."""

ROWS = 1_000
"""Expected records of a batch, where the release does not say."""

Path = Callable[[np.random.Generator, int], FloatArray]
"""How far a batch is from the first, in logarithms of numbers and in spreads of values."""


def stable(chance: np.random.Generator, length: int) -> FloatArray:
    """Always the same."""
    return np.zeros(length)


def drift(chance: np.random.Generator, length: int) -> FloatArray:
    """Steps of three per cent."""
    return np.cumsum(chance.normal(0.0, 0.03, length))


def shift(chance: np.random.Generator, length: int) -> FloatArray:
    """Twice as many, and two thirds of a spread higher, from the middle on."""
    return np.where(np.arange(length) < length // 2, 0.0, np.log(2.0))


def weekly(chance: np.random.Generator, length: int) -> FloatArray:
    """A weekend with half as many, half a spread lower."""
    return np.where(np.arange(length) % 7 >= 5, -np.log(2.0), 0.0)


PATHS: dict[str, Path] = {"stable": stable, "drift": drift, "shift": shift, "weekly": weekly}


def cells(chance: np.random.Generator, path: FloatArray, rows: int, count: int) -> IntArray:
    """Numbers of records of each batch and cell, shape (batches, cells).

    Cell k has the share 1/k of the first, and each batch its own Poisson number.
    """
    shares = 1.0 / np.arange(1, count + 1)
    means = np.exp(path)[:, None] * (rows * shares / shares.sum())
    drawn: IntArray = chance.poisson(means).astype(np.int64)
    return drawn


def values(
    chance: np.random.Generator, path: FloatArray, rows: int, centre: float, spread: float
) -> list[FloatArray]:
    """Normal values of each batch, in cells of the column."""
    sizes = chance.poisson(rows * np.exp(path))
    return [
        chance.normal(centre + moved * spread, spread, size)
        for moved, size in zip(path.tolist(), sizes.tolist(), strict=True)
    ]
