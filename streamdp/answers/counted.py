"""What is known of the records of a batch from noisy counts between public cuts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamdp.types import FloatArray, IntArray

LEAST_VARIANCE = 1e-3
"""Least variance of a count: at a large price all mass of its noise is at 0."""

_OUTER, _FALL = 3, 0.8
"""Cuts on a side whose density goes on beyond them, and how fast it falls over that density."""


_OF_MEDIAN = np.pi / 2.0
"""Variance of a median over that of a mean, where values are normal."""


NoisyNumber = tuple[float, float]
"""A noisy number and its variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Noisy counts of one histogram.

    Args:
        cuts: Cells, increasing, shape (k,); a bin ends with its cut.
        counts: Noisy, shape (k + 1,).
        variance: Of the noise of each.
    """

    cuts: FloatArray
    counts: FloatArray
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The histograms of a batch.

    Args:
        at: Days since 1970 at which the batch begins.
        stages: At least one.
    """

    at: float
    stages: tuple[Stage, ...]

    def total(self) -> NoisyNumber:
        """Noisy number of records; stages are weighed by precision."""
        return by_precision(
            (float(each.counts.sum()), max(each.variance, LEAST_VARIANCE) * len(each.counts))
            for each in self.stages
        )


def by_precision(numbers: Iterable[NoisyNumber]) -> NoisyNumber:
    """Put noisy numbers of one thing together, weighed by precision."""
    found = [(1.0 / variance, number) for number, variance in numbers]
    weight = sum(each for each, _ in found)
    return sum(each * number for each, number in found) / weight, 1.0 / weight


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Noisy shares of a batch's records up to each cut.

    Args:
        cells: Cuts of all stages, in order, shape (k,).
        shares: Noisy, shape (k,).
        noise: Covariance of their noise, shape (k, k).
        staged: Places of the cuts, stage by stage, shape (k,).
    """

    cells: FloatArray
    shares: FloatArray
    noise: FloatArray
    staged: IntArray
    _cuts: FloatArray = field(init=False)
    _below: FloatArray = field(init=False)
    _falls: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        shares = np.clip(np.maximum.accumulate(self.shares), 0.005, 0.995)
        first = np.concatenate(([True], self.cells[1:] != self.cells[:-1]))
        cuts, below = self.cells[first], shares[first]
        falls = (
            _fall(cuts[:_OUTER], below[:_OUTER], below[0]),
            _fall(cuts[-_OUTER:], below[-_OUTER:], 1.0 - below[-1]),
        )
        object.__setattr__(self, "_cuts", cuts)
        object.__setattr__(self, "_below", below)
        object.__setattr__(self, "_falls", falls)

    def cdf(self, cells: FloatArray) -> FloatArray:
        """The distribution function: linear between cuts, exponential beyond them.

        The density beyond an outermost cut goes on from that between the cuts beside it, a little
        less.
        """
        cuts, shares = self._cuts, self._below
        found = np.interp(cells, cuts, shares)
        below, above = cells < cuts[0], cells > cuts[-1]
        if below.any():
            beyond = self._falls[0] * (cells[below] - cuts[0])
            found[below] = shares[0] * np.exp(np.maximum(beyond, -40.0))
        if above.any():
            beyond = self._falls[1] * (cuts[-1] - cells[above])
            found[above] = 1.0 - (1.0 - shares[-1]) * np.exp(np.maximum(beyond, -40.0))
        return np.asarray(found)


def _fall(cuts: FloatArray, shares: FloatArray, mass: float) -> float:
    """How fast a tail of this mass falls with the distance from its cut."""
    density = max(float(shares[-1] - shares[0]), 0.03) / max(float(cuts[-1] - cuts[0]), 1.0)
    return float(_FALL * density / mass)


@dataclass(frozen=True, slots=True, eq=False)
class Sizes:
    """Likely number of records of each batch.

    Args:
        likely: At least 1, shape (batches,).
        alone: Variance of each that is its own, shape (batches,).
        shared: Deviation of each that all have in common, shape (batches,).
    """

    likely: FloatArray
    alone: FloatArray
    shared: FloatArray

    def together(self, places: IntArray) -> NoisyNumber:
        """The number of records of some batches, and its variance."""
        shared = float(self.shared[places].sum())
        return float(self.likely[places].sum()), float(self.alone[places].sum()) + shared**2


def sizes(batches: Sequence[Counted]) -> Sizes:
    """Likely number of records of each batch.

    Noisy totals, moved towards their median by as much as their noise explains their spread.
    """
    found = np.array([each.total() for each in batches])
    middle = float(np.median(found[:, 0]))
    spread = max(float(np.mean((found[:, 0] - middle) ** 2 - found[:, 1])), 0.0)
    kept = spread / (spread + found[:, 1])
    of_median = float(np.sqrt(_OF_MEDIAN * np.mean(spread + found[:, 1]) / len(found)))
    return Sizes(
        np.maximum(middle + kept * (found[:, 0] - middle), 1.0),
        kept * found[:, 1],
        (1.0 - kept) * of_median,
    )


def shares_of(batch: Counted, size: float) -> Shares:
    """The shares of a batch, given its number of records.

    The share below cut i is (s_i + (n - s)·s_i/s)/n, with s_i the sum of counts up to it and s the
    sum of all: to first order its noise is (T - s_i/s)·z/n, T lower triangular ones.

    Args:
        batch: With at least one cut.
        size: n.
    """
    cells, shares, blocks = [], [], []
    for stage in batch.stages:
        total, sums = float(stage.counts.sum()), np.cumsum(stage.counts)[:-1]
        each = np.clip(sums / (total if total > 0 else size), 0.0, 1.0)
        below = np.tri(len(sums), len(sums) + 1) - each[:, None]
        cells.append(stage.cuts)
        shares.append((sums + (size - total) * each) / size)
        blocks.append(below @ below.T * max(stage.variance, LEAST_VARIANCE) / size**2)
    cuts, noise = np.concatenate(cells), diagonal(blocks)
    order = np.argsort(cuts, kind="stable")
    noise = noise[np.ix_(order, order)]
    return Shares(cuts[order], np.concatenate(shares)[order], noise, np.argsort(order))


def diagonal(blocks: Iterable[FloatArray]) -> FloatArray:
    """A matrix with these blocks along its diagonal."""
    blocks = list(blocks)
    ends = np.cumsum([0, *(len(each) for each in blocks)])
    whole = np.zeros((ends[-1], ends[-1]))
    for block, first, last in zip(blocks, ends, ends[1:], strict=False):
        whole[first:last, first:last] = block
    return whole
