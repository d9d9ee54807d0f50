"""The distribution that batches have in common: their pooled counts.

Each batch adds a distribution function F_t. In the first round it is linear between its own cuts
and falls off exponentially beyond them. In the next ones it is the mean of the round before and
what the batch's shares say beside it, interpolated in shares of that mean and zero at both ends.
Beyond its outermost cuts a batch that lies elsewhere than the mean keeps its own tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.answers.counted import Shares
from streamdp.types import FloatArray

MOST_CELLS = 600
_ROUNDS = 1
_TAIL = np.array([0.01, 0.03, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 4.0])
_INSIDE = 1e-6

TRUST = 0.5
"""Part of a tail's mass by which the base's must be off for the batch's own tail to count half."""


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """A distribution function of cells, linear between points.

    Args:
        cells: Increasing, shape (p,).
        shares: At or below each, in (0, 1) and increasing, shape (p,).
        cuts: First and last point that is a cut; those before and behind are of guessed tails.
    """

    cells: FloatArray
    shares: FloatArray
    cuts: slice

    @property
    def cut_shares(self) -> FloatArray:
        """Shares at cuts."""
        return self.shares[self.cuts]

    def __call__(self, cells: FloatArray) -> FloatArray:
        """Shares at or below cells."""
        return np.interp(cells, self.cells, self.shares)

    def places(self, shares: FloatArray) -> FloatArray:
        """Cells, not rounded, up to which shares lie."""
        return np.interp(shares, self.shares, self.cells)


def daily(batches: Sequence[Shares], weights: FloatArray) -> Base:
    """The mean of distributions that are linear between the cuts of each batch: the first round.

    Args:
        batches: At least one.
        weights: Their numbers of records, shape (batches,).
    """
    cuts = np.unique(np.concatenate([each.cells for each in batches]))
    if len(cuts) > MOST_CELLS:
        cuts = np.unique(cuts[np.linspace(0, len(cuts) - 1, MOST_CELLS).astype(int)])
    tail = max(float(cuts[-1] - cuts[0]), 1.0) * _TAIL
    cells = np.concatenate((cuts[0] - tail[::-1], cuts, cuts[-1] + tail))
    inner = slice(len(tail), len(tail) + len(cuts))
    each = weights / weights.sum()
    parts = (weight * batch.cdf(cells) for batch, weight in zip(batches, each, strict=True))
    return Base(cells, _increasing(np.asarray(sum(parts))), inner)


def pooled(batches: Sequence[Shares], weights: FloatArray) -> Base:
    """The distribution of the records of some batches together.

    Args:
        batches: At least one.
        weights: Their numbers of records, shape (batches,).
    """
    base, each = daily(batches, weights), weights / weights.sum()
    for _ in range(_ROUNDS):
        parts = (
            weight * beside(base, batch, base.shares)
            for batch, weight in zip(batches, each, strict=True)
        )
        mean = base.shares + sum(parts)
        base = Base(base.cells, _increasing(np.asarray(mean)), base.cuts)
    return base


def beside(base: Base, batch: Shares, places: FloatArray) -> FloatArray:
    """How far the distribution of a batch lies above the base, at places in shares of the base."""
    at = base(batch.cells)
    ends = np.concatenate(([0.0], at, [1.0]))
    off = np.concatenate(([0.0], batch.shares - at, [0.0]))
    found = np.interp(places, ends, off)
    cells = base.places(places)
    below, above = cells < batch.cells[0], cells > batch.cells[-1]
    outside = below | above
    # How far the base is off in mass beyond each outermost cut, beside that of the batch.
    mass = np.where(below, batch.shares[0], 1.0 - batch.shares[-1])[outside]
    moved = mass - np.where(below, at[0], 1.0 - at[-1])[outside]
    own = moved**2 / (moved**2 + (TRUST * mass) ** 2 + 1e-12)
    found[outside] += own * (batch.cdf(cells[outside]) - places[outside] - found[outside])
    return np.asarray(found)


def _increasing(shares: FloatArray) -> FloatArray:
    """The nearest increasing function, as the mean of the least above and the largest below."""
    above = np.maximum.accumulate(shares)
    below = np.minimum.accumulate(shares[::-1])[::-1]
    inside = np.clip((above + below) / 2, _INSIDE, 1.0 - _INSIDE)
    steps = np.arange(len(inside)) * 1e-12
    return np.asarray(inside + steps)
