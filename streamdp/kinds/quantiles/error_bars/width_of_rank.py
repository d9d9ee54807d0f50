"""Posterior of the width of a rank at a single quantile: what released values say of a density.

Where one quantile is released, nothing tells how thin a batch is there but the guess, and how far
releases differ. The noise of a release is known in ranks; a rank is w wide in values. So released
values are those of a level that moves by steps of an unknown size and seldom jumps anywhere, seen
with noise w times a known law:

    y_t = m_t + w·(s_t + e_t),    m_t = m_{t-1} + d + w·step·noise, or anywhere, seldom.

d is 0, or the median slope of all pairs of values; s_t what a sample of so many records is off by,
e_t the noise. For each w, d and step of a grid a Gaussian filter, whose noise is a mixture of
normal laws, gives the likelihood of all values. Their posterior follows by Bayes' rule. From
releases and public facts alone: free.

References:
    Alspach & Sorenson 1972 (filters by mixtures of normal laws); Sen 1968 (the median slope).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray

TIMES = np.exp(np.arange(-7.0, 5.1, 0.5))
"""Widths that are held, in units of the guessed one."""

WRONG, FALL = np.log((0.4, 10.0)), 6.0
"""Logarithms of a width over a guessed one between which all are as likely at first, and how fast
the logarithm of their likelihood falls beyond."""

STEPS = np.array([0.0, 1.0, 8.0, 64.0, 512.0])
"""Steps of the level, in deviations of the noise: a stream that moves far more than its noise says
nothing of the noise but that it is less."""

STEP_WEIGHTS = np.array([0.7, 0.2, 0.04, 0.03, 0.03])
"""Weights of `STEPS` before any release: most streams stay."""

STEADY = 1.0
"""Largest of `STEPS` that the noise may be mistaken for."""

JUMP = 0.02
"""Probability of a level anywhere, at any distance as likely, in its logarithm."""

SHARES, HOLLOW, HOLLOW_TIMES = 6, 0.1, 4.0
"""Parts of the law of the noise; the weight of a further one, of values in a thin part of a batch,
and how many times as wide that is."""

ANYWHERE = 1e3
"""Deviation of the first level, in those of the noise at the largest width."""


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """Posterior of the width of a rank.

    Args:
        values: Increasing, in the unit of the column, shape (k,).
        weights: They sum to one.
        p_moved: Probability that the level jumped at the last value, or moves by more than noise.
    """

    values: FloatArray
    weights: FloatArray
    p_moved: float

    def at(self, chances: FloatArray) -> FloatArray:
        """Widths below which so large shares of the posterior lie, same shape."""
        sums = np.cumsum(self.weights) - self.weights / 2.0
        rising = sums + 1e-12 * np.arange(len(sums))
        return np.asarray(np.exp(np.interp(chances, rising, np.log(self.values))))


def widths(
    target: float,
    rows: int,
    cell: float,
    guesses: FloatArray,
    noise: FloatArray,
    values: Sequence[float],
) -> Widths:
    """The posterior of the width of a rank after some releases.

    Args:
        target: The quantile.
        rows: Expected number of records.
        cell: Width of a cell.
        guesses: Widths in batches as the configuration believes, with tails of all sorts.
        noise: Samples of what quantiles are off from values, for a unit of width.
        values: Released one after the other; at least one.
    """
    guessed = float(np.exp(np.log(guesses).mean()))
    drifts = np.array([0.0, _slope(np.array(values))])
    shape = len(drifts), len(TIMES), len(STEPS)
    drift, width, steps = (
        np.broadcast_to(each, shape).ravel()
        for each in (drifts[:, None, None], (guessed * TIMES)[:, None], STEPS)
    )
    off = np.log(guessed * TIMES)[:, None] - np.log(guesses)
    beyond = np.maximum(np.maximum(WRONG[0] - off, off - WRONG[1]), 0.0)
    belief = np.log(np.exp(-FALL * beyond).mean(axis=1))
    logs = np.broadcast_to(belief[:, None] + np.log(STEP_WEIGHTS), shape).ravel()
    means, variances, weights, deviation = _parts(noise)
    of_noise = variances * width[:, None] ** 2 + cell**2 / 12.0
    of_noise += target * (1.0 - target) / rows * width[:, None] ** 2
    step = (steps * width * deviation) ** 2
    near = (width * deviation) ** 2
    kinds = np.log(np.outer((1.0 - JUMP, JUMP), weights))[:, None, :]
    level = np.full(len(width), float(values[0])) - drift
    open_ = np.full(len(width), ANYWHERE**2 * near.max())
    for value in values:
        level = level + drift
        off = value - level
        moved = np.stack((open_ + step, open_ + step + near + off**2))[:, :, None]
        away = off[:, None] + means * width[:, None]
        whole = moved + of_noise
        each = kinds - 0.5 * (away**2 / whole + np.log(whole))
        peak = each.max(axis=(0, 2))
        each = np.exp(each - peak[:, None])
        total = each.sum(axis=(0, 2))
        logs = logs + peak + np.log(total)
        each /= total[:, None]
        gain = moved / whole
        there = gain * away
        shift = (each * there).sum(axis=(0, 2))
        second = (each * (moved * (1.0 - gain) + there**2)).sum(axis=(0, 2))
        level, open_ = level + shift, np.maximum(second - shift**2, 0.0)
    likely = np.exp(logs - logs.max())
    likely /= likely.sum()
    p_moved = float(likely @ np.where(steps > STEADY, 1.0, each[1].sum(axis=1)))
    return Widths(guessed * TIMES, likely.reshape(shape).sum(axis=(0, 2)), p_moved)


def _slope(values: FloatArray) -> float:
    """Return the median slope of all pairs of values, 0 of a single value."""
    first, second = np.triu_indices(len(values), 1)
    slopes = (values[second] - values[first]) / (second - first)
    return float(np.median(slopes)) if len(slopes) else 0.0


def _parts(noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Means, variances and weights of normal laws that make up the noise, and its deviation."""
    parts = np.array_split(np.sort(noise), SHARES)
    variance = float(noise.var())
    means = np.array([*(part.mean() for part in parts), 0.0])
    variances = np.array([*(part.var() for part in parts), HOLLOW_TIMES**2 * variance])
    weights = np.array([*(len(part) / len(noise) * (1.0 - HOLLOW) for part in parts), HOLLOW])
    return means, variances, weights, math.sqrt(variance)
