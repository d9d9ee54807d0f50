"""How concentrated the items of batches are: what can be learned where no value repeats.

The concentration of an item of m listed cells with shares p, on the average q, is 1 + m·Σ(p - q)²:
1 if they are even, however many records are not listed, and m if all records are in one of them. It
stays when values change places. A marginal of several axes is kept as its concentration over the
product of those of its axes: 1 if they are independent and all records are listed. Post-processing:
it sees releases alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.kinds.workload.fitting.marginals import Item, Workload
from streamdp.kinds.workload.fitting.refit import Measurement
from streamdp.kinds.workload.fitting.spread import noise_within
from streamdp.types import FloatArray

DECAY = 0.99
"""Factor on the weight of a release for each that follows."""

FIRST = 1.3
"""Concentration of an item that was never measured, with the weight of one exact release."""

DOUBT = 0.3
"""Deviation of a concentration from release to release, over it."""

_FOURTH = 5.0
"""Variance of a squared Laplace variable, over its squared variance."""


@dataclass(frozen=True, slots=True)
class Concentration:
    """Concentrations of the items, averaged over releases.

    Args:
        sums: Of those that were seen, each by its weight.
        weights: Of what was seen; a release without noise has 1.
    """

    sums: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def first(cls, items: int) -> Concentration:
        """Return the sums before the first release."""
        return cls((0.0,) * items, (0.0,) * items)

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return any(self.weights)

    def after(
        self, workload: Workload, measured: Sequence[Measurement], total: float
    ) -> Concentration:
        """Averages after a release.

        Args:
            workload: Its items.
            measured: What was measured.
            total: Records of the batch, as they are known from releases.
        """
        sums, weights = DECAY * np.array(self.sums), DECAY * np.array(self.weights)
        for each in measured:
            outer = workload.items[each.place]
            for place, item in enumerate(workload.items):
                noise = noise_within(workload, each.place, place) * each.variance
                if math.isinf(noise):
                    continue
                seen, weight = _seen(workload, item, _within(outer, item, each), noise, total)
                sums[place] += weight * seen
                weights[place] += weight
        return Concentration(tuple(map(float, sums)), tuple(map(float, weights)))

    def of_items(self, workload: Workload) -> FloatArray:
        """Expected concentration of each item."""
        found = (np.array(self.sums) + FIRST) / (np.array(self.weights) + 1.0)
        found = np.maximum(found, 1.0)
        alone = single_axes(workload)
        for place, item in enumerate(workload.items):
            if _is_product(workload, item):
                found[place] *= math.prod(found[alone[axis]] for axis in item.axes)
        return np.asarray(found)


def single_axes(workload: Workload) -> dict[int, int]:
    """Places of the items that are an axis by itself, by the axis."""
    return {
        item.axes[0]: place
        for place, item in enumerate(workload.items)
        if len(item.axes) == 1 and item.labels is None
    }


def _is_product(workload: Workload, item: Item) -> bool:
    """Whether an item is a marginal of several axes that are items too."""
    several = len(item.axes) > 1 and item.labels is None
    return several and set(item.axes) <= set(single_axes(workload))


def _within(outer: Item, inner: Item, measured: Measurement) -> FloatArray:
    """Noisy counts of an item that is contained in a measured one."""
    if outer is inner:
        return measured.values
    others = tuple(place for place, axis in enumerate(outer.axes) if axis not in inner.axes)
    return np.asarray(inner.masses(measured.values.reshape(outer.shape).sum(axis=others)))


def _seen(
    workload: Workload, item: Item, values: FloatArray, noise: float, total: float
) -> tuple[float, float]:
    """Concentration of an item by some noisy counts, and its weight."""
    shape = (item.size,) if item.labels is not None else item.shape
    listed, table = workload.listed(item), values.reshape(shape)
    inside = table[tuple(map(slice, listed))]
    seen, variance = _concentration(inside.reshape(-1), noise, total)
    if _is_product(workload, item):
        alone = 1.0
        for axis, cells in enumerate(listed):
            others = tuple(other for other in range(len(shape)) if other != axis)
            sums = table.sum(axis=others)[:cells]
            found, _ = _concentration(sums, noise * len(values) / shape[axis], total)
            alone *= max(found, 1.0)
        seen, variance = seen / alone, variance / alone**2
    return seen, DOUBT**2 / (DOUBT**2 + variance / max(seen, 1.0) ** 2)


def _concentration(values: FloatArray, noise: float, total: float) -> tuple[float, float]:
    """1 + m·Σ(p - q)² less what the noise adds, and its variance by the noise."""
    cells, apart = len(values), values - values.mean()
    energy = float((apart**2).sum()) - (cells - 1) * noise
    scale = cells / total**2
    variance = _FOURTH * cells * noise**2 + 4.0 * noise * max(energy, 0.0)
    return 1.0 + scale * energy, scale**2 * variance
