"""Quantiles of batches in which released values have given ranks, whatever a batch's shape.

A batch's distribution function goes through all points (value, rank). Between them and beyond them
it follows laws of Tukey's family, and its records lie at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.quantile_tree.planning.rank_law import uniforms
from streamdp.priors.shapes import tukey
from streamdp.types import FloatArray, IntArray

TAILS = np.array([1.0, 0.14, 0.0, -0.25, -0.5])
"""Parameters of Tukey's laws: uniform, about normal, logistic, heavier, as heavy as Student's t
with two degrees of freedom."""

HEAVIEST = -0.9
"""A heavier law for a single released quantile: nothing tells of the tail but the guess."""

UNSEEN = (0.4, 40.0)
"""Times as large as the guess that a batch's spread may be where draws of a single quantile may lie
outside of a batch: no release shows it then, and the tail may be heavier than any guess."""

HOLLOW = 100.0
"""Times as thin as all of a stretch, per rank of noise and for a neighbour as dense, that a stretch
may be at one end: that the end of a hump is within the noise of a quantile is the rarer the less
noise there is, and the surer the wider the stretch is against the one beside it."""


@dataclass(frozen=True, slots=True)
class Lay:
    """Standard values at sampled ranks and at quantiles, independent of the released values.

    Args:
        standard: Values of the standard laws at the ranks of released values, shape (samples, m).
        there: Values of the standard laws at the quantiles, shape (samples, m).
        left: Index of the released value left of each quantile, or -1, shape (samples, m).
        noise: Deviations of the ranks of released values from the quantiles, shape (m,).
        deviation: Values of the standard laws one deviation above the median, shape (samples,).
        rise: Values of the standard laws for a unit of rank at the first quantile, same shape.
    """

    standard: FloatArray
    there: FloatArray
    left: IntArray
    noise: FloatArray
    deviation: FloatArray
    rise: FloatArray


def lay(targets: FloatArray, ranks: FloatArray, rows: int) -> Lay:
    """Simulate cdfs in which released values have such ranks, shape (samples, m)."""
    samples, m = ranks.shape
    noise = np.sqrt(((ranks - targets) ** 2).mean(axis=0))
    ranks = ranks.clip(0.5 / rows, 1.0 - 0.5 / rows)
    tails = TAILS if m > 1 else np.append(TAILS, HEAVIEST)
    tail = tails[(np.arange(samples) * 7 + 3) % len(tails)][:, None]
    wanted = _scattered(targets, ranks, rows)
    deviation = tukey(np.full(samples, 0.8413), tail[:, 0])
    rise = targets[0] ** (tail[:, 0] - 1.0) + (1.0 - targets[0]) ** (tail[:, 0] - 1.0)
    left = _places(ranks, wanted) - 1
    return Lay(tukey(ranks, tail), tukey(wanted, tail), left, noise, deviation, rise)


def _end_slopes(values: FloatArray, standard: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values per unit of the standard law over the first and the last stretch.

    Args:
        values: Shape (m,), m ≥ 2.
        standard: Values of the standard law at their ranks, shape (..., m).
    """
    far = min(len(values) - 1, 2)
    first = (values[far] - values[0]) / np.maximum(standard[..., far] - standard[..., 0], 1e-6)
    last = (values[-1] - values[-1 - far]) / np.maximum(
        standard[..., -1] - standard[..., -1 - far], 1e-6
    )
    return first, last


def through(released: FloatArray, lay: Lay) -> FloatArray:
    """Return quantiles of simulated cdfs through several released values and their ranks.

    Args:
        released: Values, shape (m,), m ≥ 2.
        lay: How they lie.
    """
    samples, m = lay.left.shape
    standard, there, left, row = lay.standard, lay.there, lay.left, np.arange(samples)
    first, last = _end_slopes(released, standard)
    slopes = np.where(left < 0, first[:, None], last[:, None])
    at, row, inner = left.clip(0, m - 1), row[:, None], left.clip(0, m - 2)
    rise = standard[row, inner + 1] - standard[row, inner]
    within = (released[inner + 1] - released[inner]) / np.maximum(rise, 1e-6)
    slopes = np.where((left >= 0) & (left < m - 1), within, slopes)
    found = released[at] + slopes * (there - standard[row, at])
    found = _gathered(found, released, lay, (first, last))
    return _moved_on(found, released, standard, there - standard, (first, last))


