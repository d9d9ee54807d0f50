"""Sums, means and variances of a bounded column, clipped around what earlier releases said.

With a centre m and a reach r (`clip`), a tenth of the price buys the histogram of |x - m|, whose
sum is the number n of records with a value, and the rest S_1 = Σ clip(x - m, ±r), for a variance
halved with S_2 = Σ min((x - m)², r²). Then

    mean = m + S_1/n,    variance = S_2/n - (S_1/n)²,    sum = S_1 with m = 0,

so the error of n is multiplied by mean - m, not by the mean. n is the filtered count.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.kinds.statistics.measures.clip import DISTANCES, Clip
from streamdp.kinds.statistics.measures.protocol import LEVEL, Allowance, Asked, Rows
from streamdp.kinds.statistics.measures.series_filter import Estimates, SeriesFilter
from streamdp.types import FloatArray, Grid, Json, SumQuery, TableQuery, Term

Moment = Literal["sum", "mean", "variance"]

FOR_DISTANCES = Fraction(1, 10)
"""Share of the price that buys the histogram of distances."""

FOLLOWED = 0.3
"""Part of the way to a released mean that the centre of a variance goes."""

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

    @property
    def statistic(self) -> str:
        """Which."""
        return self.moment

    @property
    def counts(self) -> bool:
        """It does not."""
        return False

    @property
    def cells(self) -> tuple[str, ...]:
        """One row a group."""
        return ("",)

    def signature(self) -> Json:
        """Column, cells and start."""
        about = [str(self.grid.resolution), self.grid.lower, self.grid.upper, *self.start]
        return {self.moment: [self.column, self.sql], "grid": about}

    def clip(self, state: Json) -> Clip:
        """The clip of the next batch."""
        centre, reach = self.start
        if self.moment == "sum":
            centre, reach = 0, abs(centre) + reach
        return Clip.restored(state["clip"], reach) if state else Clip.first(centre, reach)

    def asked(self, state: Json, price: Allowance) -> tuple[Asked, ...]:
        """A table of distances, and one or two sums.

        Privacy: one record more changes one distance by one, and a sum by at most the size of its
        term; exchanged for another it changes two distances, and a sum by at most the width of what
        records add (a record without a value adds 0). The two sums get half of the rest each.
        """
        clip = self.clip(state)
        axis = clip.dimension(self.column, self.sql, self.grid)
        noise = price.noise(1, 2, FOR_DISTANCES, entries=2)
        distances = Asked(TableQuery((axis,), ((0,),)), noise, folded=True)
        grid = clip.grid(self.grid)
        squares = (False, True) if self.moment == "variance" else (False,)
        share = (1 - FOR_DISTANCES) / len(squares)
        sums = []
        for square in squares:
            term = Term(self.column, grid, clip.centre, self.sql, square)
            low, high = min(0, term.span[0]), max(0, term.span[1])
            noise = price.noise(max(term.size, 1), max(high - low, 1), share)
            sums.append(Asked(SumQuery((term,)), noise))
        return (distances, *sums)

    def follow(
        self,
        state: Json,
        asked: Sequence[Asked],
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
        counted, numbers = SeriesFilter(keys, gaussian=gaussian).step(
            state.get("count"), distances.sum(axis=1).tolist(), spread.tolist(), weekday
        )
        seen = clip.observed(
            [int(number) for number in distances.sum(axis=0)],
            len(groups) * asked[0].noise.variance,
        )
        n = np.maximum(numbers.point, 1.0)
        n_error = (numbers.upper - numbers.lower) / 2
        value, reach, variance = self._raw(seen, asked, noisy, n, n_error)
        base = self._base(seen, float(n.mean()))
        series = SeriesFilter(keys, nonnegative=False, base=base, gaussian=gaussian)
        filtered, found = series.step(
            state.get("series"), value.tolist(), variance.tolist(), weekday
        )
        beside = np.array(noisy[1], dtype=np.float64) / n
        following = self._following(seen, asked, found, beside, n)
        after = {"count": counted, "series": filtered, "clip": following.stored()}
        return after, self._rows(value, reach, variance, found, seen, n)

    def _raw(
        self,
        clip: Clip,
        asked: Sequence[Asked],
        noisy: Sequence[Sequence[int]],
        n: FloatArray,
        n_error: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, reach of its noise and variance of its noise, in cells.

        A mean of clipped values lies within the clip, whatever noise says of sum and number.
        """
        first = np.array(noisy[1], dtype=np.float64)
        noise = asked[1].noise
        if self.moment == "sum":
            flat = np.ones_like(first)
            return first, noise.reach(LEVEL) * flat, noise.variance * flat
        most = float(clip.reach)
        mean = np.clip(first / n, -most, most)
        mean_variance = noise.variance / n**2 + (mean * n_error / 1.645 / n) ** 2
        mean_variance = np.minimum(mean_variance, most**2)
        if self.moment == "mean":
            reach = noise.reach(LEVEL) / n + np.abs(mean) * n_error / n
            return clip.centre + mean, np.minimum(reach, 2 * most), mean_variance
        squares, second = np.array(noisy[2], dtype=np.float64), asked[2].noise
        value = squares / n - mean**2
        variance = second.variance / n**2 + 4 * mean**2 * mean_variance
        variance += (squares / n * n_error / 1.645 / n) ** 2
        return value, 1.645 * np.sqrt(variance), variance

    def _base(self, clip: Clip, n: float) -> float:
        """Variance of the least change that is told apart, in cells."""
        second = max(clip.second_moment(), 1.0)
        if self.moment == "sum":
            return n * second
        return CHANGE**2 * (second if self.moment == "mean" else second**2)

    def _following(
        self,
        clip: Clip,
        asked: Sequence[Asked],
        found: Estimates,
        beside: FloatArray,
        n: FloatArray,
    ) -> Clip:
        """The clip of the next batch, with the noise of the mean of one group.

        The centre is what is believed of the mean of all groups; for a variance, whose series is
        another, it goes a part of the way to the released mean. For a sum it stays 0, also where
        the column's bounds leave 0 out: what is summed are values, not distances.
        """
        centre = clip.centre
        if self.moment == "mean":
            centre = round(float(np.average(found.point, weights=n)))
        if self.moment == "variance":
            centre += round(FOLLOWED * float(np.average(beside, weights=n)))
        if self.moment != "sum":
            centre = min(max(centre, self.grid.lower), self.grid.upper)
        relative = asked[1].noise.variance ** 0.5 / asked[1].noise.sensitivity
        return clip.following(centre, relative / float(n.mean()))

    def _rows(
        self,
        value: FloatArray,
        reach: FloatArray,
        variance: FloatArray,
        found: Estimates,
        clip: Clip,
        n: FloatArray,
    ) -> Rows:
        """In the unit of the column (its square for a variance), with what clipping may hide."""
        step = float(self.grid.resolution) ** (2 if self.moment == "variance" else 1)
        hidden = clip.hidden() * np.ones_like(value)
        if self.moment == "sum":
            hidden = hidden * n
        if self.moment == "variance":
            hidden = 2 * hidden * clip.reach
        low, high = self._possible()
        return Rows(
            value * step,
            (value - reach - hidden) * step,
            (value + reach + hidden) * step,
            np.clip(found.point, low, high) * step,
            np.clip(found.lower - hidden, low, high) * step,
            np.clip(found.upper + hidden, low, high) * step,
            variance * step**2,
        )

    def _possible(self) -> tuple[float, float]:
        """The least and the most that the moment can be, in cells."""
        if self.moment == "mean":
            return float(self.grid.lower), float(self.grid.upper)
        return (0.0 if self.moment == "variance" else -np.inf), np.inf
