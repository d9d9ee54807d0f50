"""Batches whose records are known, counted between cuts with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from streamdp.answers.counted import Counted, Stage
from streamdp.types import FloatArray

DECILES = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Days:
    """Counted batches, and the records that they were counted from."""

    batches: tuple[Counted, ...]
    records: tuple[FloatArray, ...]

    def pooled(self, places: Sequence[int]) -> FloatArray:
        return np.concatenate([self.records[place] for place in places])


def days(centres: Sequence[float], seed: int, size: int = 800, noise: float = 10.0) -> Days:
    """A normal batch a day, of spread 1,000; cuts lie at the deciles of the first centre."""
    chance = np.random.default_rng(seed)
    batches, records = [], []
    for day, centre in enumerate(centres):
        found = np.round(chance.normal(centre, 1000.0, chance.poisson(size)))
        jitter = chance.normal(0.0, 60.0)
        cuts = np.round(centres[0] + jitter + 1000.0 * _NORMAL)
        ends = np.concatenate(([-np.inf], cuts, [np.inf]))
        counts = np.array([((found > a) & (found <= b)).sum() for a, b in pairwise(ends)])
        drawn = np.round(chance.normal(0.0, noise, len(counts)))
        batches.append(Counted(float(day), (Stage(cuts, counts + drawn, noise**2),)))
        records.append(found)
    return Days(tuple(batches), tuple(records))


_NORMAL = np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0.0, 0.2533, 0.5244, 0.8416, 1.2816])
