"""Sums, means and variances of a bounded column, clipped around what earlier releases said.

With a centre m and a reach r (`clip`), a tenth of the price buys the histogram of |x - m|, whose
sum is the number n of records with a value, and the rest S_1 = Σ clip(x - m, ±r). For a variance a
fifth buys the histogram, a fifth S_1 and the rest S_2 = Σ min((x - m)², r²). Then

    mean = m + S_1/n,    variance = S_2/n - (S_1/n)²,    sum = S_1 with m = 0,

so the error of n is multiplied by mean - m, not by the mean, and only the square of that of S_1
enters a variance. n is the filtered count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from streamdp.kinds.statistics.measures.protocol import LEVEL, Allowance, AskedPart, Rows
from streamdp.kinds.statistics.measures.series_filter import (
    DOUBT_OF_STAYING,
    FEW,
    FEW_SHARE,
    WEEKLY,
    Estimates,
    SeriesFilter,
)
from streamdp.mechanisms.clip import DISTANCES, Clip
from streamdp.mechanisms.overshoot import Overshoot, best_reach, best_reach_of_squares
from streamdp.types import BoolArray, FloatArray, Grid, Json, SumQuery, TableQuery, Term

Moment = Literal["sum", "mean", "variance"]

OF_VALUES = (Fraction(1, 10), Fraction(9, 10))
"""Shares of the price that buy the histogram of distances and the sum of values."""

OF_SQUARES = (Fraction(1, 5), Fraction(1, 5), Fraction(3, 5))
"""The same for a variance, and the share that buys the sum of squares."""

CHANGE = 0.05
"""Deviation of a mean's base from batch to batch, over the spread of the values."""


