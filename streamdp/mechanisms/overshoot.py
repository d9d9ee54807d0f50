"""The posterior of what lies beyond a clip's reach, from released distances alone.

With d the distance of a value from the centre and r the reach, records exceed a distance t with
probability

    S(t) = A · exp(-α·((t/r)^β - 1)/β),

where A is the share beyond the reach, α how fast it falls there, and β how much faster it falls
farther out: nearly 0 for a power law, 1 for an exponential tail, 2 for a normal one. The mean
overshoot is the integral of S from r on. The released numbers of records by distance weigh these
tails; noise hides most far cells, so that what is known of them follows from how the near ones
fall. The prior is the tail of a t law of five degrees of freedom of the guessed spread, or of the
spread that is likely where bounds stand for a guess.

A mean or a sum of clipped values is off by noise and by the overshoot, and its interval by their
sum: two bounds added up would be several times as wide. A variance is off by the overshoot of
squares, which only adds to it.

Constants are chosen on the development streams of `tests.benchmarks.smoothing` and
`tests.benchmarks.calibration_kinds`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamdp.mechanisms.clip import DISTANCES, SPREADS, Clip
from streamdp.types import FloatArray, IntArray

LEVEL, WIDTH = 0.95, 1.96
"""Of intervals, and their half width in standard deviations of a normal law."""

SHARES = np.geomspace(1e-4, 1.0, 26)
"""A: shares of records beyond the reach that are tried."""

SHAPES, FALLS = (0.02, 0.25, 0.6, 1.2, 2.0), np.geomspace(0.2, 16.0, 16)
"""β and α that are tried."""

SHARE_DOUBT, FALL_DOUBT = 1.5, 0.8
"""Deviations of the logarithms of A and α about those of the guessed law."""

LEAST_FALL, MOST_SPREADS = 0.25, 5.0
"""Least α of the guessed law, and spreads from which on it says nothing more: releases have chosen
a reach that lies farther out."""

LIKELY_SPREADS = 2.0
"""Times the spread that is likely above which released distances refute a guess."""

SLOW, SLOW_WEIGHT = 1.8, 0.5
"""α below which a power law hardly has a mean, and how much it weighs against other tails."""

NEAR = 8.0
"""Part of the reach from which on distances tell of the tail."""

DIFFERS = 0.3
"""Part of the records of a distance by which a tail of another form may differ; twice and three
times as much one and two doublings within the reach."""

MOST_COST = 4.0
"""Squared deviations that count at most against a tail where a distance whose middle is within the
reach holds more records: values that pile up there are no part of it."""

EXCESS = 1.3
"""Share of records beyond the nearest distance from which on a tail is none: a little over all."""

OUT_TO = np.geomspace(1.0, 64.0, 49)
"""Distances over the reach between which tails are integrated."""

MOST_SQUARED = 16.0
"""The same for squares of distances, of which few tails have a mean."""

QUANTILES = 12
"""Equally probable means that stand for the posterior."""

SIGNS = (0.0, 0.5, 1.0)
"""Parts of the overshoot by which a mean is off, equally likely: distances tell no sign, and two
tails cancel in part. All of it where bounds leave one tail alone."""

FARTHER = 4.0
"""Times the reach, or its part, that is tried for the next batch at most."""

PAST_SURE = 3.0
"""Times the distance up to which records surely lie that a reach of a mean is at most."""

REACHES, OF_TRIED = 40, 60
"""Reaches that are tried, and distances between which tails are integrated for them."""

NEGLIGIBLE = 1e-3
"""Part of the heaviest weight of a tail below which it is left out of what reaches hide."""

OF_FIRST, OF_TWO_TAILS = 0.7, 0.6
"""Quantile of what a reach hides of a mean, and its part by which the mean is off, as two tails
cancel in part. Medians cut off log-normal tails, larger parts let noise into normal ones
(development streams of `tests.benchmarks.smoothing`, and laws of seed 82001)."""

OF_BATCH = 1.25
"""Times its deviation that a batch's overshoot differs: few far records have skewed sums."""

HALVINGS = 12
"""Bisections of a half width."""

