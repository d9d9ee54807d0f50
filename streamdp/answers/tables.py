"""Tables of counts over a period, from the raw tables that were measured of its batches.

A release measures some tables of its axes, and which ones changes from batch to batch. Of each set
of axes a batch tells what all tables say that hold it, weighed by precision. Batches that measured
none are taken to have the share that those had which did, in the period and around it: a ratio
estimate, whose variance has the noise of what was measured, and how far batches lie apart.

Tables are made consistent by their interactions (analysis of variance): the part of a table that
belongs to a subset of its axes is that of the subset's own best estimate, so all tables agree about
what they have in common, and each adds up to the number of records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from streamdp.types import FloatArray

Axes = tuple[str, ...]
FEWEST = 3
"""Batches that must have measured a table, where others did not."""

_LEVEL, _SURE = 1.959964, 0.975


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """One noisy table of one batch.

    Args:
        axes: Names, in the order of its dimensions.
        counts: Noisy.
        variance: Of each cell.
    """

    axes: Axes
    counts: FloatArray
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Counts of a period with half widths of their 95 % intervals.

    Args:
        counts: One dimension an axis; none for the number of records.
        halves: Of the same shape.
    """

    counts: FloatArray
    halves: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The records that meet a condition.

    Args:
        name: An axis of two cells, of which the second holds it, where it was measured as such.
        axes: That it looks at.
        mask: 1 in each of their cells in which it holds, else 0.
    """

    name: str
    axes: Axes
    mask: FloatArray


Counting = Callable[[Sequence[Raw]], tuple[FloatArray, float]]
"""What a batch's tables say, and its variance: infinite if nothing."""


class UnmeasuredError(ValueError):
    """Too few batches measured a table."""


@dataclass(frozen=True, slots=True, eq=False)
class PeriodTables:
    """The tables of a period.

    Args:
        batches: What was measured of each.
        shapes: Number of cells of each axis.
        around: What was measured of batches before and behind it.
    """

    batches: Sequence[Sequence[Raw]]
    shapes: Mapping[str, int]
    around: Sequence[Sequence[Raw]] = ()

    def table(self, axes: Axes) -> Table:
        """The counts over some axes, consistent with those over fewer.

        Raises:
            UnmeasuredError: Too few batches measured them.
        """
        whole = self._estimate(axes)
        counts = np.zeros(self._shape(axes))
        for size in range(len(axes) + 1):
            for subset in itertools.combinations(axes, size):
                part = whole if subset == axes else self._estimate(subset)
                counts = counts + self._expanded(_interaction(part.counts), subset, axes)
        return Table(counts, whole.halves)

    def part(self, part: Part) -> Table:
        """The number of records that meet a condition, consistent with the tables of its axes.

        Its interval is that of the condition as one cell: what batches that measured it say of it.

        Raises:
            UnmeasuredError: Too few batches measured it.
        """
        found = self._of(lambda batch: _of_part(batch, part), ())
        if any(part.name in raw.axes for batch in self.batches for raw in batch):
            return found
        counts = self.table(part.axes).counts if part.axes else found.counts
        return Table(np.asarray((counts * part.mask).sum()), found.halves)

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.shapes[axis] for axis in axes)

    def _expanded(self, part: FloatArray, subset: Axes, axes: Axes) -> FloatArray:
        """A part spread evenly over the axes that it lacks."""
        shape = tuple(self.shapes[axis] if axis in subset else 1 for axis in axes)
        spread = math.prod(self.shapes[axis] for axis in axes if axis not in subset)
        return np.asarray(part.reshape(shape) / spread)

    def _estimate(self, axes: Axes) -> Table:
        """The best estimate over some axes by itself."""
        shape = self._shape(axes)
        return self._of(lambda batch: _combined(batch, axes, shape), shape)

    def _of(self, counted: Counting, shape: tuple[int, ...]) -> Table:
        """The sum over all batches of what is counted in each."""
        own = [counted(batch) for batch in self.batches]
        lacking = [place for place, (_, variance) in enumerate(own) if math.isinf(variance)]
        total = sum((counts for counts, variance in own if math.isfinite(variance)), start=0.0)
        noise = sum(variance for _, variance in own if math.isfinite(variance))
        if not lacking:
            halves = np.full(shape, _LEVEL * math.sqrt(noise))
            return Table(np.asarray(total), halves)
        beside = [counted(batch) for batch in self.around]
        every = [*zip(self.batches, own, strict=True), *zip(self.around, beside, strict=True)]
        seen = [(batch, each) for batch, each in every if math.isfinite(each[1])]
        if len(seen) < FEWEST:
            raise UnmeasuredError(f"{len(own) - len(lacking)} of {len(own)} batches")
        sizes = np.array([_size(batch) for batch, _ in seen])
        counts = np.array([counts for _, (counts, _) in seen])
        variances = np.array([variance for _, (_, variance) in seen])
        others = np.array([_size(self.batches[place]) for place in lacking])
        share = counts.sum(axis=0) / sizes.sum()
        across = (slice(None), *(None,) * (counts.ndim - 1))
        apart = (counts - sizes[across] * share) / sizes[across]
        between = (apart**2).sum(axis=0) / (len(seen) - 1) - np.mean(variances / sizes**2)
        least = np.clip(share * (1 - share), 0.0, None) / sizes.mean()
        between = np.maximum(between, least)
        by = others.sum() / sizes.sum()
        inside = len(own) - len(lacking)
        drawn = (1 + by) ** 2 * variances[:inside].sum() + by**2 * variances[inside:].sum()
        spread = between * ((others**2).sum() + by**2 * (sizes**2).sum())
        wide = float(stdtrit(len(seen) - 1, _SURE))
        halves = np.sqrt(_LEVEL**2 * drawn + wide**2 * spread)
        return Table(total + share * others.sum(), np.asarray(halves))


