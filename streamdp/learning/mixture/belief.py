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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from streamdp.learning.mixture.curves import Curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.posterior import TINY, VARIANCES, Posterior, bridge
from streamdp.learning.mixture.records import Number, Records
from streamdp.types import BoolArray, FloatArray, Grid

LEVELS = np.concatenate(([0.0, 0.01, 0.025], np.arange(2, 39) / 40.0, [0.975, 0.99, 1.0]))
"""Shares at which curves are looked at, to find where they lie."""

_BETWEEN = np.concatenate(([0.0], (LEVELS[1:] + LEVELS[:-1]) / 2.0, [1.0]))
PARTS = np.diff(_BETWEEN)
"""Share of the records about each of them."""

PLACES = 160
"""About as many places at which a batch's distribution is kept."""

HARDLY = 1e-5
"""Weight of a curve that decides no place."""

LEVELLED = 0.1
"""Part of the marginal distribution in that which a release bends: a curve alone may be flat where
the records turn out to lie."""

FARTHEST = 10.0
"""How much farther from a belief a release alone may lie than what both make of it."""

BROAD = "broad"
"""Name of the curves that rest on nothing but a guess."""

SURPRISE = 3.0
"""Deviations of a belief beyond which a release says that it was wrong."""

ROUNDS = 2
"""Rounds of reading a release: the marginal distribution is that after the last one."""


