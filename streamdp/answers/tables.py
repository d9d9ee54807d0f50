"""Tables of counts over a period, from the raw tables that were measured of its batches.

A release measures some tables of its axes, and which ones changes from batch to batch. Of each set
of axes a batch tells what all tables say that hold it, weighed by precision. Batches that measured
none are taken to have the shares that batches near them had, in the period and around it, by
Gaussian regression over batches: its variance has the noise of what was measured, how far batches
lie apart, and what is not known of the numbers of records.

Tables are made consistent by their interactions (analysis of variance): the part of a table that
belongs to a subset of its axes is that of the subset's own best estimate, so all tables agree about
what they have in common, and each adds up to the number of records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import stdtrit

from streamdp.answers import LEVEL
from streamdp.types import FloatArray, IntArray

Axes = tuple[str, ...]
FEWEST = 3
"""Batches that must have measured a table, where others did not."""

_SURE = 0.975


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
class CountedTable:
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
        at: Places in time of the batches, in batches; one after the other by default.
        around_at: Of those before and behind it.
    """

    batches: Sequence[Sequence[Raw]]
    shapes: Mapping[str, int]
    around: Sequence[Sequence[Raw]] = ()
    at: Sequence[float] = ()
    around_at: Sequence[float] = ()
    _known: dict[Axes, CountedTable] = field(init=False, default_factory=dict)

    def table(self, axes: Axes) -> CountedTable:
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
        return CountedTable(counts, whole.halves)

    def part(self, part: Part) -> CountedTable:
        """The number of records that meet a condition, consistent with the tables of its axes.

        Its interval is that of the condition as one cell: what batches that measured it say of it.

        Raises:
            UnmeasuredError: Too few batches measured it.
        """
        found = self._of(lambda batch: _of_part(batch, part), ())
        if any(part.name in raw.axes for batch in self.batches for raw in batch):
            return found
        counts = self.table(part.axes).counts if part.axes else found.counts
        return CountedTable(np.asarray((counts * part.mask).sum()), found.halves)

    def _shape(self, axes: Axes) -> tuple[int, ...]:
        return tuple(self.shapes[axis] for axis in axes)

    def _expanded(self, part: FloatArray, subset: Axes, axes: Axes) -> FloatArray:
        """A part spread evenly over the axes that it lacks."""
        shape = tuple(self.shapes[axis] if axis in subset else 1 for axis in axes)
        spread = math.prod(self.shapes[axis] for axis in axes if axis not in subset)
        return np.asarray(part.reshape(shape) / spread)

    def _estimate(self, axes: Axes) -> CountedTable:
        """The best estimate over some axes by itself."""
        if axes not in self._known:
            shape = self._shape(axes)
            self._known[axes] = self._of(lambda batch: _combined(batch, axes, shape), shape)
        return self._known[axes]

    def _of(self, counted: Counting, shape: tuple[int, ...]) -> CountedTable:
        """The sum over all batches of what is counted in each."""
        own = [counted(batch) for batch in self.batches]
        lacking = [place for place, (_, variance) in enumerate(own) if math.isinf(variance)]
        total = sum((counts for counts, variance in own if math.isfinite(variance)), start=0.0)
        noise = sum(variance for _, variance in own if math.isfinite(variance))
        if not lacking:
            halves = np.full(shape, LEVEL * math.sqrt(noise))
            return CountedTable(np.asarray(total), halves)
        times = self.at or tuple(map(float, range(len(self.batches))))
        every = [
            *zip(times, self.batches, own, strict=True),
            *zip(self.around_at, self.around, map(counted, self.around), strict=True),
        ]
        seen = [(when, batch, each) for when, batch, each in every if math.isfinite(each[1])]
        if len(seen) < FEWEST:
            raise UnmeasuredError(f"{len(own) - len(lacking)} of {len(own)} batches")
        sizes, noises = _sizes([batch for _, batch, _ in every])
        known = np.array([math.isfinite(each[1]) for _, _, each in every])
        missing = ~known & (np.arange(len(every)) < len(own))
        variances = np.array([variance for _, _, (_, variance) in seen]) / sizes[known] ** 2
        shares = np.array([counts for _, _, (counts, _) in seen]) / sizes[known].reshape(
            (-1, *(1,) * len(shape))
        )
        when = np.array([when for when, _, _ in every])
        found = _Course.of(when[known], shares.reshape(len(seen), -1), variances, sizes[known])
        inside = np.arange(int(known.sum())) < len(own) - len(lacking)
        share, spread = found.ahead(when[missing], sizes[missing], sizes[known] * inside)
        weight = float(sizes[missing].sum())
        spread = spread + share**2 * float(noises[missing].sum()) / weight**2
        whole = np.asarray(total) + weight * share.reshape(shape)
        wide = float(stdtrit(len(seen) - 1, _SURE))
        return CountedTable(whole, np.asarray(wide * weight * np.sqrt(spread)).reshape(shape))


_MEMORIES = (3.0, 15.0, 60.0)
"""Batches in which a deviation is forgotten, that are tried."""

_SPREADS = tuple(each**2 for each in (0.0, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6, 1.2))
"""Variances that are tried, of what lasts and of a batch's own, over that of one record."""

