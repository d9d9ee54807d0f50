"""A distribution over a public domain, given by potentials on the items of a workload.

A(x) = total·exp(Σ_i λ_i(x))/Z, one number λ a cell of an item, whatever the size of the domain. Up
to 2^21 cells A is an array. Beyond, marginals come from eliminating the other axes one by one,
which is cheap if the items do not tie too many axes together.

The domain is one of public categorical axes. An item of a workload is a partition of the domain: a
marginal (one cell for each combination of its axes), or a predicate (two cells: where it holds, and
where not). Every record is in exactly one cell of every item.

`refit` fits a distribution to noisy counts without leaving a prior further than they ask for:

min over A of KL(A‖F)/φ + Σ_i |M_i A - y_i|²/(2σ²), masses and not shares, so totals are fitted
too. The dual is A = F·exp(φ·Σ_i λ_i), λ_i = (y_i - M_i A)/σ²; here A = F·exp(Σ_i φ_i·λ_i), for the
prior may be further from large cells than from small ones. For one item and the others fixed the
cells part, and each has a closed form; items take turns until nothing moves. That is
multiplicative weights run to its fixed point. Post-processing: it sees no record.

References:
    Hardt, Ligett & McSherry 2012; McKenna, Sheldon & Miklau 2019.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import wrightomega

from streamdp.mechanisms.noise import Noise
from streamdp.types import FloatArray, IntArray

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Marginal:
    """A partition of the domain that looks at some axes.

    Args:
        axes: Axes by their index, increasing.
        shape: Cells of each of them.
        labels: Cell of the partition of each cell of the axes, shape (prod(shape),); None for
            the marginal itself.
    """

    axes: Axes
    shape: tuple[int, ...]
    labels: IntArray | None = None

    @property
    def size(self) -> int:
        """Cells of the partition."""
        if self.labels is None:
            return math.prod(self.shape)
        return int(self.labels.max()) + 1

    def counts(self, marginal: IntArray) -> IntArray:
        """Exact counts of its cells, of a table of its axes."""
        flat = marginal.reshape(-1)
        if self.labels is None:
            return flat
        counts = np.zeros(self.size, dtype=np.int64)
        np.add.at(counts, self.labels, flat)
        return counts

    def masses(self, marginal: FloatArray) -> FloatArray:
        """Masses of its cells, of a table of its axes."""
        flat = marginal.reshape(-1)
        if self.labels is None:
            return flat
        return np.bincount(self.labels, weights=flat, minlength=self.size).astype(np.float64)

    def lift(self, values: FloatArray) -> FloatArray:
        """The value of the cell that each cell of the axes is in, shape `shape`."""
        spread = values if self.labels is None else values[self.labels]
        return spread.reshape(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A domain and its items.

    Args:
        sizes: Cells of each axis.
        items: What is counted.
        unlisted: How many cells of each axis, its last, are for what is not listed; none if it is
            left out.
    """

    sizes: tuple[int, ...]
    items: tuple[Marginal, ...]
    unlisted: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.unlisted:
            object.__setattr__(self, "unlisted", (0,) * len(self.sizes))

    @property
    def cells(self) -> int:
        """Cells of the domain."""
        return math.prod(self.sizes)

    @property
    def answers(self) -> int:
        """Cells of all items together."""
        return sum(item.size for item in self.items)

    @property
    def largest(self) -> int:
        """Cells of the largest item."""
        return max(item.size for item in self.items)

    def listed(self, item: Marginal) -> tuple[int, ...]:
        """Cells that are listed, of each axis of an item; of a predicate all that it has."""
        if item.labels is not None:
            return (item.size,)
        return tuple(self.sizes[axis] - self.unlisted[axis] for axis in item.axes)

    def item(self, axes: Axes, labels: IntArray | None = None) -> Marginal:
        """An item over axes of this domain."""
        return Marginal(axes, tuple(self.sizes[axis] for axis in axes), labels)

    @classmethod
    def of(cls, sizes: Sequence[int], marginals: Sequence[Axes]) -> Workload:
        """The workload of some marginals."""
        bare = cls(tuple(sizes), ())
        return cls(bare.sizes, tuple(bare.item(axes) for axes in marginals))