@dataclass(frozen=True)
class Belief:
    """Belief before a release.

    Args:
        grid: Public cells.
        groups: Curves by name, those about the guess last.
        weights: Of all curves, in the order of the groups; they sum to one. Shape (i,).
        sizes: Weights of `SIZES`; they sum to one.
        records: How many there may be.
        releases: How many there were.
    """

    grid: Grid
    groups: Mapping[str, Curves]
    weights: FloatArray
    sizes: FloatArray
    records: Records
    releases: int

    @cached_property
    def marginal(self) -> Distribution:
        """Distribution of a record of the batch."""
        at = self._support(self.weights, np.empty(0))
        return Distribution.about(at, self.weights @ self.shares(at))

    @property
    def learned(self) -> int:
        """How many curves releases taught; those about the guess follow."""
        return len(self.weights) - len(self.groups[BROAD].moves)

    def shares(self, cells: FloatArray, kept: BoolArray | None = None) -> FloatArray:
        """Shares of the records at or below some cells, by curve; shape (i, c)."""
        return np.concatenate([group.shares(cells) for group in self._groups(kept)])

    def places(self, shares: FloatArray, kept: BoolArray | None = None) -> FloatArray:
        """Where each curve reaches some shares, shape (i, s)."""
        return np.concatenate([group.places(shares) for group in self._groups(kept)])

    def after(self, evidence: Evidence) -> After:
        """The belief after a release."""
        seen = self.shares(evidence.cells)
        off, marginal = evidence.shares - seen, self.marginal
        noise = evidence.noise + TINY * np.eye(len(evidence.cells))
        sizes = VARIANCES + evidence.fewer
        for _ in range(ROUNDS):
            there = marginal.share(evidence.cells)
            among = sizes * bridge(there, there)
            inverse = np.asarray(np.linalg.inv(among + noise))
            weights = self.weighed(off, inverse)
            of_curve = weights.sum(axis=1)
            kept = of_curve > HARDLY
            likely = weights[kept] / weights[kept].sum()
            pulled = np.einsum("ik,ic,kcd->kd", likely, off[kept], inverse)
            at = self._support(of_curve, evidence.cells)
            of, before = likely.sum(axis=1), likely.sum(axis=1) @ seen[kept]
            known = before + np.einsum("kcd,kd->c", among, pulled)
            curve = (1.0 - LEVELLED) * before + LEVELLED * there
            shares = (1.0 - LEVELLED) * (of @ self.shares(at, kept))
            mean = _through(shares + LEVELLED * marginal.share(at), curve, known)
            marginal = Distribution.about(at, mean)
        return After(self, evidence, Known(at, mean), of_curve, weights.sum(axis=0))

    def weighed(self, off: FloatArray, inverse: FloatArray) -> FloatArray:
        """Weights of curves and sizes once shares are seen, shape (i, k); they sum to one.

        Args:
            off: Of what was seen from the curves, shape (i, c).
            inverse: Of the covariance of what is seen, by size, shape (k, c, c).
        """
        logs = (
            -0.5 * ((off @ inverse) * off).sum(axis=2)
            + 0.5 * np.linalg.slogdet(inverse)[1][:, None]
        )
        logs = logs.T + np.log(np.maximum(self.weights, TINY))[:, None] + np.log(self.sizes)
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def _support(self, weights: FloatArray, cells: FloatArray) -> FloatArray:
        """Cells that share the records of weighted curves out evenly, and some given ones."""
        kept = weights > HARDLY
        flat = self.places(LEVELS, kept).clip(self.grid.lower - 1, self.grid.upper).ravel()
        order = np.argsort(flat)
        sums = np.cumsum((weights[kept, None] * PARTS).ravel()[order])
        wanted = np.linspace(0.001, 0.999, PLACES) * sums[-1]
        inner = flat[order][np.searchsorted(sums, wanted).clip(max=len(flat) - 1)]
        first, last = self.grid.lower, max(self.grid.upper - 1, self.grid.lower)
        return np.unique(np.concatenate((np.floor(inner), cells)).clip(first, last))

    def _groups(self, kept: BoolArray | None) -> tuple[Curves, ...]:
        """All curves, or some of them."""
        groups = tuple(self.groups.values())
        if kept is None:
            return groups
        parts = np.split(kept, np.cumsum([len(group.moves) for group in groups])[:-1])
        pairs = zip(groups, parts, strict=True)
        return tuple(replace(group, moves=group.moves[part]) for group, part in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Belief about a batch after its release.

    Args:
        cells: Increasing, shape (p,).
        shares: Of the records at or below each, non-decreasing, shape (p,).
    """

    cells: FloatArray
    shares: FloatArray

    def distribution(self) -> Distribution:
        """The believed distribution."""
        return Distribution.about(self.cells, self.shares)


@dataclass(frozen=True, eq=False)
class After:
    """Belief after a release.

    Args:
        before: Belief before it.
        evidence: The release.
        known: Of the batch.
        weights: Of the curves, shape (i,).
        sizes: Of `SIZES`.
    """

    before: Belief
    evidence: Evidence
    known: Known
    weights: FloatArray
    sizes: FloatArray

    @cached_property
    def posterior(self) -> Posterior:
        """Posterior of the quantiles of the batch."""
        return Posterior.of(self.before, self.evidence, self.known)

    @property
    def number(self) -> Number | None:
        """Posterior of the number of records; None where nothing was counted."""
        return self.evidence.number

    @property
    def broad(self) -> float:
        """Weight of the curves about the guess: how likely nothing that was learned holds."""
        return float(self.weights[self.before.learned :].sum())

    def news(self, values: FloatArray, found: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What the release alone shows of some quantities of a batch, without the belief before it.

        The belief about a quantity is taken to be normal before and after the release; the release
        is the normal likelihood that leads from one to the other.

        Args:
            values: The quantities of each curve, shape (i, k).
            found: The same as they are believed after the release, shape (k,).

        Returns:
            Values and variances, each shape (k,); at most FARTHEST times as far from the belief
            before as that after it. Of a release far outside the belief before, which was wrong
            then, they are what is believed after it.

        References:
            Minka 2001 (expectation propagation: the approximate likelihood of one observation).
        """
        before = self.before.weights
        mean = before @ values
        prior = before @ (values - mean) ** 2 + TINY
        here = self.weights @ values
        now = self.weights @ (values - here) ** 2 + TINY
        left = np.minimum(now, prior)
        variances = 1.0 / np.maximum(1.0 / left - 1.0 / prior, TINY)
        gain = np.minimum((variances + prior) / prior, FARTHEST)
        surprised = (found - mean) ** 2 > SURPRISE**2 * prior
        shown = np.where(surprised, found, mean + gain * (found - mean))
        return shown, np.where(surprised, now, variances)


def _through(shares: FloatArray, curve: FloatArray, known: FloatArray) -> FloatArray:
    """The shares of a curve, changed so that it goes through what is known at the cuts.

    Args:
        shares: Of the curve at some cells, shape (p,).
        curve: The same at the cuts, shape (c,).
        known: There, shape (c,).
    """
    order = np.argsort(curve, kind="stable")
    rising = np.concatenate(([0.0], np.maximum.accumulate(known[order].clip(0.0, 1.0)), [1.0]))
    return np.interp(shares, np.concatenate(([0.0], curve[order], [1.0])), rising)
