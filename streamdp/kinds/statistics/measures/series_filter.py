"""Filter series of released values over time: what they say together, with intervals.

A series has a level, seven weekday offsets, and a change that lasts one batch and belongs to that
batch's truth. With base b (a count's level: counts vary like their mean), noise variance R and one
model (τ, δ) of the ladder,

    level <- level + N(0, δ·b),    truth x = level + offset + N(0, λ·τ·b),    y = x + N(0, ρ·R),

where λ makes changes heavy-tailed (a mixture that stands for Student's t of 4 degrees of freedom,
so that a great change of truth is believed) and ρ noise (two normals that stand for Laplace's law;
one for Gaussian noise).
With F the variance of level + offset, U = λ·τ·b and S = F + U + ρ·R, the estimate of a component is
f + (F + U)/S·(y - f). Models are weighted by evidence pooled over the series of a release, with a
fixed share that goes back to weights that prefer series that stay: where noise is large, models can
hardly be told apart, and the first weights decide how much is averaged. Each series weighs models,
λ and ρ once more by its own value.

Each drift has a level of its own: those of models that drift alike are merged into one mean and
variance after each step, and a drift takes as much of all levels as weight goes back to it
(interacting multiple models). With one level for all, doubts about drifts that nothing speaks for
would add up from step to step, and under much noise no more than the last twenty values would be
averaged. A state is sixteen numbers a series, and two for each drift.

Counts of a table are estimated once more with levels that are drawn together (`drawn_together`),
and one below ln 2, the median of Poisson's law of less being 0, is published as 0. Neither enters
the state: what is learned of each series stays its own.

References:
    Blom & Bar-Shalom 1988; Bar-Shalom, Li & Kirubarajan 2001, section 11.6; Herbster & Warmuth 1998
    (fixed share).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamdp.types import FloatArray, Json

BoolArray = npt.NDArray[np.bool_]

TRANSIENTS = (0.003, 0.03, 0.3, 3.0, 30.0, 300.0)
"""τ: variance of a change that lasts one batch, in units of the base."""

DRIFTS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""δ: variance by which a level moves from batch to batch, in units of the base."""

OF_COUNTS, OF_MEANS = (0.2, 0.01), (1.0, 0.005)
"""Logarithm of how much more a model weighs at first than that of the next larger transient or
drift, and weight that goes back to first weights each step, over the root of the number of series.
A table of counts has series that move beside many that do not."""

DOUBT_OF_STAYING = 1.0
"""Of sums and variances: logarithm of how much more a model weighs in their intervals than the next
smaller transient or drift. First weights that prefer series that stay lessen errors, but are no
knowledge: intervals that follow from them alone held .83 of variances and .95 of sums, of some .5
and .9."""

SMALL = 0.693
"""Counts below it are 0 rather than not, by Poisson's law."""

TRUSTED, ALONE = 0.75, 0.95
"""Gains of the filter above which a value is trusted more than it says, and alone."""

STARTLING = 1.5
"""Deviations of noise between estimate and value beyond which the interval reaches out to the
value, and one deviation past it: a change that a release shows widens the interval at once."""

UNLIKE = 0.5
"""Deviation of first counts of a table about their mean, as a part of it, at least: few noisy
counts do not show that groups are of one size."""

OF_ALL = 8.0
"""Times the variance of the mean of first values that each series takes for doubt of its own: the
error is one for all, and none would lose it by its own values soon. With less doubt, tables of many
small counts stay astray; with more, noise gets into tables of few."""

FEW, FEW_SHARE = 5.0, 0.1
"""Fewer records than either are hardly any."""

FALLEN = 0.3
"""Part of the usual count above which a count is none that has fallen to nothing."""

MANY, SURE = 10.0, 4.0
"""Usual counts below these, in records and in deviations of the noise, tell nothing of an empty
batch."""

WEEKDAYS = 7
OFFSET = 0.15
"""Spread of weekday offsets before any release, as a share of the level."""

WEEKLY = 0.05
"""Variance of weekday offsets of means and variances, in units of the base."""

WIDTHS = (2.121, 1.96)
"""Half width of a 95 % interval in standard deviations: of Laplace's noise, and of Gaussian."""

