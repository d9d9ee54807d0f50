"""Intervals of a belief: how far it may be off in ranks, carried to values along the quantiles.

A belief is normal in values, with the density at each quantile. Where a batch grows thinner, an
interval as wide on both sides misses on the thin one: so its ends are ranks, and become values on
the curve through all believed quantiles, with heavy tails beyond the outer ones. The wider of the
two ends counts.

A batch is a sample, and its quantile of rank q has a deviation of √(q(1-q)/n) ranks about that of
the population it comes from. Where records lie apart or are equal, noise hides such moves, and
releases say neither that there are some nor that there are none. A belief counts as no surer than
that, unless the quantile itself was measured better, and never surer than one record; its interval
reaches as far towards what was measured as such moves explain. Draws of an outermost quantile that
noise may carry out of the batch say little of how far in it lies: its interval reaches to the next
one. Quantiles so far out that many draws lie outside the batch follow the prior again and again:
their intervals reach to the next quantile further in, or to the guess.

References:
    Tukey's lambda distributions (`priors.shapes.tukey`), as for what was measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import extended
from streamdp.learning.experts.drawing.ways import Way
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.publishing.moves import width_of_rank
from streamdp.mechanisms.quantile_tree.planning.rank_law import deviations
from streamdp.mechanisms.quantile_tree.pulls import off_atoms, outside
from streamdp.priors.shapes import tukey
from streamdp.types import BoolArray, FloatArray

REACH = 2.6
"""Deviations to either side that hold the quantile of 95 % of batches: laws have heavy tails."""

ALONE = 2.0
"""Times as far where a single quantile is released: nothing but the guess then says how a batch is
spread."""

HELD = 8.0
"""Units of noise between an outermost quantile and the end of a batch that keep draws inside."""

TAILS = (0.0, -0.25, -0.5)
"""Of the laws the curve follows: logistic, and heavier."""


def error_bars(
    facts: Facts, way: Way, belief: Belief, density: FloatArray, released: Mapping[int, float]
) -> tuple[FloatArray, FloatArray]:
    """Ends that hold the quantiles of 95 % of batches, non-decreasing; each of shape (m,).

    Args:
        facts: About the stream.
        way: How it was drawn.
        belief: After it.
        density: Share of the batch per unit of value at each quantile, shape (m,).
        released: What was measured, by the index of the quantile.
    """
    targets, rows = facts.targets, facts.rows
    measured = list(way.targets)
    nearest = np.abs(targets[:, None] - targets[measured]).argmin(axis=1)
    below, above = (ends[nearest] for ends in outside(way.tree, rows))
    noise = dict(zip(measured, deviations(way.tree, rows).tolist(), strict=True))
    if len(targets) == 1:
        thin = width_of_rank(facts, way, released[0])
        density = 1.0 / np.maximum(1.0 / density, thin)
    lower, upper = around(facts, belief, density, noise, released, (below, above))
    values = np.array([released[j] for j in measured])
    least, most = off_atoms(way.tree, way.prior, rows, values)[:, nearest]
    lower = np.minimum.accumulate(np.minimum(lower, least)[::-1])[::-1]
    return lower, np.maximum.accumulate(np.maximum(upper, most))


def around(
    facts: Facts,
    belief: Belief,
    density: FloatArray,
    noise: Mapping[int, float],
    released: Mapping[int, float],
    outside: tuple[BoolArray, BoolArray],
) -> tuple[FloatArray, FloatArray]:
    """The same, before values at which many records lie are looked at.

    Args:
        facts: About the stream.
        belief: After a release.
        density: Share of the batch per unit of value at each quantile, shape (m,).
        noise: Deviation in ranks of what was measured, by the index of the quantile.
        released: What was measured.
        outside: Which quantiles may have been drawn below the batch, and which above.
    """
    point, targets = belief.point(), facts.targets
    least, moved = _sampling(facts, point, noise, released)
    unsure = np.maximum((belief.deviations() * density) ** 2, least)
    away = REACH * np.sqrt(unsure + facts.rows**-2.0)
    away *= ALONE if len(point) == 1 else 1.0
    crossed = np.stack((point, belief.medians()))
    lower = crossed.min(axis=0) - away / density
    upper = crossed.max(axis=0) + away / density
    curve = _on_curve if len(point) > 1 else functools.partial(_alone, density=density)
    for tail in TAILS:
        lower = np.minimum(lower, curve(facts, point, targets - away, tail))
        upper = np.maximum(upper, curve(facts, point, targets + away, tail))
    lower, upper = lower + moved.clip(max=0.0), upper + moved.clip(min=0.0)
    _reach_inwards(facts, point, lower, upper, max(noise.values(), default=0.0), outside)
    cell, half = facts.resolution, facts.resolution / 2.0
    lower, upper = np.floor((lower - half) / cell) * cell, np.ceil((upper + half) / cell) * cell
    return np.maximum.accumulate(lower), np.maximum.accumulate(upper)


def _reach_inwards(
    facts: Facts,
    point: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    noise: float,
    outside: tuple[BoolArray, BoolArray],
) -> None:
    """Move the inner ends of quantiles that noise may carry out of the batch."""
    unit, last, targets = noise / math.sqrt(2.0), len(point) - 1, facts.targets
    (location, scale), (below, above) = facts.guess, outside
    lower[above] = np.minimum(lower[above], max(point[~above], default=location - scale))
    upper[below] = np.maximum(upper[below], min(point[~below], default=location + scale))
    if last and 1.0 - targets[-1] < HELD * unit:
        lower[-1] = min(lower[-1], point[-2])
    if last and targets[0] < HELD * unit:
        upper[0] = max(upper[0], point[1])


def _sampling(
    facts: Facts, point: FloatArray, noise: Mapping[int, float], released: Mapping[int, float]
) -> tuple[FloatArray, FloatArray]:
    """How far a batch may be from a population that the belief describes.

    Returns:
        The least variance of each quantile, in squared ranks: that of a sample, as far as its
        measurement leaves it open; and the part of what was measured off the belief that sampling
        explains, in values.
    """
    sampling = facts.targets * (1.0 - facts.targets) / facts.rows
    least, moved = sampling.copy(), np.zeros(len(point))
    for index, deviation in noise.items():
        least[index] = 1.0 / (1.0 / sampling[index] + 1.0 / deviation**2)
        share = sampling[index] / (sampling[index] + deviation**2)
        moved[index] = share * (released[index] - point[index])
    return least, moved


def _on_curve(facts: Facts, point: FloatArray, ranks: FloatArray, tail: float) -> FloatArray:
    """Values at some ranks, straight against a standard law between the quantiles."""
    end = 0.5 / facts.rows
    law, wanted = np.full(1, tail), ranks.clip(end, 1.0 - end)
    standard, at = tukey(facts.targets, law), tukey(wanted, law)
    values = point + 1e-3 * facts.resolution * np.arange(len(point))
    return extended(at, standard, values, 2)


def _alone(
    facts: Facts, point: FloatArray, ranks: FloatArray, tail: float, *, density: FloatArray
) -> FloatArray:
    """Values at some ranks by a standard law, as dense at the only quantile as a batch."""
    end = 0.5 / facts.rows
    law, target = np.full(1, tail), facts.targets
    away = tukey(ranks.clip(end, 1.0 - end), law) - tukey(target, law)
    return point + away / (target ** (tail - 1.0) + (1.0 - target) ** (tail - 1.0)) / density