@dataclass(frozen=True, slots=True)
class MomentOf:
    """A sum, mean or variance.

    Args:
        name: As configured.
        moment: Which.
        column: Column, or the name of what `sql` derives.
        grid: Public cells of the column.
        start: Centre and reach before any release, in cells.
        sql: SQL of one record, in place of the column.
    """

    name: str
    moment: Moment
    column: str
    grid: Grid
    start: tuple[int, int]
    sql: str | None = None

    of_unit: ClassVar[bool] = False

    def statistic(self, cell: int) -> str:
        """`sum`, `mean` or `variance`."""
        return self.moment

    @property
    def counts(self) -> bool:
        """False: truths are any numbers."""
        return False

    @property
    def cells(self) -> tuple[str, ...]:
        """One row a group, without a label."""
        return ("",)

    def signature(self) -> Json:
        """Column, its cells, and the clip before any release."""
        about = [str(self.grid.resolution), self.grid.lower, self.grid.upper, *self.start]
        return {self.moment: [self.column, self.sql], "grid": about}

    def clip(self, state: Json) -> Clip:
        """The clip of the next batch."""
        stored = state["clip"] if state else None
        return Clip.started(self.grid, self.start, summed=self.moment == "sum", stored=stored)

    def asked(self, state: Json, price: Allowance) -> tuple[AskedPart, ...]:
        """A table of distances, and one or two sums.

        Privacy: one record more changes one distance by one, and a sum by at most the size of its
        term; exchanged for another it changes two distances, and a sum by at most the width of what
        records add (a record without a value adds 0). The shares add up to 1.
        """
        clip = self.clip(state)
        axis = clip.dimension(self.column, self.sql, self.grid)
        for_distances, *shares = OF_SQUARES if self.moment == "variance" else OF_VALUES
        noise = price.noise(1, 2, for_distances, entries=2)
        distances = AskedPart(TableQuery((axis,), ((0,),)), noise, folded=True)
        grid = clip.grid(self.grid)
        sums = []
        for square, share in enumerate(shares):
            term = Term(self.column, grid, clip.centre, self.sql, bool(square))
            low, high = min(0, term.span[0]), max(0, term.span[1])
            noise = price.noise(max(term.size, 1), max(high - low, 1), share)
            sums.append(AskedPart(SumQuery((term,)), noise))
        return (distances, *sums)

    def follow(
        self,
        state: Json,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        groups: Sequence[tuple[str, ...]],
        weekday: int | None,
    ) -> tuple[Json, Rows]:
        """The moment of each group, and the clip of the next batch."""
        state, clip = state or {}, self.clip(state)
        keys = tuple(json.dumps(group) for group in groups)
        distances = np.array(noisy[0], dtype=np.float64).reshape(len(groups), DISTANCES)
        spread = np.full(len(groups), DISTANCES * asked[0].noise.variance)
        gaussian = asked[0].noise.gaussian
        counts, before = SeriesFilter(keys, gaussian=gaussian), state.get("count")
        counted, numbers = counts.step(
            before, distances.sum(axis=1).tolist(), spread.tolist(), weekday
        )
        empty = counts.emptied(before, numbers, spread.tolist())
        seen = clip.observed(
            [int(number) for number in distances.sum(axis=0)],
            len(groups) * asked[0].noise.variance,
        )
        n, overshoot = _divisor(numbers), Overshoot.of(seen)
        value, below, above, variance = self._raw(seen, asked, noisy, numbers)
        after: Json = {"count": counted}
        if self.moment == "sum":
            series = SeriesFilter(
                keys,
                nonnegative=False,
                base=self._base(seen, n),
                gaussian=gaussian,
                doubt=DOUBT_OF_STAYING,
            )
            after["series"], found = series.step(
                state.get("series"), value.tolist(), variance.tolist(), weekday
            )
            mean = np.clip(value / n, -seen.reach, seen.reach)
        else:
            series = SeriesFilter(
                keys,
                nonnegative=False,
                base=self._base_of_mean(seen, n),
                gaussian=gaussian,
                weekly=WEEKLY,
            )
            kept = "series" if self.moment == "mean" else "mean"
            after[kept], found = self._mean(
                seen, asked, noisy, numbers, series, state.get(kept), weekday
            )
            mean = found.point - seen.centre
        of_mean = found
        if self.moment == "variance":
            likely = seen.likely_scale() ** 2
            series = replace(
                series,
                base=self._base(seen, n),
                doubt=DOUBT_OF_STAYING,
                guess=(likely, likely**2),
            )
            hidden = overshoot.of_squares
            after["series"], found = self._variance(
                seen, asked, noisy, numbers, series, state.get("series"), weekday, of_mean, hidden
            )
        after["clip"] = self._following(seen, asked, mean, n).stored()
        drawn = Estimates(value, value - below, value + above, variance)
        ends = self._ends(seen, numbers, mean, (drawn, found), overshoot)
        rows = self._rows(value, found.point, ends, variance, empty)
        if self.moment == "sum":
            return after, rows
        few = np.minimum(FEW, np.maximum(FEW_SHARE * numbers.point, 1.0))
        return after, self._unknown(rows, empty | (not before) & (numbers.lower < few))

    def _rows(
        self,
        value: FloatArray,
        smoothed: FloatArray,
        ends: Sequence[tuple[FloatArray, FloatArray]],
        variance: FloatArray,
        empty: BoolArray,
    ) -> Rows:
        """Values with their ends, cut to what is possible."""
        low, high = self._possible()
        value, smoothed = np.clip(value, low, high), np.clip(smoothed, low, high)
        (lower, upper), (least, largest) = ends
        if self.moment == "sum":
            least, largest = np.floor(least), np.ceil(largest)
        step = float(self.grid.resolution) ** (2 if self.moment == "variance" else 1)
        return Rows(
            value * step,
            np.clip(lower, low, value) * step,
            np.clip(upper, value, high) * step,
            smoothed * step,
            np.clip(least, low, smoothed) * step,
            np.clip(largest, smoothed, high) * step,
            variance * step**2,
            empty,
        )

    def of_hardly_any(self, rows: Rows, none: BoolArray) -> Rows:
        """The rows, where some groups have hardly any records: flagged, and means anywhere.

        Args:
            rows: Of each group.
            none: Which groups have hardly any.
        """
        rows = replace(rows, empty=rows.empty | none)
        return rows if self.moment == "sum" else self._unknown(rows, none)

    def _unknown(self, rows: Rows, none: BoolArray) -> Rows:
        """The rows, where means of what may be no record may lie anywhere within the bounds.

        Args:
            rows: With the ends that follow from the noise.
            none: Of which rows that is so.
        """
        low, high = self._possible()
        step = float(self.grid.resolution) ** (2 if self.moment == "variance" else 1)
        return replace(
            rows,
            lower=np.where(none, low * step, rows.lower),
            upper=np.where(none, high * step, rows.upper),
            smoothed_lower=np.where(none, low * step, rows.smoothed_lower),
            smoothed_upper=np.where(none, high * step, rows.smoothed_upper),
        )

    def _raw(
        self,
        clip: Clip,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        numbers: Estimates,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Value of clipped values, how far it may lie below and above, and variance of its noise.

        In cells, and as far as noise of sums goes. A mean of clipped values lies within the clip,
        whatever noise says of sum and number.
        """
        first = np.array(noisy[1], dtype=np.float64)
        noise, n = asked[1].noise, _divisor(numbers)
        if self.moment == "sum":
            off = np.full_like(first, noise.reach(LEVEL))
            return first, off, off, np.full_like(first, noise.variance)
        most, n_share = float(clip.reach), _deviation(numbers) / n
        mean, reach = np.clip(first / n, -most, most), noise.reach(LEVEL) / n
        mean_variance = noise.variance / n**2 + (mean * n_share) ** 2
        mean_variance = np.minimum(mean_variance, most**2)
        if self.moment == "mean":
            return clip.centre + mean, reach, reach, mean_variance
        squares, second = np.array(noisy[2], dtype=np.float64), asked[2].noise
        square = np.clip(squares / n, -(most**2), most**2)
        variance = second.variance / n**2 + 4 * mean**2 * mean_variance + (square * n_share) ** 2
        variance = np.minimum(variance, most**4)
        size, own = np.abs(mean), second.reach(LEVEL) / n
        below = np.hypot(own, (size + reach) ** 2 - mean**2)
        above = np.hypot(own, mean**2 - np.maximum(size - reach, 0.0) ** 2)
        return square - mean**2, below, above, variance

    def _mean(
        self,
        clip: Clip,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        numbers: Estimates,
        series: SeriesFilter,
        state: Json,
        weekday: int | None,
    ) -> tuple[Json, Estimates]:
        """The next state of the filter of means of clipped values, and what is believed of them."""
        n, most = _divisor(numbers), float(clip.reach)
        mean = np.clip(np.array(noisy[1], dtype=np.float64) / n, -most, most)
        expected, doubt = series.expected(state, weekday)
        own = asked[1].noise.variance / n**2
        noise = noise_of_quotient(mean, expected - clip.centre, doubt, own, numbers, most)
        return series.step(state, (clip.centre + mean).tolist(), noise.tolist(), weekday)

    def _variance(
        self,
        clip: Clip,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        numbers: Estimates,
        series: SeriesFilter,
        state: Json,
        weekday: int | None,
        of_mean: Estimates,
        hidden: float,
    ) -> tuple[Json, Estimates]:
        """Update the filter of variances by mean squares less squares of the believed means.

        What is believed of a mean is off by noise of variance v, by which its square is too large.
        What clipping likely hides of squares is added: without it a narrow reach, which brings
        little noise, would pass for a sure and small variance.
        """
        n, most = _divisor(numbers), float(clip.reach) ** 2
        mean, v = of_mean.point - clip.centre, np.minimum(_deviation(of_mean) ** 2, most)
        squares = np.clip(np.array(noisy[2], dtype=np.float64) / n, -most, most)
        expected, doubt = series.expected(state, weekday)
        own = asked[2].noise.variance / n**2 + 4 * mean**2 * v + 2 * v**2
        square = np.maximum(mean**2 - v, 0.0)
        believed = np.clip(expected + square - hidden, 0.0, most)
        noise = noise_of_quotient(squares, believed, doubt, own, numbers, most)
        return series.step(state, (squares - square + hidden).tolist(), noise.tolist(), weekday)

    def _ends(
        self,
        clip: Clip,
        numbers: Estimates,
        mean: FloatArray,
        estimates: tuple[Estimates, Estimates],
        overshoot: Overshoot,
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Ends of the moment, as drawn and smoothed, by all that may be wrong with it."""
        if self.moment == "sum":
            return [self._ends_of_sum(clip, numbers, each, overshoot) for each in estimates]
        if self.moment == "mean":
            return [self._ends_of_mean(clip, numbers, each, overshoot) for each in estimates]
        drawn, found = estimates
        of_clipped = (drawn, found.less(overshoot.of_squares))
        return [self._ends_of_variance(clip, numbers, mean, each, overshoot) for each in of_clipped]

    def _ends_of_sum(
        self, clip: Clip, numbers: Estimates, found: Estimates, overshoot: Overshoot
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of a sum, by noise and what clipping hides of so many records together."""
        n = np.maximum(numbers.upper, 1.0)
        below, above = (found.point - found.lower) / n, (found.upper - found.point) / n
        below, above = overshoot.widened(below, above, n, clip.room(self.grid))
        return found.point - below * n, found.point + above * n

    def _ends_of_variance(
        self,
        clip: Clip,
        numbers: Estimates,
        mean: FloatArray,
        found: Estimates,
        overshoot: Overshoot,
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of a variance, by noise and what clipping hides of squares and of the mean."""
        found = _within_clip(found, numbers, 0.0, float(clip.reach) ** 2)
        below, above = found.point - found.lower, found.upper - found.point
        below, above = overshoot.widened_variance(below, above, _divisor(numbers), mean)
        return found.point - below, found.point + above

    def _ends_of_mean(
        self, clip: Clip, numbers: Estimates, found: Estimates, overshoot: Overshoot
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of a mean, by noise and what clipping hides together."""
        most = float(clip.reach)
        lower, upper = found.lower - clip.centre, found.upper - clip.centre
        of_clipped = Estimates(found.point - clip.centre, lower, upper, found.variance)
        of_clipped = _within_clip(of_clipped, numbers, -most, most)
        below, above = overshoot.widened(
            of_clipped.point - of_clipped.lower,
            of_clipped.upper - of_clipped.point,
            _divisor(numbers),
            clip.room(self.grid),
        )
        return found.point - below, found.point + above

    def _base(self, clip: Clip, n: FloatArray) -> FloatArray:
        """Least variance of a change that the filter of a sum or variance tells apart, in cells."""
        second = max(clip.second_moment(), 1.0)
        if self.moment == "sum":
            return n * second
        return (CHANGE**2 + 2.0 / n) * second**2

    def _base_of_mean(self, clip: Clip, n: FloatArray) -> FloatArray:
        """Least variance of a change that the filter of a mean tells apart."""
        return (CHANGE**2 + 1.0 / n) * max(clip.second_moment(), 1.0)

    def _following(
        self, clip: Clip, asked: Sequence[AskedPart], mean: FloatArray, n: FloatArray
    ) -> Clip:
        """The clip of the next batch, with the noise of the mean, or mean square, of one group.

        The centre is what is believed of the mean of all groups. For a sum it stays 0, also where
        the column's bounds leave 0 out: what is summed are values, not distances.
        """
        centre = clip.centre
        if self.moment != "sum":
            centre += round(float(np.average(mean, weights=n)))
            centre = min(max(centre, self.grid.lower), self.grid.upper)
        last = asked[-1].noise
        noise = last.variance**0.5 / last.sensitivity / float(n.mean())
        if self.moment == "variance":
            return clip.following(centre, best_reach_of_squares(clip, noise))
        return clip.following(centre, best_reach(clip, noise, summed=self.moment == "sum"))

    def _possible(self) -> tuple[float, float]:
        """The least and the most that the moment can be, in cells.

        No variance is above that of values half of which lie at either bound.
        """
        if self.moment == "mean":
            return float(self.grid.lower), float(self.grid.upper)
        if self.moment == "variance":
            return 0.0, (self.grid.upper - self.grid.lower) ** 2 / 4.0
        low = 0.0 if self.grid.lower >= 0 else -np.inf
        return low, (0.0 if self.grid.upper <= 0 else np.inf)


def _within_clip(found: Estimates, numbers: Estimates, least: float, most: float) -> Estimates:
    """An estimate of a quotient with the ends that an unsure number of records adds to.

    Noise and the number of records are wrong independently of each other. Numbers of records are
    filtered, so their error lasts: more releases do not lessen it.

    Args:
        found: The quotient, with ends by the noise of its total.
        numbers: Of records.
        least: The least that the quotient of clipped values can be.
        most: The most.
    """
    point = found.point
    below, above = ends(point, point - found.lower, found.upper - point, numbers)
    lower = np.maximum(point - below, np.minimum(least, point))
    return replace(found, lower=lower, upper=np.minimum(point + above, np.maximum(most, point)))


SURELY = 3.0
"""Deviations of noise beyond a value above which a belief of it is out of date."""

UNSURE = 0.4
"""Deviation of a number of records, over it, from which next to nothing is known of it."""


def _divisor(numbers: Estimates) -> FloatArray:
    """Numbers of records to divide by: at least one, and at least their own deviation."""
    return np.maximum(np.maximum(numbers.point, _deviation(numbers)), 1.0)


def _deviation(numbers: Estimates) -> FloatArray:
    """Deviation of numbers of records."""
    return np.asarray(np.sqrt(numbers.variance))


def ends(
    quotient: FloatArray, below: FloatArray, above: FloatArray, numbers: Estimates
) -> tuple[FloatArray, FloatArray]:
    """How far a quotient may lie below and above what it is, if its number is not sure.

    The error of the total and that of the number are independent. That of the number turns a
    quotient into n/n' times itself, and makes that of the total larger: on the average, or as
    much as it may where next to nothing is known of the number.

    Args:
        quotient: Of a total and `_divisor(numbers)`.
        below: How far it may lie below, by the error of the total alone.
        above: The same above.
        numbers: Of records.
    """
    n = _divisor(numbers)
    few, many = np.clip(numbers.lower, 1.0, n), np.maximum(numbers.upper, n)
    by_few, by_many = quotient * (n / few - 1.0), quotient * (n / many - 1.0)
    less, more = -np.minimum(by_few, by_many), np.maximum(by_few, by_many)
    unsure = _deviation(numbers) / n
    wide, known = np.sqrt(1.0 + 3.0 * unsure**2), unsure < UNSURE
    return (
        np.where(known, np.hypot(below * wide, less), below * n / few + np.maximum(less, 0.0)),
        np.where(known, np.hypot(above * wide, more), above * n / few + np.maximum(more, 0.0)),
    )


def noise_of_quotient(
    value: FloatArray,
    believed: FloatArray,
    doubt: FloatArray,
    own: FloatArray,
    numbers: Estimates,
    most: float,
) -> FloatArray:
    """Variance of the noise of a total over a number of records.

    The error of the number grows with the quotient. It is taken by what was believed of it before:
    by the noisy value itself, small values would pass for sure and large ones for doubtful, and
    their mean would be too small. A belief far above the value and its noise is out of date: by it
    every new value would pass for noise, and the belief would last.

    Args:
        value: The noisy quotient, for series that nothing is believed of yet.
        believed: What was believed of it; NaN of new series.
        doubt: Variance of that.
        own: Variance of the noise of the total, over the square of the number.
        numbers: Of records.
        most: Size of the quotient, at most.
    """
    square = np.where(
        np.isnan(believed), value**2, np.minimum(believed**2 + doubt, value**2 + SURELY**2 * own)
    )
    noise: FloatArray = np.minimum(
        own + square * (_deviation(numbers) / _divisor(numbers)) ** 2, most**2
    )
    return noise