BELOW = 0.975
"""Share of a normal law below its upper end."""

FARTHEST = -30.0
"""Deviations below 0 beyond which a mean is taken to be there, where tails can be computed."""

DIGITS = 8
"""Significant digits of a state."""

CHANGES = ((0.45, 0.155), (0.85, 0.348), (1.7, 0.306), (4.0, 0.165), (14.0, 0.026))
"""λ and their weights: those of an inverse gamma law of shape and rate 2 in five parts."""

NOISES = ((0.35, 0.606), (2.0, 0.394))
"""ρ and their weights: mean 1, and nearly the kurtosis of Laplace's law."""

NORMAL = ((1.0, 1.0),)
"""ρ and weights of Gaussian noise. Under the other noise's law its even spread would pass for
changes of the truth."""

_LARGER = np.add.outer(np.arange(len(TRANSIENTS)), np.arange(len(DRIFTS))).reshape(-1)

_TAU, _DELTA = (grid.reshape(-1, 1, 1) for grid in np.meshgrid(TRANSIENTS, DRIFTS, indexing="ij"))


class Components(NamedTuple):
    """λ, ρ and weights of the components of a model, shapes (1, components, 1)."""

    change: FloatArray
    noise: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, noises: Sequence[tuple[float, float]]) -> Components:
        """One component for each change with each noise."""
        parts = [(change, noise, w * v) for change, w in CHANGES for noise, v in noises]
        return cls(*np.array(parts).T.reshape(3, 1, -1, 1))