def _size(batch: Sequence[Raw]) -> float:
    """Likely number of records of a batch, at least one."""
    return max(float(_combined(batch, (), ())[0]), 1.0)


def _of_part(batch: Sequence[Raw], part: Part) -> tuple[FloatArray, float]:
    """What a batch's tables say of a condition, and its variance: infinite if nothing."""
    direct = [raw for raw in batch if raw.axes == (part.name,)]
    found = [(float(raw.counts[1]), raw.variance) for raw in direct]
    for raw in batch:
        if raw not in direct and set(part.axes) <= set(raw.axes):
            counts, variance = _combined((raw,), part.axes, part.mask.shape)
            found.append(
                (float((counts * part.mask).sum()), variance * max(float(part.mask.sum()), 1.0))
            )
    weight = sum(1.0 / variance for _, variance in found)
    if not weight:
        return np.zeros(()), math.inf
    return np.asarray(sum(value / variance for value, variance in found) / weight), 1.0 / weight


def _combined(batch: Sequence[Raw], axes: Axes, shape: tuple[int, ...]) -> tuple[FloatArray, float]:
    """What a batch's tables say of some axes, and its variance: infinite if nothing."""
    total, weight = np.zeros(shape), 0.0
    for raw in batch:
        if not set(axes) <= set(raw.axes):
            continue
        other = tuple(place for place, axis in enumerate(raw.axes) if axis not in axes)
        summed = raw.counts.sum(axis=other)
        kept = [axis for axis in raw.axes if axis in axes]
        variance = raw.variance * math.prod(raw.counts.shape[place] for place in other)
        total = total + summed.transpose([kept.index(axis) for axis in axes]) / variance
        weight += 1.0 / variance
    return (total / weight, 1.0 / weight) if weight else (total, math.inf)


def _interaction(counts: FloatArray) -> FloatArray:
    """The part of a table that sums to nought along each of its axes."""
    for axis in range(counts.ndim):
        counts = counts - counts.mean(axis=axis, keepdims=True)
    return counts