_SHAPE, _FALL = (
    each.ravel()[:, None] for each in np.meshgrid(np.array(SHAPES), FALLS, indexing="ij")
)
_SLOW = np.where((SHAPES[1] > _SHAPE) & (_FALL < SLOW), math.log(SLOW_WEIGHT), 0.0)[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Overshoot:
    """What lies beyond the reach of a clip, in cells.

    Args:
        means: Equally probable means of max(d - reach, 0) over records, ascending.
        square: Mean of its square.
        squares: Equally probable means of max(d² - reach², 0), ascending.
        fourths: Means of its square, each under the tail of the mean beside it.
    """

    means: FloatArray
    square: float
    squares: FloatArray
    fourths: FloatArray

    @classmethod
    def of(cls, clip: Clip) -> Overshoot:
        """The posterior of the overshoot, from the distances that a clip remembers."""
        reach = float(clip.reach)
        within = max(clip.farthest, 1.0) / reach > OUT_TO
        tails = _tails(OUT_TO) * within
        steps, middle = np.diff(OUT_TO), (OUT_TO[1:] + OUT_TO[:-1]) / 2.0
        parts = (tails[:, 1:] + tails[:, :-1]) / 2.0 * steps
        first, second = parts.sum(axis=1) * reach, parts @ (2.0 * (middle - 1.0)) * reach**2
        parts = parts * (middle < MOST_SQUARED)
        squares = parts @ (2.0 * middle) * reach**2
        fourths = parts @ (4.0 * middle * (middle**2 - 1.0)) * reach**4
        weights, shares = _weights(clip), SHARES[:, None]
        means, found = shares * first, shares * squares
        chosen = _equally_probable(found, weights)
        return cls(
            means.ravel()[_equally_probable(means, weights)],
            float((weights * shares * second).sum()),
            found.ravel()[chosen],
            (shares * fourths).ravel()[chosen],
        )

    @property
    def of_squares(self) -> float:
        """What squares of clipped values leave out of the mean square, at least."""
        return float(self.squares[0])

    def widened(
        self, below: FloatArray, above: FloatArray, records: FloatArray, room: tuple[float, float]
    ) -> tuple[FloatArray, FloatArray]:
        """How far the means of groups may lie below and above those of their clipped values.

        Noise and overshoot are independent: the half width is what their sum exceeds as rarely as
        the level says.

        Args:
            below: Half widths by noise alone, one a group.
            above: The same above.
            records: Of each group.
            room: Cells between the clip and the column's bounds, below and above.
        """
        alone = min(room) < float(self.means.mean())
        chance = OF_BATCH * np.sqrt(self.square / records)
        rooms = np.array(room)[:, None]
        noise = np.hypot(np.array((below, above)) / WIDTH, np.minimum(chance, rooms))
        parts = np.multiply.outer(np.minimum(self.means, rooms), (1.0,) if alone else SIGNS)
        low, high = half_widths(noise[..., None], parts.reshape(2, 1, -1), one_sided=alone)
        return low, high

    def widened_variance(
        self, below: FloatArray, above: FloatArray, records: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How far the variances of groups may lie below and above those of their clipped values.

        Squares beyond the reach are missing; means that clipping moves add or take a little.

        Args:
            below: Half widths by noise alone, one a group.
            above: The same above.
            records: Of each group.
            mean: Of the clipped values of each group, from the centre.
        """
        moved = 2.0 * np.abs(mean)[:, None] * self.means + self.means**2
        chance = OF_BATCH * np.sqrt(self.fourths / records[:, None])
        hidden = np.array((moved, moved + self.squares))
        chances = np.array((np.zeros_like(chance), np.minimum(chance, self.squares)))
        noise = np.hypot(np.array((below, above))[..., None] / WIDTH, chances)
        low, high = half_widths(noise, hidden, one_sided=True)
        return low, high


def best_reach(clip: Clip, noise: float, *, summed: bool = False) -> float:
    """Return the reach at which smoothed means and sums err least, in cells.

    What a reach hides is a quantile of its posterior above the median (`OF_FIRST`): where little is
    known of a tail, it is not cut off. It lasts, and noise does not: they add up in squares. A tail
    that noise alone leaves possible at every distance would drive the reach out without end, so it
    is at most three times as far as records surely lie, or a few likely spreads.

    Args:
        clip: With the distances that it remembers.
        noise: Deviation of the noise of a released mean, over the reach.
        summed: Distances are those from 0, so that nearly all of them are of one sign.
    """
    tried = _tried(clip)
    part = 1.0 if summed else OF_TWO_TAILS
    hidden = np.maximum(part * _hidden(clip, tried, 1, OF_FIRST), _known(clip, tried))
    costs = np.hypot(hidden, noise * tried)
    farthest = np.max(np.array(clip.edges(), dtype=np.float64)[:, 1], initial=0.0, where=clip.sure)
    costs[tried > max(PAST_SURE * farthest, SPREADS * clip.likely_scale(), tried[0])] = np.inf
    return float(tried[int(np.argmin(costs))])


def best_reach_of_squares(clip: Clip, noise: float) -> float:
    """Return the reach at which smoothed variances err least, in cells.

    What a reach hides of squares is the median of its posterior: tails with hardly a mean would
    drive the reach out, and single far cells, of noise alone, from batch to batch.

    Args:
        clip: With the distances that it remembers.
        noise: Deviation of the noise of a released mean square, over the square of the reach.
    """
    tried = _tried(clip)
    costs = _hidden(clip, tried, 2, 0.5) + noise * tried**2
    return float(tried[int(np.argmin(costs))])


def _tried(clip: Clip) -> FloatArray:
    """Reaches that are tried for the next batch, within those that distances tell of.

    None is shorter than the likely spread: however large noise is, a reach that hides all says
    nothing.
    """
    tried = clip.reach * np.geomspace(1.0 / FARTHER, FARTHER, REACHES)
    farthest = float(clip.edges()[-1][1])
    return np.minimum(np.maximum(tried, clip.likely_scale()), farthest)


def _hidden(clip: Clip, tried: FloatArray, power: int, quantile: float) -> FloatArray:
    """What reaches hide: a quantile of the posterior of means of max(d^power - reach^power, 0).

    Args:
        clip: With the distances that it remembers.
        tried: Reaches.
        power: Of distances.
        quantile: Of the posterior, at each reach.
    """
    at = np.geomspace(tried[0], MOST_SQUARED * max(clip.reach, tried[-1]), OF_TRIED)
    within = at < max(clip.farthest, 1.0)
    weights = _weights(clip)
    shares, tails = np.nonzero(weights > NEGLIGIBLE * weights.max())
    weights = weights[shares, tails] / weights[shares, tails].sum()
    beyond = np.minimum(SHARES[shares, None] * (_tails(at / clip.reach) * within)[tails], 1.0)
    parts = (beyond[:, 1:] + beyond[:, :-1]) / 2.0 * np.diff(at**power)
    means = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
    order = np.argsort(means, axis=0)
    below = (np.cumsum(weights[order], axis=0) < quantile).sum(axis=0)
    chosen = np.take_along_axis(order, np.minimum(below, len(order) - 1)[None], 0)
    found = np.take_along_axis(means, chosen, 0)[0]
    return np.asarray(np.interp(tried, at, np.append(found, 0.0)))


def _known(clip: Clip, tried: FloatArray) -> FloatArray:
    """What reaches surely hide of a mean: that of distances whose records noise does not explain.

    Records are taken to lie at the near end of a distance, but evenly where it holds them more
    densely than the one before: those pile up there, and are no tail. Behind the first distance
    that noise may explain nothing counts, since in one far distance it weighs much.
    """
    low, high = np.array(clip.edges(), dtype=np.float64).T
    sure = clip.sure
    ended = np.maximum.accumulate(sure) & ~sure
    seen = np.where(sure & ~np.maximum.accumulate(ended), clip.distances, 0.0)
    density = seen / (high - low)
    piled = density > np.append(np.inf, density[:-1])
    beyond = np.where(piled, clip.beyond(tried), np.maximum(low - tried[:, None], 0.0))
    return np.asarray(beyond @ seen / max(float(np.sum(seen)), 1.0))


def _equally_probable(values: FloatArray, weights: FloatArray) -> IntArray:
    """Places of values, ascending, that each stand for the same probability."""
    order = np.argsort(values, axis=None)
    levels = np.cumsum(weights.ravel()[order])
    asked = (np.arange(QUANTILES) + 0.5) / QUANTILES * levels[-1]
    return np.asarray(order[np.searchsorted(levels, asked)])


def _tails(distances: FloatArray) -> FloatArray:
    """S(t)/A at distances over the reach, shape (tails, distances)."""
    logs = np.log(np.maximum(distances, 1e-12))
    return np.asarray(np.exp(-_FALL * np.expm1(_SHAPE * logs) / _SHAPE))


def _weights(clip: Clip) -> FloatArray:
    """Posterior weights of shares and tails, shape (shares, tails)."""
    reach = float(clip.reach)
    low = np.array([start for start, _ in clip.edges()]) / reach
    high, released = np.append(low[1:], 1e30 / reach), np.array(clip.distances)
    tells = (high > 1.0 / NEAR) & (low >= 0.5 / NEAR)
    low, high, released = low[tells], high[tells], released[tells]
    farthest = max(clip.farthest, 1.0) / reach
    beyond = np.where(low >= farthest, 0.0, _tails(low))
    falls = beyond - np.where(high >= farthest, 0.0, _tails(high))
    records = max(sum(clip.distances), DISTANCES**0.5 / 2.0 * math.sqrt(clip.spread), 1.0)
    expected = records * SHARES[:, None, None] * falls
    inside = 1.0 + np.maximum(-np.log2(np.minimum(high, 1.0)), 0.0)
    variance = clip.spread + np.maximum(expected, 1.0) + (DIFFERS * inside * expected) ** 2
    cost = (released - expected) ** 2 / variance + np.log(variance)
    body = np.maximum(released, 0.0)
    of_body = np.log(clip.spread + np.maximum(body, 1.0) + (DIFFERS * inside * body) ** 2)
    more = ((low + high) / 2.0 <= 1.0) & (released > expected)
    cost = np.where(more, np.minimum(cost, MOST_COST + of_body), cost)
    likely = -0.5 * cost.sum(axis=2)
    logs = likely + _prior(clip)
    logs[SHARES[:, None] * _tails(low[:1])[:, 0] > EXCESS] = -np.inf
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _prior(clip: Clip) -> FloatArray:
    """Logarithms of prior weights of shares and tails, by the guessed law, up to a constant."""
    likely = clip.likely_scale()
    spread = min(clip.scale, LIKELY_SPREADS * likely) if clip.guessed else likely
    square = min(clip.reach / spread, MOST_SPREADS) ** 2
    share, fall = -2.5 * math.log1p(square / 5.0), max(5.0 * square / (5.0 + square), LEAST_FALL)
    of_shares = ((np.log(SHARES) - share) / SHARE_DOUBT) ** 2
    of_tails = ((np.log(_FALL[:, 0]) - math.log(fall)) / FALL_DOUBT) ** 2
    return np.asarray(_SLOW - 0.5 * (of_shares[:, None] + of_tails))


def half_widths(noise: FloatArray, hidden: FloatArray, *, one_sided: bool) -> FloatArray:
    """What normal noise plus a hidden part exceeds in size as rarely as the level says.

    Args:
        noise: Deviations of the lower side and of the upper one, shape (2, groups, parts or 1).
        hidden: Equally probable hidden parts of either side, shape (2, groups or 1, parts).
        one_sided: Ask for the probability on the side of the hidden part alone, and half of what
            the level leaves; else on both.
    """
    from scipy.special import ndtr

    noise = np.maximum(noise, 1e-12)
    asked = (1.0 - LEVEL) / (2.0 if one_sided else 1.0)
    low = WIDTH * noise.min(axis=2)  # hidden parts of either sign only add
    high = WIDTH * noise.max(axis=2) + hidden.max(axis=2)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        missed = ndtr((hidden - middle[..., None]) / noise)
        if not one_sided:
            missed += ndtr((-hidden - middle[..., None]) / noise)
        farther = missed.mean(axis=2) > asked
        low, high = np.where(farther, middle, low), np.where(farther, high, middle)
    return np.asarray(high)