_LAPLACE, _GAUSSIAN = map(Components.of, (NOISES, NORMAL))


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimates of the truths of one batch, with intervals and variances, shapes (n,)."""

    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    variance: FloatArray

    def less(self, by: float) -> Estimates:
        """Return the estimates with so much taken off all but their variance."""
        return Estimates(self.point - by, self.lower - by, self.upper - by, self.variance)

    def of_count(self, point: FloatArray) -> Estimates:
        """The intervals, with other points that they reach out to; small ones are none."""
        point = np.where(point < SMALL, 0.0, point)
        lower, upper = np.minimum(self.lower, point), np.maximum(self.upper, point)
        return Estimates(point, lower, upper, self.variance)


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """A filter of some series that are released together.

    Args:
        keys: Names of the series; a series that comes new starts anew.
        nonnegative: Whether truths are counts: never negative, varying like their mean.
        base: Where they are no counts: the variance b, one for all or of each.
        gaussian: Whether the noise is Gaussian.
        weekly: Where they are no counts: variance of weekday offsets before any release, in units
            of the base.
        doubt: How much less intervals trust that series stay than estimates do
            (`DOUBT_OF_STAYING`).
        guess: Level that is likely before any release, and the variance of that.
    """

    keys: tuple[str, ...]
    nonnegative: bool = True
    base: FloatArray | float = 1.0
    gaussian: bool = False
    weekly: float = 1.0
    doubt: float = 0.0
    guess: tuple[float, float] | None = None

    def step(
        self, state: Json, values: Sequence[float], noise: Sequence[float], weekday: int | None
    ) -> tuple[Json, Estimates]:
        """The next state, and what is believed of this batch.

        Args:
            state: Of the last step; empty before the first.
            values: Released, one a series.
            noise: Variances of their noise.
            weekday: Of the batch, 0 to 6; None if it has none.
        """
        y, r = np.asarray(values, dtype=np.float64), np.asarray(noise, dtype=np.float64)
        before = self._restored(state, y, r)
        new, place = before.new, 0 if weekday is None else weekday
        levels, variances = before.drifting.of_models()
        offset = before.offsets[:, place] if weekday is not None else np.zeros_like(y)
        spread = before.spreads[:, place] if weekday is not None else np.zeros_like(y)
        base = self._base(before.level, before.variance)
        error = y - levels - offset
        drifted, known, rho, total, evidence = self._models(base, variances, spread, r, error)
        share = OF_COUNTS[1] if self.nonnegative else OF_MEANS[1]
        share /= math.sqrt(max(1, int((~new).sum())))
        first = self._first_weights()
        log_weights, own = _reweighted(before.log_weights, evidence, new, first, share)
        mean = levels + offset + known / total * error
        point, belief = _merged(own, mean, known * rho * r / total)
        if self.doubt:
            less_sure = own * np.exp(self.doubt * _LARGER)[:, None, None]
            less_sure /= less_sure.sum(axis=(0, 1))
            belief = (less_sure * (known * rho * r / total + (mean - point) ** 2)).sum(axis=(0, 1))
        gain = (own * known / total).sum(axis=(0, 1))
        moved_by = _trust(gain) * (y - point)
        moved, left = levels + drifted / total * error, drifted * (1 - drifted / total)
        shifted, rest = _merged(own, offset + spread / total * error, spread * (1 - spread / total))
        moved_by = np.where(new, 0.0, moved_by)
        point, belief = np.where(new, before.level, point), np.where(new, before.variance, belief)
        if weekday is not None:
            before.offsets[:, place] = np.where(new, offset, shifted)
            before.spreads[:, place] = np.where(new, spread, rest)
        merged = _merged(own, moved, left)
        turning = share * np.exp(first).reshape(len(TRANSIENTS), -1).sum(axis=0)[:, None]
        drifting = _by_drift(own, moved, left, merged, turning)
        after = _State(
            np.where(new, before.level, merged[0]),
            np.where(new, before.variance, merged[1]),
            before.offsets,
            before.spreads,
            Levels(*np.where(new, before.drifting, drifting)),
            log_weights,
            new,
        )
        startling = ~new & (np.abs(y - point) > STARTLING * np.sqrt(r))
        past = np.where(startling, y + np.sign(y - point) * np.sqrt(r), point)
        found = self._estimates(point, belief, moved_by, past)
        if self.nonnegative:
            drawn = self._of_table(
                before.level, before.variance, y - offset, r, spread, log_weights
            )
            found = found.of_count(np.where(new, found.point, drawn + offset))
        return self._stored(after), found

    def expected(self, state: Json, weekday: int | None) -> tuple[FloatArray, FloatArray]:
        """What was believed of a batch before it: points and variances; NaN where a series is new.

        Args:
            state: Before the batch.
            weekday: Of the batch, 0 to 6; None if it has none.
        """
        kept: Mapping[str, Sequence[float]] = state.get("series", {}) if state else {}
        unknown = [np.nan] * (2 + 2 * WEEKDAYS)
        numbers = np.array([kept.get(key, unknown) for key in self.keys], dtype=np.float64)
        if weekday is None:
            return numbers[:, 0], numbers[:, 1]
        offset, spread = numbers[:, 2 + weekday], numbers[:, 2 + WEEKDAYS + weekday]
        return numbers[:, 0] + offset, numbers[:, 1] + spread

    def emptied(self, state: Json, found: Estimates, noise: Sequence[float]) -> BoolArray:
        """Which counts have fallen to next to none, though past batches had many.

        Args:
            state: Before the batch.
            found: What is believed of the batch.
            noise: Variances of the noise of the released values.
        """
        kept: Mapping[str, Sequence[float]] = state.get("series", {}) if state else {}
        usual = np.array([float(kept[key][0]) if key in kept else 0.0 for key in self.keys])
        told = usual > MANY + SURE * np.sqrt(np.asarray(noise, dtype=np.float64))
        fallen = found.lower < np.minimum(FEW, FEW_SHARE * usual)
        empty: BoolArray = told & fallen & (found.point < FALLEN * usual)
        return empty

    def _of_table(
        self,
        level: FloatArray,
        variance: FloatArray,
        y: FloatArray,
        r: FloatArray,
        spread: FloatArray,
        log_weights: FloatArray,
    ) -> FloatArray:
        """Estimates of counts whose levels are drawn together, without offsets of weekdays.

        Args:
            level: Of each series before the batch.
            variance: Of the level.
            y: Values, without the offset.
            r: Variances of their noise.
            spread: Variances of offsets.
            log_weights: Of models, pooled.
        """
        level, variance = drawn_together(level, variance)
        error = y - level
        base = self._base(level, variance)
        _, known, _, total, evidence = self._models(base, variance, spread, r, error)
        gain = (_own(log_weights, evidence) * known / total).sum(axis=(0, 1))
        point = level + gain * error
        return np.asarray(point + _trust(gain) * (y - point))

    def _models(
        self,
        base: FloatArray,
        variance: FloatArray,
        spread: FloatArray,
        r: FloatArray,
        error: FloatArray,
    ) -> _Models:
        """What each model says of a batch.

        Args:
            base: Of each series.
            variance: Of the level.
            spread: Variances of offsets.
            r: Variances of the noise of the released values.
            error: Released values, less levels and offsets.
        """
        change, rho, weight = _GAUSSIAN if self.gaussian else _LAPLACE
        drifted = variance + _DELTA * base
        known = drifted + spread + change * _TAU * base
        total = known + rho * r
        evidence = np.log(weight / np.sqrt(total)) - 0.5 * error**2 / total
        return _Models(drifted, known, rho, total, evidence)

    def _first_weights(self) -> FloatArray:
        """Logarithms of weights of the models before any release, shape (models,)."""
        preferred = OF_COUNTS[0] if self.nonnegative else OF_MEANS[0]
        weights = np.exp(-preferred * _LARGER)
        return np.asarray(np.log(weights / weights.sum()))

    def _base(self, level: FloatArray, variance: FloatArray) -> FloatArray:
        """A level that is hardly known may be a deviation higher."""
        if not self.nonnegative:
            return np.broadcast_to(self.base, level.shape)
        counts: FloatArray = np.maximum(np.maximum(level, 0.0) + np.sqrt(variance), 1.0)
        return counts

    def _estimates(
        self, point: FloatArray, variance: FloatArray, moved_by: FloatArray, past: FloatArray
    ) -> Estimates:
        """The estimate on its way to the value; the interval holds those of both, and `past`.

        Of a count the belief is a normal law cut off at 0, so that the interval is never narrower
        than it though the point lies below 0.
        """
        deviation, width = np.sqrt(variance), WIDTHS[self.gaussian]
        lower = np.minimum(point + np.minimum(moved_by, 0.0) - width * deviation, past)
        upper = np.maximum(point + np.maximum(moved_by, 0.0) + width * deviation, past)
        if self.nonnegative:
            upper = np.maximum(upper, _upper_of_positive(point, deviation))
        after = point + moved_by
        if self.nonnegative:
            after, lower, upper = (np.maximum(each, 0.0) for each in (after, lower, upper))
        return Estimates(after, lower, upper, variance + moved_by**2)

    def _restored(self, state: Json, y: FloatArray, r: FloatArray) -> _State:
        """The state of each series; of new ones, its first value, drawn towards the others'."""
        kept: Mapping[str, Sequence[float]] = state.get("series", {}) if state else {}
        new = np.array([key not in kept for key in self.keys], dtype=np.bool_)
        level, variance = self._first(y, r)
        scale = np.maximum(level, 1.0) if self.nonnegative else np.ones_like(level)
        offsets = np.zeros((len(y), WEEKDAYS))
        spreads = np.repeat(((OFFSET * scale) ** 2)[:, None], WEEKDAYS, axis=1)
        if not self.nonnegative:
            base = self.weekly * np.broadcast_to(self.base, level.shape)
            spreads = np.repeat(base[:, None], WEEKDAYS, axis=1)
        for row, key in enumerate(self.keys):
            if not new[row]:
                numbers = kept[key]
                level[row], variance[row] = numbers[0], numbers[1]
                offsets[row], spreads[row] = numbers[2:9], numbers[9:16]
        drifting = Levels(*np.tile((level, variance), (len(DRIFTS), 1, 1)).swapaxes(0, 1))
        of_drifts = state.get("drifting", {}) if state else {}
        for row, key in enumerate(self.keys):
            if not new[row] and key in of_drifts:  # not in states of earlier versions
                drifting.level[:, row], drifting.variance[:, row] = of_drifts[key]
        models = len(_TAU)
        weights = state.get("weights", []) if state else []
        log_weights = np.array(weights) if len(weights) == models else self._first_weights()
        return _State(level, variance, offsets, spreads, drifting, log_weights, new)

    def _first(self, y: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Level and variance of a first value, drawn to the guess, or to the mean of several."""
        if self.guess:
            likely, doubt = self.guess
            kept = doubt / (doubt + r)
            return likely + kept * (y - likely), kept * r
        if len(y) < 2:
            return y.copy(), r.copy()
        mean = float(y.mean())
        least = max(mean, 1.0, UNLIKE * UNLIKE * mean * mean) if self.nonnegative else self.base
        among = np.maximum(float(y.var() - r.mean()), least)
        kept = among / (among + r)
        of_mean = float((among + r).mean()) / len(y)
        return mean + kept * (y - mean), kept * r + OF_ALL * (1.0 - kept) ** 2 * of_mean

    def _stored(self, after: _State) -> Json:
        rows = np.column_stack((after.level, after.variance, after.offsets, after.spreads))
        numbers = [[_rounded(number) for number in row] for row in rows.tolist()]
        of_drifts = np.array(after.drifting).transpose(2, 0, 1).tolist()
        drifting = [[[_rounded(number) for number in row] for row in each] for each in of_drifts]
        return {
            "series": dict(zip(self.keys, numbers, strict=True)),
            "drifting": dict(zip(self.keys, drifting, strict=True)),
            "weights": [_rounded(weight) for weight in after.log_weights.tolist()],
        }


class Levels(NamedTuple):
    """Levels and their variances by each drift, shapes (drifts, n)."""

    level: FloatArray
    variance: FloatArray

    def of_models(self) -> tuple[FloatArray, FloatArray]:
        """The same for all models, shapes (models, 1, n)."""
        level, variance = (np.tile(each, (len(TRANSIENTS), 1))[:, None] for each in self)
        return level, variance


@dataclass(frozen=True, slots=True)
class _State:
    """Arrays of n series: offsets and their variances have shape (n, 7); levels of all drifts."""

    level: FloatArray
    variance: FloatArray
    offsets: FloatArray
    spreads: FloatArray
    drifting: Levels
    log_weights: FloatArray
    new: BoolArray


class _Models(NamedTuple):
    """Moments of each model and component λ, ρ; shapes broadcast to (models, components, n).

    Args:
        drifted: Variance of the level that has moved.
        known: Variance of the truth: F + U.
        rho: ρ of each component.
        total: Variance of the released value: S.
        evidence: Logarithm of how likely that value is.
    """

    drifted: FloatArray
    known: FloatArray
    rho: FloatArray
    total: FloatArray
    evidence: FloatArray


def _upper_of_positive(mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """The upper end of a normal law, given that it is positive."""
    from scipy.special import ndtr, ndtri

    standard = np.maximum(mean / np.maximum(deviation, 1e-12), FARTHEST)
    upper: FloatArray = deviation * (standard - ndtri((1.0 - BELOW) * ndtr(standard)))
    return upper


def _trust(gain: FloatArray) -> FloatArray:
    """Share of the way from the estimate to the value itself: all of it where noise is little.

    There smoothing can win next to nothing, and what clipping hides of great changes it would
    hide once more.
    """
    trust: FloatArray = np.clip((gain - TRUSTED) / (ALONE - TRUSTED), 0.0, 1.0)
    return trust


def _reweighted(
    log_weights: FloatArray,
    evidence: FloatArray,
    new: BoolArray,
    first: FloatArray,
    share: float,
) -> tuple[FloatArray, FloatArray]:
    """Weights pooled over series, and each series' own.

    Args:
        log_weights: Before, shape (models,).
        evidence: Of components λ, ρ of each model, shape (models, components, n).
        new: Series that have no state yet; their values are no evidence.
        first: Logarithms of the first weights, shape (models,).
        share: Of the weight that goes back to them.

    Returns:
        Logarithms of the pooled weights, and weights of the shape of the evidence.
    """
    most = evidence.max(axis=1)
    of_models = most + np.log(np.exp(evidence - most[:, None]).sum(axis=1))
    pooled = log_weights + np.where(new, 0.0, of_models).sum(axis=1)
    weights = np.exp(pooled - pooled.max())
    weights = (1.0 - share) * weights / weights.sum() + share * np.exp(first)
    return np.log(weights), _own(np.log(weights), evidence)


def _own(log_weights: FloatArray, evidence: FloatArray) -> FloatArray:
    """Weights of components of each series, by pooled weights and its own value."""
    own = log_weights[:, None, None] + evidence
    own = np.exp(own - own.max(axis=(0, 1)))
    return np.asarray(own / own.sum(axis=(0, 1)))


def _merged(
    weights: FloatArray, means: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of a mixture, shapes (models, components, n) to (n,)."""
    mean = (weights * means).sum(axis=(0, 1))
    return mean, (weights * (variances + (means - mean) ** 2)).sum(axis=(0, 1))


def _by_drift(
    weights: FloatArray,
    means: FloatArray,
    variances: FloatArray,
    merged: tuple[FloatArray, FloatArray],
    turning: FloatArray,
) -> Levels:
    """Levels of each drift, after a part of the weight has turned to it from all drifts.

    Args:
        weights: Of all components, shape (models, components, n).
        means: Levels by each of them.
        variances: Of these.
        merged: Level and variance by all of them together.
        turning: Weight that turns to each drift, shape (drifts, 1).
    """
    of_each = (len(TRANSIENTS), len(DRIFTS), *weights.shape[1:])
    weight, mean, variance = (each.reshape(of_each) for each in (weights, means, variances))
    stays = (1.0 - turning.sum()) * weight
    total = stays.sum(axis=(0, 2)) + turning
    share, turned = stays / total[:, None], turning / total
    level = (share * mean).sum(axis=(0, 2)) + turned * merged[0]
    spread = (share * (variance + (mean - level[:, None]) ** 2)).sum(axis=(0, 2))
    return Levels(level, spread + turned * (merged[1] + (merged[0] - level) ** 2))


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


STEPS = 20
"""Levels of the grid beside none."""

LEAST = 0.1
"""The least of them; none is as near to 0 as a half of it."""

NONE, ANY = 1.0, 1.0
"""Series that the prior counts for at 0, and spread over the grid."""

ROUNDS = 20
"""Rounds of expectation maximisation."""

MOST = 2_000
"""Series whose levels the law is fitted to; evenly chosen where there are more."""


def drawn_together(level: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and variances of a table's levels, each drawn towards those that the table has.

    With levels l_i known to variances v_i, the table's own law of levels is a mixture of normals

        Σ_j π_j·N(θ_j, δ_j²),    θ_0 = 0, the others a geometric grid whose steps overlap,

    whose weights π are fitted by maximum likelihood, beside a few records' worth of a prior of
    which half is none. Small counts of one size are known by their table, large ones by themselves.

    References:
        Kiefer & Wolfowitz 1956; Efron 2016, Empirical Bayes deconvolution estimates.

    Args:
        level: Of each series, shape (n,).
        variance: Of what is known of it.
    """
    deviation = np.sqrt(np.maximum(variance, 0.0))
    largest = max(float(np.max(level + 2.0 * deviation)), 1.0)
    steps = np.geomspace(LEAST, largest, STEPS)
    places = np.append(0.0, steps)
    width = np.append(LEAST / 2.0, (1.0 - (LEAST / largest) ** (1 / STEPS)) * steps)
    prior = np.append(NONE, np.full(STEPS, ANY / STEPS))
    stride = -(-len(level) // MOST)
    likely = _likelihood(level[::stride], variance[::stride], places, width)
    weights = prior / prior.sum()
    for _ in range(ROUNDS):
        shares = likely * weights
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        weights = prior + shares.sum(axis=0)
        weights /= weights.sum()
    shares = _likelihood(level, variance, places, width) * weights
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    gain = width**2 / (width**2 + variance[:, None])
    means = places + gain * (level[:, None] - places)
    mean = (shares * means).sum(axis=1)
    spread = gain * variance[:, None] + (means - mean[:, None]) ** 2
    return mean, (shares * spread).sum(axis=1)


def _likelihood(
    level: FloatArray, variance: FloatArray, places: FloatArray, width: FloatArray
) -> FloatArray:
    """Return each level's likelihood at each place, over the largest, shape (n, places)."""
    total = width**2 + variance[:, None]
    log = -0.5 * (np.log(total) + (level[:, None] - places) ** 2 / total)
    likely: FloatArray = np.exp(log - log.max(axis=1, keepdims=True))
    return likely
