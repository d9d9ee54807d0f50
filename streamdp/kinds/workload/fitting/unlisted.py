"""Shares of the cells for what is not listed: `other` and nulls, which every batch has few of.

Where nothing is remembered cells are taken to be alike, but not these: each is expected to hold a
fiftieth of the records, and what releases show of them is averaged. That lasts where listed values
change places. Post-processing: it sees releases alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.kinds.workload.fitting.distribution import Distribution, Potentials
from streamdp.kinds.workload.fitting.marginals import Workload
from streamdp.types import FloatArray

FIRST = 0.02
"""Share of a cell that is expected first, or that of a listed one if that is less."""

LEAST = 0.0005
"""Least share that is learned."""

Shares = tuple[tuple[float, ...], ...]
"""Shares of the cells of each axis that are not listed."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Shares of the records that fall in cells that are not listed.

    Args:
        shares: Of each axis.
    """

    shares: Shares

    @classmethod
    def first(cls, workload: Workload) -> Unlisted:
        """Return the shares before the first release."""
        pairs = zip(workload.sizes, workload.unlisted, strict=True)
        return cls(tuple((min(FIRST, 1.0 / size),) * count for size, count in pairs))

    def after(self, fitted: Distribution, pace: float) -> Unlisted:
        """Shares after a release, of which the fit has so much weight."""
        total, found = max(fitted.total(), 1.0), list[tuple[float, ...]]()
        for axis, old in enumerate(self.shares):
            if not old:
                found.append(old)
                continue
            seen = fitted.marginal((axis,))[-len(old) :] / total
            moved = (1.0 - pace) * np.array(old) + pace * seen
            moved = np.maximum(moved, LEAST)
            moved /= max(1.0, float(moved.sum()) / (1.0 - LEAST))
            found.append(tuple(map(float, moved)))
        return Unlisted(tuple(found))

    def potentials(self, workload: Workload) -> Potentials:
        """Potentials of the distribution of which only these shares are known.

        Those of an axis are given to the smallest item that is a marginal of it.
        """
        logs = [np.zeros(item.shape) for item in workload.items]
        for axis, shares in enumerate(self.shares):
            holding = [
                place
                for place, item in enumerate(workload.items)
                if axis in item.axes and item.labels is None
            ]
            if not shares or not holding:
                continue
            place = min(holding, key=lambda each: workload.items[each].size)
            inner = workload.items[place].axes.index(axis)
            logs[place] += _spread(shares, workload.sizes[axis], inner, logs[place].ndim)
        return tuple(
            np.zeros(item.size) if item.labels is not None else each.reshape(-1)
            for item, each in zip(workload.items, logs, strict=True)
        )


def _spread(shares: Sequence[float], size: int, axis: int, axes: int) -> FloatArray:
    """Logarithms of the shares over that of a listed cell, along an axis of a table."""
    listed = (1.0 - sum(shares)) / (size - len(shares))
    along = np.zeros(size)
    along[-len(shares) :] = [math.log(share / listed) for share in shares]
    return along.reshape([size if place == axis else 1 for place in range(axes)])
