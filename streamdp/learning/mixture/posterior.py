"""Posterior of the quantiles of a batch after its release, from which intervals follow.

A batch has the distribution function F_i + G + H + L: F_i one of many curves, G what a batch does
about its curve, of some size s, H the error of the curve, since few and noisy releases taught it, L
how the records between two cuts lie. Given i and s, G + H is Gaussian with the prior covariance

    (s² + extra_sampling_variance)·B(u, v) + d²·B(h(u), h(v)),    B(u, v) = min(u, v) - u·v,

u and v values of the posterior-mean cdf, h(u) = .7·u + .3·C with C the cdf of a Cauchy
distribution about its median, for there may be records beyond the last that were seen. d² is the
variance of the curves' error after so many releases. It falls with them everywhere alike, but how
a share g = u_1 - u_0 of the records lies between two cuts is not counted, and on the day of a shift
not known: all of them at one place would make Var L = (u - u_0)·(u_1 - u). So

    Var L = c(g)·(u - u_0)·(u_1 - u),    c(g) = g/.1 - 1 within [0, 1],

none where a gap holds no more than was planned: cuts of other batches lay there. L is zero at the
cuts, so counts say nothing of it. There is none where quantiles were drawn. Noisy shares of a
release are linear in F. So the posterior is a mixture of normal distributions, one a curve and
size, and P(Q_q <= x) = P(F(x) >= q) for each quantile. Given a single draw (`draw`) G + H is no
normal law at its cell; the one of the same mean and variance stands for it. From releases alone:
free.

References:
    Rasmussen & Williams 2006, chapter 2 (regression with Gaussian processes).
    Ferguson 1973 (a Dirichlet process varies about its mean as a bridge does).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, sqrt
from typing import TYPE_CHECKING, Self

import numpy as np

from streamdp.learning.mixture.curves import FLOOR, VARIANCES, bridge
from streamdp.types import FloatArray, IntArray

if TYPE_CHECKING:
    from streamdp.learning.mixture.belief import Belief, PosteriorMean
    from streamdp.learning.mixture.evidence import Evidence

LEAST_WEIGHT = 1e-4
"""Weight of a curve and size that is left out of the mixture."""

FIRST_DOUBT = 0.3
"""Variance d² before any release: that of a distribution function is below one."""

EFFECTIVE_RELEASES = 5.7
"""Effective number of releases that curves rest on, at most: that of an exponential average with
rate .3, (2 - .3)/.3."""

ERROR_PER_NOISE = 10.0
"""d² over the variance of the noise that is left in so many counts."""

HEAVY = 0.3
"""Share of a Cauchy law in the distribution on which H runs."""

PLANNED_GAP = 0.1
"""Share of the records between two cuts of a batch as it was predicted. In a gap of as many, past
cuts show the shape; in one of twice as many or more nothing is taken to be known of it."""

BEYOND = 2.0 ** np.arange(-1, 10)
"""Distances of cells beyond the tabulated ones, in half widths."""

LEAST_DEVIATION = 1e-5
"""Least standard deviation of a cdf value."""

RISE = 1e-13
"""Slope between two cells where a probability is the same, so that it can be inverted."""

_STEPS = 256
_NORMAL = np.array([(1.0 + erf(each / _STEPS / sqrt(2.0))) / 2.0 for each in range(-1280, 1281)])
"""Distribution function of the normal law within five deviations, at steps of 1/256."""


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Posterior of the cdf at some cells: a mixture of normal distributions.

    Args:
        cells: Cells, increasing, shape (p,).
        weights: Of the components, shape (n,).
        means: Shape (n, p).
        deviations: Shape (n, p).
        ends: First and last cell of the grid.
        nowhere: Whether the batch may well have hardly any records: quantiles lie anywhere then.
    """

    cells: FloatArray
    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    ends: tuple[int, int]
    nowhere: bool

    @classmethod
    def of(cls, before: Belief, evidence: Evidence, known: PosteriorMean) -> Self:
        """Return the posterior after a release.

        Args:
            before: The belief before it.
            evidence: The release.
            known: What is believed of the batch since: its places and believed shares.
        """
        cells, u = _beyond(known, before)
        law = known.distribution()
        away = (cells - law.centre) / law.half_width
        h = (1.0 - HEAVY) * u + HEAVY * (0.5 + np.arctan(away) / np.pi)
        at = np.searchsorted(cells, evidence.cells).clip(max=len(cells) - 1)
        d2, g_variances = doubt(before, evidence), VARIANCES + evidence.extra_sampling_variance
        shared = g_variances * bridge(u, u[at]) + d2 * bridge(h, h[at])
        inverse = np.linalg.inv(shared[:, at] + evidence.noise + FLOOR * np.eye(len(at)))
        off = evidence.y - before.cdf(evidence.cells)
        if evidence.draw is None:
            kernel = None
            weights = before.weighed(off, np.asarray(inverse))
        else:
            kernel = evidence.draw.kernel(g_variances[:, 0, 0] + d2)
            weights = before.weighed_by_draw(evidence.draw, kernel)
        weights = before.explained(weights)
        kept = weights.sum(axis=1) > LEAST_WEIGHT
        likely, curves, off = weights[kept], before.only(kept).cdf(cells), off[kept]
        gains = shared @ inverse
        whole = g_variances[:, :, 0] * (u * (1.0 - u)) + d2 * (h * (1.0 - h))
        if evidence.number is not None:
            whole += _between(u, np.unique(at))
        curve, size = np.nonzero(likely > LEAST_WEIGHT)
        if kernel is None:
            left = (whole - np.einsum("kpc,kpc->kp", gains, shared))[size]
            means = np.empty((len(curve), len(cells)))
            for k, gain in enumerate(gains):
                of = size == k
                means[of] = curves[curve[of]] + off[curve[of]] @ gain.T
        else:
            levels = before.cdf(evidence.cells)[kept, 0]
            moved = kernel.at(kernel.means, levels)[curve, size][:, None]
            told = 1.0 - kernel.at(kernel.left, levels)[curve, size][:, None]
            own = np.maximum(shared[:, at[0]], FLOOR)
            slopes = (shared[:, :, 0] / own)[size]
            means = curves[curve] + moved * slopes
            left = whole[size] - told * own[size] * slopes**2
        each, left = likely[curve, size], np.sqrt(np.maximum(left, LEAST_DEVIATION**2))
        ends, number = (before.grid.lower, before.grid.upper), evidence.number
        nowhere = number is not None and number.hardly_any
        return cls(cells, each / each.sum(), means, left, ends, nowhere)

    def interval(self, targets: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return ends between which quantiles lie with a probability, each shape (m,).

        Args:
            targets: Quantiles.
            level: The probability.
        """
        lower, upper = (float(each) for each in self.ends)
        if self.nowhere:
            return np.full(len(targets), lower), np.full(len(targets), upper)
        first, last = self.cells[0] - 1.0, self.cells[-1] + 1.0
        at = np.concatenate(([max(lower, first)], self.cells, [min(upper, last)]))
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        found, inverse = [], 1.0 / self.deviations
        means = self.means * inverse
        for target in targets.tolist():
            below = self.weights @ _normal(means - target * inverse)
            rising = np.concatenate(([0.0], np.maximum.accumulate(below), [1.0]))
            found.append(np.interp(tails, rising + RISE * np.arange(len(rising)), at))
        low, high = np.array(found).T
        return low, high


def _beyond(known: PosteriorMean, before: Belief) -> tuple[FloatArray, FloatArray]:
    """Return the tabulated cells and cdf values, and cells beyond them on the grid."""
    reach, cells = BEYOND * known.distribution().half_width, known.cells
    low = np.unique(np.floor(cells[0] - reach).clip(min=before.grid.lower))
    high = np.unique(np.ceil(cells[-1] + reach).clip(max=before.grid.upper))
    low, high = low[low < cells[0]], high[high > cells[-1]]
    shares = np.pad(known.levels, (len(low), len(high)), constant_values=(0.0, 1.0))
    return np.concatenate((low, cells, high)), shares


def doubt(before: Belief, evidence: Evidence) -> float:
    """Return d², the prior variance of the curves' error after `before.releases` releases."""
    bins = len(np.unique(evidence.cells)) + 1
    told = min(before.releases, EFFECTIVE_RELEASES) / (ERROR_PER_NOISE * bins * evidence.unit)
    return 1.0 / (1.0 / FIRST_DOUBT + told)


def _between(u: FloatArray, cuts: IntArray) -> FloatArray:
    """Return Var L, the variance of the cdf between cuts, given its values at them.

    Args:
        u: Values of the posterior-mean cdf, shape (p,).
        cuts: Where records were counted, as indices of it, increasing.
    """
    ends = np.concatenate(([0.0], u[cuts], [1.0]))
    gap = np.searchsorted(cuts, np.arange(len(u)), side="right")
    low, high = ends[gap], ends[gap + 1]
    unknown = ((high - low) / PLANNED_GAP - 1.0).clip(0.0, 1.0)
    return np.asarray(unknown * (u - low) * (high - u))


def _normal(values: FloatArray) -> FloatArray:
    """Return the normal cdf, off by a thousandth at most."""
    at = (values * _STEPS + (5 * _STEPS + 0.5)).astype(np.int64)
    return np.take(_NORMAL, at, mode="clip")
