"""Belief about the distribution of one batch: curves, and what a batch does about its curve.

A batch is taken to have the distribution function F_i + G, i one of many curves. G is a Gaussian
process of mean zero, a Brownian bridge of some deviation s on the marginal distribution: its
covariance between two places is s²·(min(u, v) - u·v) for their marginal shares u and v. It stands
for the records being a sample, and for all that no curve has. Which curve, and which of `SIZES` is
s, is not known: each has a weight. Noisy shares of the records are linear in F_i + G, so the
weights after a release, and G under each of them, follow exactly.

References:
    Rasmussen & Williams 2006, chapter 2 (regression with Gaussian processes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamdp.learning.experts.curves import LEVELS, Curves
from streamdp.learning.experts.distribution import Distribution
from streamdp.learning.experts.evidence import Evidence, Records
from streamdp.types import FloatArray, Grid

SIZES = np.array([0.01, 0.03, 0.07, 0.15, 0.3, 0.6])
"""Deviations s that are held."""

PLACES = 160
"""About as many places at which a batch's distribution is kept."""

HARDLY = 1e-5
"""Weight of a curve that decides no place."""

ROUNDS = 2
"""Rounds of reading a release: the marginal distribution is that after the last one."""

LEAST = 1e-9
"""Share between two places at least, so that marginal shares increase."""


@dataclass(frozen=True)
class Belief:
    """Belief before a release.

    Args:
        grid: Public cells.
        groups: Curves.
        weights: Of all curves, in the order of the groups; they sum to one. Shape (i,).
        sizes: Weights of `SIZES`; they sum to one.
        records: How many there may be.
    """

    grid: Grid
    groups: tuple[Curves, ...]
    weights: FloatArray
    sizes: FloatArray
    records: Records

    def shares(self, cells: FloatArray) -> FloatArray:
        """Of the records at or below some cells, by curve; shape (i, c)."""
        return np.concatenate([group.shares(cells) for group in self.groups])

    @cached_property
    def marginal(self) -> Distribution:
        """Of a record of the batch."""
        at = self.places(np.empty(0))
        return _distribution(at, self.weights @ self.shares(at))

    @cached_property
    def _support(self) -> FloatArray:
        """Places that share the marginal distribution out evenly."""
        between = (LEVELS[1:] + LEVELS[:-1]) / 2.0
        parts = np.diff(np.concatenate(([0.0], between, [1.0])))
        places = np.concatenate([group.places() for group in self.groups])
        kept = self.weights > HARDLY
        flat = places[kept].clip(self.grid.lower - 1, self.grid.upper).ravel()
        order = np.argsort(flat)
        sums = np.cumsum((self.weights[kept, None] * parts).ravel()[order])
        wanted = np.linspace(0.001, 0.999, PLACES) * sums[-1]
        return np.asarray(flat[order][np.searchsorted(sums, wanted).clip(max=len(flat) - 1)])

    def quantiles(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Believed quantiles and the mean distance of the curves' from them, each shape (m,)."""
        middles = self.marginal.place(targets)
        places = np.concatenate([group.places() for group in self.groups])
        each = np.array([np.interp(targets, LEVELS, row) for row in places])
        return middles, self.weights @ np.abs(each - middles)

    def places(self, cells: FloatArray) -> FloatArray:
        """Cells at which the distribution is kept, some of them given; increasing."""
        support = self._support
        found = np.unique(np.concatenate((np.floor(support), cells)))
        return found[(found >= self.grid.lower) & (found < self.grid.upper)]

    def after(self, evidence: Evidence) -> After:
        """The belief after a release."""
        at = self.places(evidence.cells)
        curves, seen = self.shares(at), self.shares(evidence.cells)
        off = evidence.shares - seen
        mean = self.weights @ curves
        for _ in range(ROUNDS):
            marginal = Distribution(*_rising(at, mean))
            here, there = marginal.share(at), marginal.share(evidence.cells)
            bridge, carried = _bridge(there, there), _bridge(here, there)
            spreads = SIZES[:, None, None] ** 2 * bridge + evidence.noise
            inverse = np.asarray(np.linalg.inv(spreads))
            pulled = off @ inverse
            logs = -0.5 * (pulled * off).sum(axis=2) - 0.5 * np.linalg.slogdet(spreads)[1][:, None]
            logs = logs.T + np.log(self.weights)[:, None] + np.log(self.sizes)
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            gains = SIZES[:, None, None] ** 2 * carried @ inverse
            moved = np.einsum("kpc,kc->p", gains, np.einsum("ik,ic->kc", weights, off))
            mean = (weights.sum(axis=1) @ curves + moved).clip(0.0, 1.0)
            mean = np.maximum.accumulate(mean)
        left = SIZES[:, None] ** 2 * (here * (1.0 - here)) - (
            gains * SIZES[:, None, None] ** 2 * carried
        ).sum(axis=2)
        # curves times sizes, at each place
        second = np.einsum("k,kp->p", weights.sum(axis=0), np.maximum(left, 0.0))
        for size, gain in zip(weights.T, gains, strict=True):
            second += size @ (curves + off @ gain.T - mean) ** 2
        known = Known(at, mean, np.sqrt(second))
        return After(known, weights.sum(axis=1), weights.sum(axis=0), evidence.records)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is believed of a batch after its release.

    Args:
        cells: Increasing, shape (p,).
        shares: Of the records at or below each, non-decreasing, shape (p,).
        deviations: Of what they are off by, shape (p,).
    """

    cells: FloatArray
    shares: FloatArray
    deviations: FloatArray

    def distribution(self) -> Distribution:
        """The believed distribution."""
        return _distribution(self.cells, self.shares)

    def ends(self, targets: FloatArray, reach: float) -> tuple[FloatArray, FloatArray]:
        """Cells between which quantiles lie, in reach of the deviations; each shape (m,)."""
        away = reach * self.deviations
        high = np.maximum.accumulate((self.shares + away).clip(0.0, 1.0))
        low = np.minimum.accumulate((self.shares - away).clip(0.0, 1.0)[::-1])[::-1]
        first, last = (_distribution(self.cells, each).place(targets) for each in (high, low))
        return first, last


@dataclass(frozen=True, slots=True, eq=False)
class After:
    """Belief after a release.

    Args:
        known: Of the batch.
        weights: Of the curves, shape (i,).
        sizes: Of `SIZES`.
        records: Believed number of records.
    """

    known: Known
    weights: FloatArray
    sizes: FloatArray
    records: float


def _bridge(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray(np.minimum.outer(one, other) - np.multiply.outer(one, other))


def _rising(cells: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The function with ends, a place below the first cell and one above the last."""
    first = cells[0] - max(cells[1] - cells[0] if len(cells) > 1 else 1.0, 1.0)
    last = cells[-1] + max(cells[-1] - cells[-2] if len(cells) > 1 else 1.0, 1.0)
    rising = shares * (1.0 - 2e-6) + 1e-6
    return np.concatenate(([first], cells, [last])), np.concatenate(([0.0], rising, [1.0]))


def _distribution(cells: FloatArray, shares: FloatArray) -> Distribution:
    return Distribution(*_rising(cells, shares))
