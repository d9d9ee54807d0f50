"""Choose where a batch is cut, and how the price is split over stages, for least expected error.

A batch is cut at fixed levels of its predictive distribution. One stage has all of the price, so
the least noise; but between its cuts a quantile lies where curves say, and they may be wrong. A
later stage cuts at the same levels of the distribution as the stages before have shown it, so that
little is left open. Both follow from past releases and public facts alone: any function of these is
private enough (`mechanisms/PRIVACY.md` 3.10).

Beside the counts, two things depend on the levels: `online-gradient` has a prior for each of them,
so its signature names them (`online_gradient.learner`), and `expected_errors` takes them to be
about evenly spaced.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from streamdp.learning.mixture.belief import Belief
from streamdp.learning.mixture.curves import SIZES, bridge
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.records import LEAST_VARIANCE
from streamdp.types import FloatArray

EVEN = np.arange(1, 10) / 10.0
"""Levels at which any batch is cut, whatever quantiles are released.

A count has the same noise whatever the number of bins, but the cdf at a cut is a sum of counts: its
variance grows with their number, while the error between cuts falls with it.
"""

OUTER = 0.5
"""A tail quantile q also has a cut at OUTER·q; in the upper tail at 1 - OUTER·(1 - q)."""

PLANS = (
    (Fraction(1),),
    (Fraction(1, 4), Fraction(3, 4)),
    (Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)),
)
"""Shares of the price, by stage."""

LEAST_WEIGHT = 1e-4
"""Weight of a curve that decides nothing."""

REMAINING = 0.3
"""Part of a curve's squared error between two cuts that remains after the counts on either side,
which say which curve it is."""

ABOUT = 0.8
"""Mean distance of a normal law from its mean, in deviations."""

LEAST = 1e-9
"""Share of the records that is told from none."""


def cut_levels(targets: FloatArray) -> FloatArray:
    """Return the levels of the cuts: deciles, and two levels a quantile below .1 or above .9."""
    low, high = targets[targets < EVEN[0]], targets[targets > EVEN[-1]]
    tails = (low, low * OUTER, high, 1.0 - (1.0 - high) * OUTER)
    return np.unique(np.concatenate((EVEN, *tails)))


def cuts(believed: Distribution, levels: FloatArray) -> list[int]:
    """Return the cells at which the predictive cdf is nearest to the levels."""
    at = believed.quantile(levels)
    below, above = np.floor(at), np.ceil(at)
    nearer = levels - believed.cdf(below) < believed.cdf(above) - levels
    return [int(cell) for cell in np.where(nearer, below, above)]


def expected_errors(
    belief: Belief,
    targets: FloatArray,
    cuts: FloatArray,
    plans: tuple[tuple[Fraction, ...], ...],
    variance: Callable[[Fraction], float],
) -> list[float]:
    """Return Σ w_i · mean over q of √(V + R_iq) for each plan: its expected rank error.

    Args:
        belief: About the batch.
        targets: Quantiles.
        cuts: Of one stage, increasing.
        plans: Shares of the price.
        variance: Of the noise of a count that has a share of the price.
    """
    curves = belief.only(belief.weights > LEAST_WEIGHT)
    weights, at = curves.weights / curves.weights.sum(), curves.cdf(cuts)
    mean, size = weights @ at, float(belief.size_weights @ SIZES**2)
    off = at - mean
    prior = off.T @ (off * weights[:, None]) + size * bridge(mean, mean)
    # What unit noises of the bins do to shares sum_j/total: sum_j less F times the total.
    below = np.tri(len(cuts), len(cuts) + 1) - mean[:, None]
    noise = below @ below.T / belief.records.mean**2
    places = curves.quantiles(targets)
    curve_error, off_curve, prior_error = _between_cuts(
        belief.marginal, targets, cuts, at, places, mean
    )

    def posterior_variance(each: float) -> float:
        """Return the cdf's posterior variance, averaged over the cuts, for counts of this noise."""
        spread = prior + each * noise + LEAST * np.eye(len(cuts))
        return float(np.trace(prior - prior @ np.linalg.solve(spread, prior))) / len(cuts)

    errors = []
    gap = 1.0 / (len(cuts) + 1)
    for plan in plans:
        between, precision, after = curve_error + off_curve * size, 0.0, prior_error
        for stage, share in enumerate(plan):
            precision += 1.0 / max(variance(share), LEAST_VARIANCE)
            if stage:
                near = np.minimum(ABOUT * np.sqrt(after) / gap, 0.5)
                now = curve_error * np.minimum(1.0, after / prior_error)
                between = np.minimum(between, now + size * gap * near * (1.0 - near))
            after = posterior_variance(1.0 / precision) + between
        errors.append(float(weights @ np.sqrt(np.maximum(after, 0.0)).mean(axis=1)))
    return errors


def _between_cuts(
    believed: Distribution,
    targets: FloatArray,
    cuts: FloatArray,
    at: FloatArray,
    places: FloatArray,
    mean: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return expected squared errors of the cdf between the cuts of one stage.

    Args:
        believed: Distribution of the batch.
        targets: Quantiles, shape (m,).
        cuts: Shape (k,).
        at: Shares of the curves at the cuts, shape (i, k).
        places: Quantiles of the curves, shape (i, m).
        mean: Shares at the cuts, all curves together, shape (k,).

    Returns:
        By curve and quantile, each shape (i, m): as curves differ, as batches are off their curves
        with a size of one, and the squared distance from the believed quantile.
    """
    cell, ends = np.searchsorted(cuts, places), ((0, 0), (1, 1))
    of, whole = np.pad(at, ends, constant_values=((0, 0), (0, 1))), np.pad(mean, 1)
    whole[-1] = 1.0
    first = np.take_along_axis(of, cell, axis=1)
    held = np.maximum(np.take_along_axis(of, cell + 1, axis=1) - first, LEAST)
    inside = ((targets - first) / held).clip(0.0, 1.0)
    level = believed.cdf(places)
    rise = np.maximum(whole[cell + 1] - whole[cell], LEAST)
    guessed = ((level - whole[cell]) / rise).clip(0.0, 1.0)
    return (
        REMAINING * ((guessed - inside) * held) ** 2,
        held * inside * (1.0 - inside),
        np.maximum((level - targets) ** 2, LEAST),
    )