_FIT_CELLS = 6


@dataclass(frozen=True, slots=True)
class _Law:
    """How shares of batches differ, over the variance of one record.

    Args:
        memory: Batches in which what lasts is forgotten.
        lasting: Variance of what lasts.
        own: Variance of what one batch has of its own.
    """

    memory: float = 15.0
    lasting: float = 0.01
    own: float = 0.01

    def __call__(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Covariance of what lasts, between batches."""
        apart = np.abs(np.subtract.outer(one, other))
        return np.asarray(self.lasting * np.exp(-apart / self.memory))


@dataclass(frozen=True, slots=True, eq=False)
class _Course:
    """How shares go from batch to batch: Gaussian regression, cell by cell, with a common law.

    The share of a cell in batch t is p + g_t + e_t, with covariances p(1 - p)·a·exp(-|s - t|/m) and
    p(1 - p)·(b + 1/n_t), beside the noise of what was counted. The law, a, b and m, is that of the
    largest likelihood over the cells that have most of the records.

    Args:
        at: Of each batch that was counted.
        shares: Of each and each cell.
        noise: Variance of each batch's shares.
        sizes: Records of each.
        mean: p.
        law: Common to the cells.
    """

    at: FloatArray
    shares: FloatArray
    noise: FloatArray
    sizes: FloatArray
    mean: FloatArray
    law: _Law

    @classmethod
    def of(
        cls, at: FloatArray, shares: FloatArray, noise: FloatArray, sizes: FloatArray
    ) -> _Course:
        weight = 1.0 / (noise + 0.01 / sizes)
        mean = (weight[:, None] * shares).sum(axis=0) / weight.sum()
        found = cls(at, shares, noise, sizes, mean, _Law())
        few = np.argsort(-found._scale)[:_FIT_CELLS]
        for _ in range(2):
            for part, tried in (("memory", _MEMORIES), ("lasting", _SPREADS), ("own", _SPREADS)):
                laws = [replace(found.law, **{part: each}) for each in tried]
                scores = [found._likelihood(law, few) for law in laws]
                found = replace(found, law=laws[int(np.argmax(scores))])
        return found

    @property
    def _scale(self) -> FloatArray:
        return np.clip(self.mean * (1.0 - self.mean), 1e-6, None)

    def _covariance(self, law: _Law, cell: int) -> FloatArray:
        kernel = law(self.at, self.at)
        kernel[np.diag_indices_from(kernel)] += law.own + 1.0 / self.sizes
        whole = self._scale[cell] * kernel
        whole[np.diag_indices_from(whole)] += self.noise
        return np.asarray(whole)

    def _likelihood(self, law: _Law, cells: IntArray) -> float:
        found = 0.0
        for cell in cells.tolist():
            factor = np.linalg.cholesky(self._covariance(law, cell))
            apart = np.linalg.solve(factor, self.shares[:, cell] - self.mean[cell])
            found -= 0.5 * float(apart @ apart) + float(np.log(np.diag(factor)).sum())
        return found

    def ahead(
        self, at: FloatArray, sizes: FloatArray, counted: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean share of batches that were not counted, weighed by their records, and its variance.

        Args:
            at: Of these batches.
            sizes: Records of each.
            counted: Records of each batch whose own counts are added to the answer, else 0: their
                noise is in the variance, as a part of the records of the others.
        """
        weight, whole = sizes / sizes.sum(), float(sizes.sum())
        cross, among = weight @ self.law(at, self.at), self.law(at, at)
        among[np.diag_indices_from(among)] += self.law.own + 1.0 / sizes
        prior = float(weight @ among @ weight)
        ones, beside = np.ones(len(self.at)), counted / whole
        shares, spread = np.empty(len(self.mean)), np.empty(len(self.mean))
        for cell, scale in enumerate(self._scale):
            covariance = self._covariance(self.law, cell)
            solved = np.linalg.solve(covariance, np.column_stack((scale * cross, ones)))
            lacks = (1.0 - float(ones @ solved[:, 0])) / float(ones @ solved[:, 1])
            each = solved[:, 0] + lacks * solved[:, 1]  # sums to 1: the mean is not known
            shares[cell] = each @ self.shares[:, cell]
            spread[cell] = (
                scale * prior
                - 2.0 * scale * float(each @ cross)
                + float(each @ covariance @ each)
                + float(self.noise @ (beside**2 + 2.0 * beside * each))
            )
        return shares, np.maximum(spread, 1e-18)


def _sizes(batches: Sequence[Sequence[Raw]]) -> tuple[FloatArray, FloatArray]:
    """Likely number of records of each batch, at least one, and its variance.

    Noisy totals, moved towards their median by as much as their noise explains their spread.
    """
    found = [_combined(batch, (), ()) for batch in batches]
    totals = np.array([float(total) for total, _ in found])
    noise = np.array([variance for _, variance in found])
    middle = float(np.median(totals))
    apart = max(float(np.mean((totals - middle) ** 2 - noise)), 0.0)
    kept = apart / (apart + noise)
    return np.maximum(middle + kept * (totals - middle), 1.0), kept * noise


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
