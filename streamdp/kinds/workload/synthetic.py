"""Synthetic streams of tables: what repeats, what drifts, what changes once, what never repeats.

Records are independent, with the shares that plans foretell errors for (`accuracy.shares`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamdp.kinds.workload.accuracy import shares
from streamdp.types import FloatArray, IntArray

NAMES = ("stable", "drifting", "shifted", "relabelled")

LENGTH = 60

DRIFT = 0.05
"""Steps of the logarithm of a cell's share, on each axis, from batch to batch."""


def tables(
    name: str, sizes: Sequence[int], rows: int, seed: int, length: int
) -> Iterator[IntArray]:
    """Exact tables of the batches of a stream.

    Args:
        name: One of `NAMES`.
        sizes: Of the axes.
        rows: Expected in a batch; there are Poisson(rows).
        seed: Of the chance; nothing that it draws is released.
        length: How many batches.
    """
    chance = np.random.default_rng([seed, 3])
    known = shares(sizes)
    for number in range(length):
        if name == "drifting":
            known = _drifted(known, chance)
        if name == "relabelled" or (name == "shifted" and number == length // 2):
            known = _relabelled(known, chance)
        counts = chance.multinomial(chance.poisson(rows), known.reshape(-1))
        yield counts.reshape(known.shape).astype(np.int64)


def _drifted(known: FloatArray, chance: np.random.Generator) -> FloatArray:
    for axis, size in enumerate(known.shape):
        shape = [size if place == axis else 1 for place in range(known.ndim)]
        known = known * np.exp(chance.normal(0.0, DRIFT, size)).reshape(shape)
    return np.asarray(known / known.sum())


def _relabelled(known: FloatArray, chance: np.random.Generator) -> FloatArray:
    for axis, size in enumerate(known.shape):
        known = np.take(known, chance.permutation(size), axis=axis)
    return known
