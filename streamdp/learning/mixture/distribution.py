"""Piecewise linear cdfs over the cells of a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from streamdp.types import FloatArray, IntArray, Json
from streamdp.types.forms import rounded

KNOTS = 200
"""The most knots of a distribution that is remembered."""

CELL_ROUNDING, LEVEL_DIGITS = 2.0**-12, 11
"""What a remembered distribution is rounded to: knots to a part of the half width, at most a whole
cell, and levels to binary digits of the share beyond them. Of what a release tells these are less
than a twentieth, and so the state has a third of its bytes."""

OUTSIDE = 1e-6
"""Share beyond either end of what is known."""

LEAST_RISE = 1e-12
"""Share that is told from none."""


TENTH = 0.1
"""Level of the first decile."""

MOST_GROWTH = 0.7
"""The most that one release changes the logarithm of a distance in a tail: twice as far."""


LEAST_ODDS, MOST_POWER = 0.3, 50.0
"""Logarithm of the odds between the outer tenth and the end of the measured part from which on it
shows a power, and the largest logarithm of what a tail is longer by."""


@dataclass(frozen=True, slots=True)
class LocationScale:
    """Location and scale of a distribution.

    Args:
        centre: Median, in cells.
        half_width: Half the interdecile range, in cells.
    """

    centre: float
    half_width: float


@dataclass(frozen=True, eq=False)
class Distribution:
    """A cdf, linear between knots.

    Cell c holds what lies between c - 1 and c; a cell of many equal records has knots at both.

    Args:
        cells: Knots, increasing, shape (k,).
        levels: Of the cdf at each, non-decreasing from 0 to 1, shape (k,).
    """

    cells: FloatArray
    levels: FloatArray

    @classmethod
    def about(cls, cells: FloatArray, levels: FloatArray) -> Self:
        """Return the cdf through some points, with a step as long as the outermost beyond them.

        Args:
            cells: Increasing, shape (k,).
            levels: Of the cdf at each, non-decreasing in [0, 1], shape (k,).
        """
        steps = np.maximum(np.diff(cells), 1.0) if len(cells) > 1 else np.ones(1)
        ends = cells[:1] - steps[0], cells[-1:] + steps[-1]
        inner = levels * (1.0 - 2.0 * OUTSIDE) + OUTSIDE
        return cls(np.concatenate((ends[0], cells, ends[1])), np.concatenate(([0.0], inner, [1.0])))

    def cdf(self, cells: FloatArray) -> FloatArray:
        """Return the cdf at some cells, same shape."""
        return np.interp(cells, self.cells, self.levels)

    def quantile(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles at some levels, in general between two cells, same shape."""
        return np.interp(levels, self._rising, self.cells)

    def quantile_cells(self, levels: FloatArray) -> IntArray:
        """Return the first cells at which the cdf reaches some levels, same shape."""
        found = np.ceil(self.quantile(levels) - 1e-6).clip(self.cells[0] + 1.0, self.cells[-1])
        return found.astype(np.int64)

    @cached_property
    def centre(self) -> float:
        """Median, in cells."""
        return float(self.quantile(np.array([0.5]))[0])

    @cached_property
    def half_width(self) -> float:
        """Half the interdecile range, half a cell at least."""
        low, high = self.quantile(np.array([0.1, 0.9])).tolist()
        return float(max((high - low) / 2.0, 0.5))

    def location_scale(self) -> LocationScale:
        """Return the median and half the interdecile range."""
        return LocationScale(self.centre, self.half_width)

    def moved(self, place: LocationScale, shift: float, stretch: float) -> Distribution:
        """Return the distribution at a shift and a scale factor from a location and scale.

        Args:
            place: Where from.
            shift: In its half widths.
            stretch: Logarithm of the new width in units of it.
        """
        scale = place.half_width * math.exp(stretch) / self.half_width
        cells = (self.cells - self.centre) * scale + place.centre + shift * place.half_width
        return Distribution(cells, self.levels)

    def away(self, place: LocationScale) -> tuple[float, float]:
        """Return shift and log scale factor from a location and scale to this distribution."""
        shift = (self.centre - place.centre) / place.half_width
        return shift, math.log(self.half_width / place.half_width)

    def towards(self, other: Distribution, step: float) -> Distribution:
        """Interpolate the quantile functions of two distributions, a fraction `step` of the way.

        Beyond the outer tenths, logarithms of distances from them are taken, in half widths, and
        they grow or shrink by a bounded step. So a tail that few records show, far out by chance on
        one day and near on another, stays where it was.

        Args:
            other: Another distribution.
            step: 1 for the other one.
        """
        levels = np.union1d(self.levels, other.levels)
        mine, others = self.quantile(levels), other.quantile(levels)
        cells = mine + step * (others - mine)
        ends = np.array([TENTH, 1.0 - TENTH])
        between = self.quantile(ends) + step * (other.quantile(ends) - self.quantile(ends))
        half_width = self.half_width + step * (other.half_width - self.half_width)
        for tail, end, side in (
            (levels < ends[0], between[0], -1.0),
            (levels > ends[1], between[1], 1.0),
        ):
            here, there = (
                _lengths(
                    side * (places[tail] - each.quantile(ends)[int(side > 0)]), each.half_width
                )
                for places, each in ((mine, self), (others, other))
            )
            far = here + step * (there - here).clip(-MOST_GROWTH, MOST_GROWTH)
            cells[tail] = end + side * half_width * np.expm1(far)
        return Distribution(*_thinned(np.maximum.accumulate(cells), levels))

    def with_tails_drawn_in(self, measured: float, step: float) -> Distribution:
        """Draw tails a fraction of the way to what their measured part says, where it says less.

        A tail goes on as the measured part does: its distance from the median is a power of the
        odds, or that of a logistic law if this is longer. Distances beyond the outer tenths are
        compared by their logarithms, as in `towards`; shorter tails stay.

        Args:
            measured: Share of the records of the least tail that is measured, above 0.
            step: From 0 to 1, 1 for what the measured part says.
        """
        share, cells = min(measured, TENTH), self.cells.copy()
        tenth_odds, first_odds = (math.log(1.0 / each - 1.0) for each in (TENTH, share))
        for side in (-1.0, 1.0):
            above = self.levels if side > 0.0 else 1.0 - self.levels
            ends = np.array([1.0 - TENTH, 1.0 - share])
            tenth, first = side * (self.quantile(ends if side > 0.0 else 1.0 - ends) - self.centre)
            unit, tail = max(float(tenth), 0.5), above > 1.0 - share
            start, beyond = max(float(first), unit), np.maximum(1.0 - above[tail], OUTSIDE)
            more = np.log(1.0 / beyond - 1.0) - first_odds
            found = start + unit / tenth_odds * more
            if first_odds - tenth_odds > LEAST_ODDS:
                power = math.log(start / unit) / (first_odds - tenth_odds)
                found = np.maximum(found, start * np.exp(np.minimum(power * more, MOST_POWER)))
            here = _lengths(side * (cells[tail] - self.centre) - tenth, unit)
            far = here + step * np.minimum(_lengths(found - tenth, unit) - here, 0.0)
            cells[tail] = self.centre + side * (tenth + unit * np.expm1(far))
        cells = np.maximum.accumulate(cells)
        keep = np.append(np.diff(cells) > 0.0, True)
        return Distribution(cells[keep], self.levels[keep])

    @cached_property
    def _rising(self) -> FloatArray:
        """Levels that increase strictly, so that they can be inverted."""
        return np.asarray(self.levels + LEAST_RISE * np.arange(len(self.levels)))

    def to_json(self) -> Json:
        """Return the steps from knot to knot, rounded to what no release tells.

        Whole cells stay whole, so that equal records stay in their cell.
        """
        unit = min(2.0 ** math.floor(math.log2(self.half_width)) * CELL_ROUNDING, 1.0)
        cells, upper = np.rint(self.cells / unit) * unit, self.levels > 0.5
        tails = rounded(np.where(upper, 1.0 - self.levels, self.levels), LEVEL_DIGITS)
        keep = np.append(np.diff(cells) > 0.0, True)
        cells, levels = cells[keep], np.where(upper, 1.0 - tails, tails)[keep]
        levels[0] = 0.0
        return {
            "cell_steps": np.diff(cells, prepend=0.0),
            "level_steps": np.diff(levels, prepend=0.0),
        }

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`; older states hold the knots themselves."""
        if "shares" in state:
            return cls(state["cells"], state["shares"])
        return cls(np.cumsum(state["cell_steps"]), np.cumsum(state["level_steps"]))


def weighted_quantiles(values: FloatArray, weights: FloatArray, shares: FloatArray) -> FloatArray:
    """Return weighted quantiles of columns, each one of its values; shape (s, m).

    Where weights on both sides are equal the larger one is taken, whatever their last digits are.

    Args:
        values: Shape (i, m).
        weights: Of rows, shape (i,).
        shares: In (0, 1), shape (s,).
    """
    order = np.argsort(values, axis=0)
    sums = np.cumsum(weights[order], axis=0)
    wanted = (shares + 1e-9)[:, None, None] * sums[-1]
    at = (sums < wanted).sum(axis=1).clip(max=len(values) - 1)
    return np.take_along_axis(np.take_along_axis(values, order, axis=0), at, axis=0)


def _lengths(away: FloatArray, half_width: float) -> FloatArray:
    """Logarithms of distances in some unit, 0 for none."""
    return np.asarray(np.log1p(np.maximum(away, 0.0) / half_width))


def _thinned(cells: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Remove the inner knots that change the cdf least until `KNOTS` are left."""
    kept = np.append(np.diff(cells) > 0.0, True)
    kept[0] = True
    cells, levels = cells[kept], levels[kept]
    while len(cells) > KNOTS:
        rise = np.diff(levels) / np.maximum(np.diff(cells), 1e-9)
        change = np.abs(rise[1:] - rise[:-1]) * np.diff(cells)[:-1]
        change = np.minimum(change, np.diff(levels)[:-1] + np.diff(levels)[1:])
        change[1::2] = np.inf
        gone = min(len(cells) - KNOTS, (len(change) + 1) // 2)
        left = np.ones(len(cells), dtype=bool)
        left[1 + np.argpartition(change, gone - 1)[:gone]] = False
        cells, levels = cells[left], levels[left]
    return cells, levels
