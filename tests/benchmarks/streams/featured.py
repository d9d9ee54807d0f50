"""Streams whose features inform, mislead or are noise; and the paper's, of other quantiles.

Batches are standard normal records around a location, with ten normal features each. Where features
`inform`, they and nothing else say the location. Where they `mislead`, they do so until the middle
and say the opposite from then on. Where they `are noise`, the location is independent of them and
of all other batches. Each stream is there a second time without its features.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from streamdp.kinds.quantiles import synthetic
from streamdp.kinds.study import Stream
from streamdp.types import Batch, CellCounts, Grid
from tests.benchmarks.streams.settings import LENGTH, Setting

WHAT = ("inform", "mislead", "are noise")

FEATURES, EFFECT = 10, 1.0
"""How many there are; deviation, in spreads, of the locations that they explain."""

EPSILON, ROWS = Fraction(1, 5), 500
"""As of the other synthetic streams."""

COUNTS = (1, 3, 19)
"""Numbers of quantiles beside nine."""

PRICES = (Fraction(1, 10), Fraction(1))

GRID = Grid(synthetic.RESOLUTION, -100_000_000, 100_000_000)


def featured_settings() -> tuple[Setting, ...]:
    """Each stream with its features, and without."""
    return tuple(
        Setting(
            f"features {what}" if told else f"features {what}, not told",
            EPSILON,
            partial(_stream, what, told),
            GRID,
            synthetic.GUESS,
            ROWS,
            Fraction(1, 2) if what == "mislead" else None,
            "features",
        )
        for what in WHAT
        for told in (True, False)
    )


def counted_settings(length: int) -> tuple[Setting, ...]:
    """The paper's sequence with fewer and with more quantiles than nine.

    Args:
        length: Batches that are measured.
    """
    return tuple(
        Setting(
            f"linear, {count} quantiles",
            epsilon,
            partial(_linear, quantiles),
            GRID,
            synthetic.GUESS,
            synthetic.LINEAR_ROWS,
            None,
            "quantiles",
            length,
            quantiles,
        )
        for count in COUNTS
        for quantiles in (_spread(count),)
        for epsilon in PRICES
    )


def _spread(count: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(index, count + 1) for index in range(1, count + 1))


def _linear(quantiles: tuple[Fraction, ...], seed: int, length: int | None) -> Stream:
    return synthetic.synthetic("linear", quantiles, seed, length)


def _stream(what: str, told: bool, seed: int, length: int | None) -> Stream:
    chance, length = np.random.default_rng([seed, 3]), length or LENGTH
    weights = chance.normal(size=FEATURES)
    features = chance.normal(size=(length, FEATURES))
    said = EFFECT * features @ weights / np.linalg.norm(weights)
    if what == "mislead":
        said = np.where(np.arange(length) < length // 2, said, -said)
    elif what == "are noise":
        said = EFFECT * chance.normal(size=length)
    records = [chance.normal(each, 1.0, chance.poisson(ROWS)) for each in said]
    starts = [synthetic.FIRST + index * synthetic.DAY for index in range(length)]
    batches = tuple(
        Batch(what, f"{index:05d}", start, start + synthetic.DAY)
        for index, start in enumerate(starts)
    )
    found = [
        np.unique(np.rint(each * 1e4).astype(np.int64), return_counts=True) for each in records
    ]
    counts = tuple(CellCounts(cells, many.astype(np.int64)) for cells, many in found)
    return Stream(what, batches, counts, features if told else None, synthetic=True)
