"""Synthetic streams of keys: numbers of records by key, that stay or that come.

Chance is seeded, so that a simulation can be repeated: no release comes of it.
"""

from __future__ import annotations

import numpy as np

from streamdp.types import Batch, FloatArray

LENGTH = 60
"""Batches, where nothing else is asked for."""

ROWS = 1_000
"""Records of a batch, where the release does not say."""

KEYS = 500
FIRST = 946_857_600
DAY = 86_400
"""2000-01-03, a Monday: when the first batch begins; each is a day."""


def stable(length: int) -> FloatArray:
    """Shares of Zipf's law, always the same, shape (batches, keys)."""
    shares = 1.0 / np.arange(1, KEYS + 1)
    return np.tile(shares / shares.sum(), (length, 1))


def arriving(length: int) -> FloatArray:
    """Rates of keys of which every tenth is there from some day on alone."""
    shares = stable(length)
    for number, key in enumerate(range(5, KEYS, 10)):
        shares[: number * length // (KEYS // 10), key] = 0.0
    shifted: FloatArray = shares / shares.sum(axis=1, keepdims=True)
    return shifted


STREAMS = {"stable": stable, "arriving": arriving}


def days(stream: str, length: int) -> tuple[Batch, ...]:
    """Batches of a stream."""
    return tuple(
        Batch(stream, f"{day:05d}", FIRST + day * DAY, FIRST + (day + 1) * DAY)
        for day in range(length)
    )


def counts_of_days(stream: str, seed: int, length: int, rows: int) -> list[dict[str, int]]:
    """Numbers of records by key, of each day."""
    drawn = np.random.default_rng(seed).poisson(STREAMS[stream](length) * rows)
    return [{f"key {key}": int(day[key]) for key in np.flatnonzero(day).tolist()} for day in drawn]
