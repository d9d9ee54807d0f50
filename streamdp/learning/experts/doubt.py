"""Belief about a batch with as much doubt as past releases leave: for intervals alone.

Curves are learned from few and noisy releases, and what learns may be surer of them than releases
allow. So the error of every curve is taken to be a Brownian bridge, as that of a Dirichlet process
is, with the variance that so many counts leave of it. It runs on the believed distribution mixed
with a little of a Cauchy law, since beyond the last records that were seen there may be others.

Two things of a release say where curves are wrong: what it makes of such an error, and the records
that a cell has more or fewer than was believed, which may lie anywhere within it.

References:
    Ferguson 1973 (a Dirichlet process varies about its mean as a bridge does).
"""

from __future__ import annotations

import numpy as np

from streamdp.learning.experts.belief import SIZES, TINY, After, Belief, Known, bridge
from streamdp.learning.experts.evidence import Evidence
from streamdp.types import FloatArray, Grid, IntArray

FIRST = 0.3
"""Variance of the bridge before any release: that of a distribution function is below one."""

REMEMBERED = 5.7
"""Releases that curves rest on at most: a mean that goes .3 of the way to each has the noise of so
many."""

TIMES = 10.0
"""Variance of the bridge, over that of the noise which is left in so many counts."""

HEAVY = 0.05
"""Share of a Cauchy law in the distribution on which the bridge runs."""

BEYOND = 2.0 ** np.arange(-1, 10)
"""Places beyond the believed ones at which it is looked at, in half widths."""

WITHIN = 0.1
"""Part of the records of a cell that may lie anywhere within it, squared."""

LEAST = 1e-9
"""Share of the records that is told from none."""


def doubted(before: Belief, evidence: Evidence, after: After) -> Known:
    """Belief about a batch after its release, with deviations that hold the truth.

    Args:
        before: The belief before the release.
        evidence: The release.
        after: What the belief became by it.
    """
    places, shares, variances = _beyond(after.known, before.grid)
    distribution = after.known.distribution()
    away = (places - distribution.centre) / distribution.width
    heavy = (1.0 - HEAVY) * shares + HEAVY * (0.5 + np.arctan(away) / np.pi)
    at = np.searchsorted(places, evidence.cells).clip(max=len(places) - 1)
    size, doubt = float(after.sizes @ SIZES**2), _doubt(before, evidence)
    among = size * bridge(shares, shares[at]) + doubt * bridge(heavy, heavy[at])
    gains = among @ np.linalg.inv(among[at] + evidence.noise + TINY * np.eye(len(at)))
    usual = after.weights @ before.shares(places)
    found = usual + gains @ (evidence.shares - usual[at])
    whole = size * shares * (1.0 - shares) + doubt * heavy * (1.0 - heavy)
    left = np.maximum(whole - (gains * among).sum(axis=1), variances)
    left += (found - shares) ** 2 + _surplus(before, evidence, after.known, places)
    return Known(places, shares, np.sqrt(left))


def _beyond(known: Known, grid: Grid) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Places, shares and variances of what is known, and of places beyond it on the grid."""
    reach, cells = BEYOND * known.distribution().width, known.cells
    low = np.unique(np.floor(cells[0] - reach).clip(min=grid.lower))
    high = np.unique(np.ceil(cells[-1] + reach).clip(max=grid.upper))
    low, high = low[low < cells[0]], high[high > cells[-1]]
    ends = len(low), len(high)
    shares = np.pad(known.shares, ends, constant_values=(0.0, 1.0))
    return np.concatenate((low, cells, high)), shares, np.pad(known.deviations**2, ends)


def _doubt(before: Belief, evidence: Evidence) -> float:
    """Variance of the bridge, as far as so many releases show it."""
    cells = len(np.unique(evidence.cells)) + 1
    told = min(before.releases, REMEMBERED) / (TIMES * cells * evidence.unit)
    return 1.0 / (1.0 / FIRST + told)


def _surplus(before: Belief, evidence: Evidence, known: Known, places: FloatArray) -> FloatArray:
    """Variance of where records lie that cells have beyond, or short of, what was believed."""
    cuts, found = np.unique(evidence.cells), known.distribution()
    cell, ends = np.searchsorted(cuts, places), np.concatenate((places[:1], cuts, places[-1:]))
    usual, now = (
        np.concatenate(([0.0], each.share(cuts), [1.0])) for each in (before.marginal, found)
    )
    believed = _halfway(before.marginal.share(places), usual, cell)
    either = np.maximum(_halfway(found.share(places), now, cell), _halfway(places, ends, cell))
    surplus, within = np.diff(now - usual) ** 2, WITHIN * np.diff(now) ** 2
    return np.asarray(surplus[cell] * believed + within[cell] * either)


def _halfway(values: FloatArray, ends: FloatArray, cell: IntArray) -> FloatArray:
    """a(1 - a) of the part a of its cell at which each value lies: most in the middle."""
    part = (values - ends[cell]) / np.maximum(np.diff(ends)[cell], LEAST)
    return np.asarray(part.clip(0.0, 1.0) * (1.0 - part.clip(0.0, 1.0)))