def marginals_up_to(axes: int, most: int) -> tuple[Axes, ...]:
    """All sets of 1 to `most` axes, the smaller first.

    >>> marginals_up_to(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    sizes = range(1, most + 1)
    return tuple(each for size in sizes for each in itertools.combinations(range(axes), size))


MOST_CELLS = 2**21
"""Cells of a domain that is held as an array, and of an intermediate table that is not."""

Potentials = tuple[FloatArray, ...]
"""One array an item, in the items' order."""

LARGEST_POTENTIAL = 60.0
"""Potentials are cut at ± this; e^-60 is no share of any batch."""


_LEAST_TOTAL = 1e-300


class DomainMasses(Protocol):
    """Masses over a domain that can be tilted by functions of an item."""

    def marginal(self, axes: Axes) -> FloatArray:
        """Masses of the cells of some axes, with their shape."""
        ...

    def masses(self, item: Marginal) -> FloatArray:
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


def distribution(workload: Workload, potentials: Potentials, total: float) -> DomainMasses:
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

    def masses(self, item: Marginal) -> FloatArray:
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

    def masses(self, item: Marginal) -> FloatArray:
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


MOST_SWEEPS = 40
STILL = 1e-3
"""A sweep that moves a smaller share of the mass is the last."""

_LEAST_MASS = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """Noisy counts of an item. Public.

    Args:
        place: Of the item in the workload.
        values: Its cells' counts with noise.
        variance: Of the noise of a cell, as fits are told it.
        noise: Of a cell; None where values are foretold, not drawn.
    """

    place: int
    values: FloatArray
    variance: float
    noise: Noise | None = None


def refit(
    workload: Workload,
    prior: DomainMasses,
    measurements: Sequence[NoisyMarginal],
    pliancies: Sequence[float],
) -> dict[int, FloatArray]:
    """Tilt the prior in place, and return what was added to the potentials of each item.

    Args:
        workload: Domain and items.
        prior: F; becomes A.
        measurements: y, of this batch; an item may be measured twice.
        pliancies: φ of each: variance of a cell's count that the prior leaves open, over the count.
    """
    duals = [np.zeros(len(each.values)) for each in measurements]
    for _ in range(MOST_SWEEPS):
        moved = 0.0
        for number, (each, pliancy) in enumerate(zip(measurements, pliancies, strict=True)):
            masses = prior.masses(workload.items[each.place])
            change = _block(masses, duals[number], each, pliancy)
            duals[number] += change / pliancy
            prior.tilt(each.place, change)
            shift = np.abs(masses * np.expm1(change)).sum()
            moved = max(moved, float(shift / max(masses.sum(), 1.0)))
        if moved < STILL or len(measurements) == 1:
            break
    tilts: dict[int, FloatArray] = {}
    for each, dual, pliancy in zip(measurements, duals, pliancies, strict=True):
        tilts[each.place] = tilts.get(each.place, 0.0) + pliancy * dual
    return tilts


def _block(
    masses: FloatArray, dual: FloatArray, measured: NoisyMarginal, pliancy: float
) -> FloatArray:
    """z with σ²·(λ + z/φ) = y - a·e^z in each cell.

    With w = (a/b)·e^z, b = σ²/φ and c = y - σ²·λ this is w + ln w = c/b + ln(a/b), Wright's omega.
    """
    slope = measured.variance / pliancy
    scaled = (measured.values - measured.variance * dual) / slope
    log_mass = np.log(np.maximum(masses, _LEAST_MASS) / slope)
    return np.asarray(scaled - wrightomega(scaled + log_mass))
