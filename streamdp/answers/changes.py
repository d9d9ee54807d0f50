"""Comparisons of two periods: did the records differ, and did the process that makes them change.

Each period is the sum of its batches' own shares, interpolated between their cuts; nothing is moved
towards other days, for what is moved towards them shows a change too small. D(x) is the share of
the later period up to x, less that of the earlier one. Its variance has

- the noise of counts, and what lies between cuts: all there is where records are asked about;
- sum of w_s·w_t·k(s, t) with the fast kernel and the batch's own, times D(u, u), and that of chance
  records, where the process is: days that are alike differ by as much. It is at least the variance
  that the batches of each period show among themselves, and between long periods it is this one.

A shift by a moves the share at x by -a·f(x), with f the density: its estimate weighs all deciles
by their precision (generalized least squares).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtr

from streamdp.answers import LEVEL
from streamdp.answers.base import Base, beside
from streamdp.answers.regression import BatchHistory, Scales, bridge, deviation, gap, kernels
from streamdp.types import FloatArray, IntArray

DECILES = np.arange(1, 10) / 10.0


Deviations = tuple[FloatArray, FloatArray, FloatArray]
"""Weights of a period's batches, their days, and how far each lies above the base at places."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a value differs between two periods.

    Args:
        before: Of the earlier period, in cells.
        after: Of the later one.
        change: The difference.
        lower: Lower end of its 95 % interval: the records'.
        upper: Upper end.
        rose: Probability that it rose with the process that makes the records.
        differ: Probability that it differs, up or down, between the records themselves.
        changed: Probability that the process changed.
    """

    before: float
    after: float
    change: float
    lower: float
    upper: float
    rose: float
    differ: float
    changed: float


def quantile_change(
    history: BatchHistory, scales: Scales, one: IntArray, other: IntArray, quantile: float
) -> Change:
    """How a quantile differs between two periods."""
    base = history.base(np.concatenate((one, other)))
    at = np.array([quantile])
    moved, noise, process, days = _moved(history, scales, base, one, other, at)
    before, after = (_place(history, each, quantile) for each in (one, other))
    slope = _density(base, at)
    sd = float(np.sqrt(noise[0, 0])) / float(slope[0])
    wide, free = _process(float(noise[0, 0]), float(process[0, 0]), days, np.array([1.0]))
    by, likely = after - before, -float(moved[0]) / float(slope[0])
    # Quantiles of records are whole cells, and so is how far they lie apart.
    lower = min(by, math.floor(likely - LEVEL * sd))
    upper = max(by, math.ceil(likely + LEVEL * sd))
    deviations = math.sqrt(noise[0, 0]), math.sqrt(wide)
    rose, differ, changed = _sureness(-float(moved[0]), *deviations, free)
    return Change(before, after, by, lower, upper, rose, differ, changed)


def shift(history: BatchHistory, scales: Scales, one: IntArray, other: IntArray) -> Change:
    """Change of all deciles together."""
    base = history.base(np.concatenate((one, other)))
    inside = (base.cut_shares[0] - 0.02 <= DECILES) & (base.cut_shares[-1] + 0.02 >= DECILES)
    at = DECILES[inside] if inside.any() else np.array([0.5])
    moved, noise, process, days = _moved(history, scales, base, one, other, at)
    slope = _density(base, at)
    weight = np.linalg.solve(process + 1e-12 * np.eye(len(at)), slope)
    weight /= weight @ slope
    by = -float(weight @ moved)
    sd = math.sqrt(weight @ noise @ weight)
    wide, free = _process(sd**2, float(weight @ process @ weight), days, weight)
    ends = by - LEVEL * sd, by + LEVEL * sd
    middle = float(base.places(np.array([0.5]))[0])
    return Change(middle, middle + by, by, *ends, *_sureness(by, sd, math.sqrt(wide), free))


LONG = 20
"""Batches of each period from which on they alone tell how far days that are alike differ."""

KNOWN = math.inf
"""Degrees of freedom of a variance that is known."""

LATELY, BEFORE, FEWEST = 7, 28, 14
"""Batches that are compared with those before them, how many of those, and how few will do."""


def changed_lately(
    history: BatchHistory, scales: Scales, quantile: float, by: float, sure: float
) -> int:
    """Whether a quantile rose (1) or fell (-1) in the last batches; 0 if neither is sure.

    Args:
        history: Whose end is looked at.
        scales: Of its kernels.
        quantile: Which.
        by: Least change, as a share of the value before.
        sure: Least probability that the process rose, or that it fell.
    """
    count = len(history.at)
    if count < LATELY + FEWEST:
        return 0
    lately = np.arange(count - LATELY, count)
    before = np.arange(max(count - LATELY - BEFORE, 0), count - LATELY)
    found = quantile_change(history, scales, before, lately, quantile)
    if abs(found.change) < by * abs(found.before):
        return 0
    return int(found.rose >= sure) - int(1.0 - found.rose >= sure)


def _sureness(by: float, noise: float, process: float, free: float) -> tuple[float, float, float]:
    """Probabilities that the process rose, that records differ, and that the process changed.

    Args:
        by: The difference.
        noise: Deviation of its noise.
        process: Its deviation where the process is the same.
        free: Degrees of freedom by which that is known.
    """
    differ = float(2.0 * ndtr(abs(by / noise)) - 1.0)
    rose = float(stdtr(free, by / process))
    return rose, differ, 2.0 * max(rose, 1.0 - rose) - 1.0


def _place(history: BatchHistory, places: IntArray, quantile: float) -> float:
    return float(np.ceil(history.base(places).places(np.array([quantile]))[0] - 1e-6))


def _density(base: Base, at: FloatArray) -> FloatArray:
    """Share of a cell at places in shares, over a twentieth on both sides."""
    low, high = np.maximum(at - 0.05, at / 2), np.minimum(at + 0.05, (1 + at) / 2)
    return np.asarray((high - low) / np.maximum(base.places(high) - base.places(low), 1.0))


def _moved(
    history: BatchHistory,
    scales: Scales,
    base: Base,
    one: IntArray,
    other: IntArray,
    at: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, list[Deviations]]:
    """D at places in shares of the base, with its variance for records and for the process.

    Returns:
        D, both variances, and the deviations of the batches of each period.
    """
    days: list[Deviations] = []
    moved, noise = np.zeros(len(at)), np.zeros((len(at), len(at)))
    weights, cuts_of_all, hats_of_all = [], [], []
    for places, sign in ((one, -1.0), (other, 1.0)):
        weight = sign * history.sizes[places] / history.sizes[places].sum()
        weights.append(weight)
        found = np.array([beside(base, history.shares[place], at) for place in places])
        days.append((weight, history.at[places], found))
        moved += weight @ found
        for place, each in zip(places, weight, strict=True):
            batch = history.shares[place]
            cuts = base(batch.cells)
            hats = _hats(cuts, at)
            cuts_of_all.append(cuts)
            hats_of_all.append(each * hats)
            noise += each**2 * hats @ batch.noise @ hats.T
            ends = np.concatenate(([0.0], cuts, [1.0]))
            above = np.searchsorted(ends, at).clip(1, len(ends) - 1)
            free = scales.rough * sum(scales.kernels[2:]) + 1.0 / history.sizes[place]
            noise += np.diag(each**2 * free * gap(ends[above - 1], at, ends[above]))
    noise += np.diag(np.full(len(at), 1e-10))
    # What the base gets wrong between cuts is the same in both periods where their cuts are.
    cuts, hats = np.concatenate(cuts_of_all), np.hstack(hats_of_all)
    noise += scales.shape * _bridged(cuts, hats)
    when = np.concatenate((history.at[one], history.at[other]))
    weight = np.concatenate(weights)
    _, _, fast, _, same = kernels(when, when)
    alike = float(weight @ (scales.kernels[2] * fast + scales.kernels[4] * same) @ weight)
    chance = float(weight**2 @ (1.0 / np.concatenate((history.sizes[one], history.sizes[other]))))
    process = alike * deviation(at[:, None], at, scales.rough) + chance * bridge(at[:, None], at)
    return moved, noise, noise + process, days


def _process(noise: float, said: float, days: list[Deviations], weight: Any) -> tuple[float, float]:
    """Variance of a weighted D where the process is the same, and its degrees of freedom.

    A variance that few batches show among themselves is known as well as Student's law says; that
    of the model is taken as known.

    Args:
        noise: The least that it is.
        said: What it is by the model. Of a change it takes a part for what days have of their own,
            so long periods are judged by their own batches alone.
        days: Of both periods.
        weight: Of the places.
    """
    long = min(len(share) for share, _, _ in days) >= LONG
    least, (seen, free) = noise if long else said, _seen(days, weight)
    return (seen, free) if seen > least else (least, KNOWN)


def _seen(days: list[Deviations], weight: Any) -> tuple[float, float]:
    """Return the variance of a weighted D from how batches of one period differ, and its freedom.

    Where both periods have each weekday equally often, what a weekday has of its own is in both,
    and is no part of it. Neighbouring batches of long periods may be alike: their covariances up to
    a quarter of a period apart are added, the less the farther (Bartlett's weights).

    References:
        W. K. Newey and K. D. West. A Simple, Positive Semi-Definite, Heteroskedasticity and
        Autocorrelation Consistent Covariance Matrix, 1987.
    """
    share, at = (np.concatenate(each) for each in list(zip(*days, strict=True))[:2])
    each = np.concatenate([moved @ weight for _, _, moved in days])
    sizes = [len(own) for own, _, _ in days]
    design, weekday = np.repeat(np.eye(2), sizes, axis=0), np.eye(7)[np.floor(at).astype(int) % 7]
    often = design.T @ weekday
    if np.array_equal(often[0] * sizes[1], often[1] * sizes[0]):
        design = np.hstack((design, weekday))
    free = len(each) - int(np.linalg.matrix_rank(design))
    if free < 1:
        return 0.0, KNOWN
    left = share * (each - design @ np.linalg.lstsq(design, each)[0])
    alone = together = float(left @ left)
    if min(sizes) >= LONG:
        for own in np.split(left, [sizes[0]]):
            most = len(own) // 4
            for lag in range(1, most + 1):
                together += 2.0 * (1.0 - lag / (most + 1)) * float(own[lag:] @ own[:-lag])
    return max(alone, together) * len(each) / free, float(free)


def _bridged(cuts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weights · B(cuts, cuts) · weightsᵀ without a matrix of all pairs of cuts.

    B(s, t) is min(s, t) - s·t. The sum of the weighted minima is the integral of G·Gᵀ, where G(x)
    is the weight of all cuts above x: it is constant between neighbouring cuts.
    """
    order = np.argsort(cuts)
    above = np.cumsum(weights[:, order[::-1]], axis=1)[:, ::-1]
    mean = weights @ cuts
    return np.asarray(above * np.diff(cuts[order], prepend=0.0) @ above.T - np.outer(mean, mean))


def _hats(cuts: FloatArray, at: FloatArray) -> FloatArray:
    """Return the weights of linear interpolation between a batch's cuts; (places, cuts)."""
    ends = np.concatenate(([0.0], cuts, [1.0]))
    bumps = np.eye(len(ends))[1:-1]
    return np.array([np.interp(at, ends, bump) for bump in bumps]).T