def _gathered(
    found: FloatArray, released: FloatArray, lay: Lay, ends: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Widen for batches whose records are concentrated at one end of a gap between values.

    A third of the batches have the records of each stretch near its left end, a third near its
    right. So a stretch that is far wider than the one beside it may be a hole between two humps.

    Args:
        found: Quantiles, shape (samples, m).
        released: Values, shape (m,).
        lay: How they lie.
        ends: Values per unit of the standard law over the first and the last stretch.
    """
    standard, there, left = lay.standard, lay.there, lay.left
    samples, m = left.shape
    row = np.arange(samples)[:, None]
    between = np.diff(released) / np.maximum(np.diff(standard), 1e-6)
    slopes = np.hstack((ends[0][:, None], between, ends[1][:, None]))
    inner, at = (left >= 0) & (left < m - 1), left.clip(0, m - 2)
    past, ahead = there - standard[row, at], standard[row, at + 1] - there
    own, before, after = between[row, at], slopes[row, at], slopes[row, at + 2]

    def thinnest(beside: FloatArray) -> FloatArray:
        return np.asarray(own * (1.0 + HOLLOW * lay.noise * own / np.maximum(beside, 1e-9)))

    from_left = np.maximum(
        released[at] + before * past, released[at + 1] - thinnest(before) * ahead
    )
    from_right = np.minimum(released[at + 1] - after * ahead, released[at] + thinnest(after) * past)
    side = row % 3
    found = np.where(inner & (side == 1), np.minimum(found, from_left), found)
    return np.where(inner & (side == 2), np.maximum(found, from_right), found)


def _moved_on(
    found: FloatArray,
    released: FloatArray,
    standard: FloatArray,
    away: FloatArray,
    ends: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Widen as if the density beside a value were the lower of those on its two sides.

    No farther than the next value, or than they are. Between released values a batch may have its
    records anywhere: beside a value it may be as thin as on the other side of it.

    Args:
        found: Quantiles, shape (samples, m).
        released: Values, shape (m,).
        standard: Values of the standard law at their ranks, shape (samples, m).
        away: How far from them the quantiles lie, by the standard law; same shape.
        ends: Values per unit of the standard law over the first and the last stretch.
    """
    between = np.diff(released) / np.maximum(np.diff(standard), 1e-6)
    slopes = np.hstack((ends[0][:, None], between, ends[1][:, None]))
    moved = released + np.maximum(slopes[:, :-1], slopes[:, 1:]) * away
    bounds = np.concatenate(([-np.inf], released, [np.inf]))
    down = np.minimum(found, np.maximum(moved, bounds[:-2]))
    up = np.maximum(found, np.minimum(moved, bounds[2:]))
    return np.where(away < 0.0, down, up)


def _places(ranks: FloatArray, targets: FloatArray) -> IntArray:
    """How many ranks of a row are not above each target of the row."""
    pairs = zip(ranks, targets, strict=True)
    return np.stack([each.searchsorted(wanted, side="right") for each, wanted in pairs])


def _scattered(targets: FloatArray, ranks: FloatArray, rows: int) -> FloatArray:
    """Targets moved as records move about between released values: a bridge, sd √(distance/n)."""
    samples, m = ranks.shape
    chance = uniforms("records", 2, samples, m)
    normal = np.sqrt(-2.0 * np.log(chance[0])) * np.cos(2.0 * np.pi * chance[1])
    ends = np.hstack((np.zeros((samples, 1)), ranks, np.ones((samples, 1))))
    place = _places(ranks, np.broadcast_to(targets, ranks.shape))
    row = np.arange(samples)[:, None]
    left, right = targets - ends[row, place], ends[row, place + 1] - targets
    deviation = np.sqrt((left * right / np.maximum(left + right, 1e-12) + 0.5 / rows) / rows)
    return np.asarray((targets + normal * deviation).clip(0.25 / rows, 1.0 - 0.25 / rows))
