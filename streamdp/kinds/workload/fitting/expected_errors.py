"""Errors that measurements would leave where no value repeats, by concentrations alone.

Distances are squared and over the records: q = c - 1 for an item of concentration c and even
shares; its sum of absolute differences is about √(q/(1 + q/4)), which is √q while it is small and
never more than 2. Of what is measured with noise N the part qN/(q + N) remains. An item that is not
measured is foretold as the product of its axes that are: it keeps its concentration above the
product's, over the product's root since few cells hold the most of it, and the errors of the axes.
Post-processing: it sees releases alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from streamdp.kinds.workload.fitting.concentration import Concentration, single_axes
from streamdp.kinds.workload.fitting.marginals import Item, Workload
from streamdp.kinds.workload.fitting.spread import noise_within
from streamdp.types import FloatArray

MOST_ITEMS = 64
"""Most items of a workload whose errors are foretold: all pairs of them are looked at."""

Taken = Sequence[tuple[int, float]]
"""Measurements: the place of an item, and the variance of the noise of a cell."""

_TINY = 1e-9


class ExpectedErrors:
    """Expected errors of the items of a batch of which no value is known.

    Args:
        workload: Its items, at most `MOST_ITEMS`.
        concentration: What past releases say of them.
        total: Expected records.
    """

    def __init__(self, workload: Workload, concentration: Concentration, total: float) -> None:
        items, alone = workload.items, single_axes(workload)
        sizes = np.array([math.prod(workload.listed(item)) for item in items], dtype=np.float64)
        ratios = [
            [noise_within(workload, outer, inner) for inner in range(len(items))]
            for outer in range(len(items))
        ]
        self._noise = np.array(ratios) * (sizes / total) ** 2
        self._even = np.array([_even(item) for item in items])
        self._axes = np.array(list(alone.values()), dtype=np.intp)
        inside = [[item.labels is None and axis in item.axes for axis in alone] for item in items]
        self._inside = np.array(inside, dtype=np.float64).reshape(len(items), len(alone))
        self._concentrations = concentration.of_items(workload)

    def gains(self, taken: Taken, variance: float) -> FloatArray:
        """Return how much a measurement of each item lowers the errors of all together."""
        before = self._precision(taken)
        after = before + 1.0 / (self._noise * variance)
        return np.asarray(self._errors(before).sum() - self._errors(after).sum(axis=1))

    def average(self, rounds: int, variance: float) -> float:
        """Average error after so many measurements, each of the item that gains most."""
        taken: list[tuple[int, float]] = []
        for _ in range(rounds):
            taken.append((int(np.argmax(self.gains(taken, variance))), variance))
        return float(self._errors(self._precision(taken)).mean())

    def _precision(self, taken: Taken) -> FloatArray:
        found = np.zeros(len(self._noise))
        for place, variance in taken:
            found += 1.0 / (self._noise[place] * variance)
        return found

    def _errors(self, precision: FloatArray) -> FloatArray:
        """Σ|answer - count|/n of each item, shape (..., items) as that of the precisions."""
        far = np.maximum(self._concentrations - 1.0, _TINY)
        own = far / (1.0 + far * precision)
        covered = precision[..., self._axes] > 0.0
        product = np.exp((covered * np.log(self._concentrations[self._axes])) @ self._inside.T)
        product = np.maximum(product, self._even)
        left = np.maximum(self._concentrations - product, 0.0) / np.sqrt(product)
        left += (covered * own[..., self._axes]) @ self._inside.T
        squared = np.where(precision > 0.0, np.minimum(own, left), left)
        return np.asarray(np.sqrt(squared / (1.0 + squared / 4.0)))


def _even(item: Item) -> float:
    """Concentration of an item if the cells of its axes are even."""
    if item.labels is None:
        return 1.0
    shares = np.bincount(item.labels) / len(item.labels)
    return item.size * float((shares**2).sum())
