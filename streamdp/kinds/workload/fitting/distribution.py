"""A distribution over a public domain, given by potentials on the items of a workload.

A(x) = total·exp(Σ_i λ_i(x))/Z, one number λ a cell of an item, whatever the size of the domain. Up
to 2^21 cells A is an array. Beyond, marginals come from eliminating the other axes one by one,
which is cheap if the items do not tie too many axes together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from streamdp.kinds.workload.fitting.marginals import Axes, Item, Workload
from streamdp.types import FloatArray

MOST_CELLS = 2**21
"""Cells of a domain that is held as an array, and of an intermediate table that is not."""

Potentials = tuple[FloatArray, ...]
"""One array an item, in the items' order."""

LARGEST_POTENTIAL = 60.0
"""Potentials are cut at ± this; e^-60 is no share of any batch."""


_LEAST_TOTAL = 1e-300


class Distribution(Protocol):
    """Masses over a domain that can be tilted by functions of an item."""

    def marginal(self, axes: Axes) -> FloatArray:
        """Masses of the cells of some axes, with their shape."""
        ...

    def masses(self, item: Item) -> FloatArray:
        """Masses of the cells of an item."""
        ...

    def tilt(self, place: int, log_factors: FloatArray) -> None:
        """Multiply the masses of the cells of the item at `place`; the total changes too."""
        ...

    def total(self) -> float:
        """The mass of all."""
        ...

    def rescale(self, total: float) -> None:
        """Make the mass of all so much."""
        ...


def distribution(workload: Workload, potentials: Potentials, total: float) -> Distribution:
    """The distribution of some potentials, scaled to a total."""
    if workload.cells <= MOST_CELLS:
        return Dense(workload, potentials, total)
    return Eliminated(workload, potentials, total)


class Dense:
    """A distribution as an array of the domain."""

    def __init__(self, workload: Workload, potentials: Potentials, total: float) -> None:
        self._workload = workload
        logs = np.zeros(workload.sizes)
        for item, potential in zip(workload.items, potentials, strict=True):
            logs += item.lift(potential).reshape(_spread(item.axes, workload.sizes))
        logs -= logs.max()
        self._masses = np.exp(logs, out=logs)
        self._masses *= total / self._masses.sum()

    def marginal(self, axes: Axes) -> FloatArray:
        """A sum over the other axes."""
        others = tuple(axis for axis in range(len(self._workload.sizes)) if axis not in axes)
        return np.asarray(self._masses.sum(axis=others))

    def masses(self, item: Item) -> FloatArray:
        """Masses of an item's cells."""
        return item.masses(self.marginal(item.axes))

    def tilt(self, place: int, log_factors: FloatArray) -> None:
        """Multiply the masses by factors of an item's cells, in place."""
        item = self._workload.items[place]
        factors = item.lift(np.exp(log_factors))
        self._masses *= factors.reshape(_spread(item.axes, self._workload.sizes))

    def total(self) -> float:
        """The sum of all masses."""
        return float(self._masses.sum())

    def rescale(self, total: float) -> None:
        """Scale all masses to a sum, in place."""
        self._masses *= total / max(self.total(), _LEAST_TOTAL)


class Eliminated:
    """A distribution as a product of factors; other axes are summed out when a table is asked."""

    def __init__(self, workload: Workload, potentials: Potentials, total: float) -> None:
        self._workload = workload
        self._logs = [np.array(potential) for potential in potentials]
        self._log_scale = 0.0
        sums, shift = self._contract(())
        self._log_scale = math.log(total) - math.log(float(sums)) - shift

    def marginal(self, axes: Axes) -> FloatArray:
        """Masses of some axes, by eliminating the others."""
        sums, shift = self._contract(axes)
        return np.asarray(sums * math.exp(shift + self._log_scale))

    def masses(self, item: Item) -> FloatArray:
        """Masses of an item's cells."""
        return item.masses(self.marginal(item.axes))

    def tilt(self, place: int, log_factors: FloatArray) -> None:
        """Add to the potentials of the item."""
        self._logs[place] = self._logs[place] + log_factors

    def total(self) -> float:
        """The sum of all masses."""
        return float(self.marginal(()))

    def rescale(self, total: float) -> None:
        """Scale all masses to a sum."""
        self._log_scale += math.log(total) - math.log(max(self.total(), _LEAST_TOTAL))

    def _contract(self, kept: Axes) -> tuple[FloatArray, float]:
        """The marginal without its scale, and the logarithm of what it lacks."""
        operands: list[object] = []
        shift, touched = 0.0, set(kept)
        for item, logs in zip(self._workload.items, self._logs, strict=True):
            peak = float(logs.max())
            operands += [item.lift(np.exp(logs - peak)), list(item.axes)]
            shift += peak
            touched |= set(item.axes)
        for axis in kept:
            operands += [np.ones(self._workload.sizes[axis]), [axis]]
        shift += sum(
            math.log(size) for axis, size in enumerate(self._workload.sizes) if axis not in touched
        )
        path = _path(self._workload, kept)
        return np.asarray(np.einsum(*operands, list(kept), optimize=path)), shift  # type: ignore[call-overload]


def elimination_size(workload: Workload, kept: Axes = ()) -> int:
    """Cells of the largest table that elimination makes on the way to a marginal."""
    remaining = [set(item.axes) for item in workload.items] + [{axis} for axis in kept]
    largest = max((_cells(workload, axes) for axes in remaining), default=1)
    for axis in _order(workload, kept):
        joined = set().union(*(axes for axes in remaining if axis in axes))
        remaining = [axes for axes in remaining if axis not in axes] + [joined - {axis}]
        largest = max(largest, _cells(workload, joined))
    return max(largest, _cells(workload, set(kept)))


def _path(workload: Workload, kept: Axes) -> list[object]:
    """The contractions of `np.einsum` that eliminate one axis after the other."""
    remaining = [set(item.axes) for item in workload.items] + [{axis} for axis in kept]
    path: list[object] = ["einsum_path"]
    for axis in _order(workload, kept):
        places = [place for place, axes in enumerate(remaining) if axis in axes]
        joined = set().union(*(remaining[place] for place in places)) - {axis}
        remaining = [axes for place, axes in enumerate(remaining) if place not in places]
        remaining.append(joined)
        path.append(tuple(places))
    path.append(tuple(range(len(remaining))))
    return path


def _order(workload: Workload, kept: Axes) -> list[int]:
    """Axes that are not kept, the one whose elimination makes the smallest table first."""
    remaining = [set(item.axes) for item in workload.items]
    waiting = {axis for axes in remaining for axis in axes} - set(kept)
    order: list[int] = []
    while waiting:
        joined = {
            axis: set().union(*(axes for axes in remaining if axis in axes)) for axis in waiting
        }
        axis = min(waiting, key=lambda each: (_cells(workload, joined[each]), each))
        remaining = [axes for axes in remaining if axis not in axes] + [joined[axis] - {axis}]
        waiting.remove(axis)
        order.append(axis)
    return order


def _cells(workload: Workload, axes: set[int]) -> int:
    return math.prod(workload.sizes[axis] for axis in axes)


def _spread(axes: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Shape in which a table of some axes broadcasts over the domain."""
    return tuple(size if axis in axes else 1 for axis, size in enumerate(sizes))
