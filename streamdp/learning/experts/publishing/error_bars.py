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

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.belief.density import extended
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


@dataclass(frozen=True, slots=True)
class ErrorBars:
    """Inputs of intervals beside a belief, all of them public or released.

    Args:
        targets: Quantiles, shape (m,).
        rows: Expected number of records of a batch.
        resolution: Width of a cell.
        guess: Location and spread of the column, before any release.
    """

    targets: FloatArray
    rows: int
    resolution: float
    guess: tuple[float, float]

    def around(
        self,
        belief: Belief,
        density: FloatArray,
        noise: Mapping[int, float],
        released: Mapping[int, float],
        outside: tuple[BoolArray, BoolArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Ends that hold the quantiles of 95 % of batches, non-decreasing; each of shape (m,).

        Args:
            belief: After a release.
            density: Share of a batch per unit of value at each quantile, shape (m,).
            noise: Deviation in ranks of what was measured, by the index of the quantile.
            released: What was measured.
            outside: Which quantiles may have been drawn below the batch, and which above.
        """
        point = belief.point()
        least = self._sampling(noise)
        ranks = np.sqrt(np.maximum((belief.deviations() * density) ** 2, least) + self.rows**-2.0)
        away = REACH * ranks * (ALONE if len(point) == 1 else 1.0)
        crossed = np.stack((point, belief.medians()))
        lower = crossed.min(axis=0) - away / density
        upper = crossed.max(axis=0) + away / density
        if len(point) > 1:
            for tail in TAILS:
                lower = np.minimum(lower, self._on_curve(point, self.targets - away, tail))
                upper = np.maximum(upper, self._on_curve(point, self.targets + away, tail))
        moved = self._moved(point, noise, released)
        lower, upper = lower + moved.clip(max=0.0), upper + moved.clip(min=0.0)
        self._reach_inwards(point, lower, upper, max(noise.values(), default=0.0), outside)
        cell, half = self.resolution, self.resolution / 2.0
        lower, upper = np.floor((lower - half) / cell) * cell, np.ceil((upper + half) / cell) * cell
        return np.maximum.accumulate(lower), np.maximum.accumulate(upper)

    def _reach_inwards(
        self,
        point: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        noise: float,
        outside: tuple[BoolArray, BoolArray],
    ) -> None:
        """Move the inner ends of quantiles that noise may carry out of the batch."""
        unit, last = noise / math.sqrt(2.0), len(point) - 1
        below, above = outside
        inner = max(point[~above], default=self.guess[0] - self.guess[1])
        lower[above] = np.minimum(lower[above], inner)
        inner = min(point[~below], default=self.guess[0] + self.guess[1])
        upper[below] = np.maximum(upper[below], inner)
        if last and 1.0 - self.targets[-1] < HELD * unit:
            lower[-1] = min(lower[-1], point[-2])
        if last and self.targets[0] < HELD * unit:
            upper[0] = max(upper[0], point[1])

    def _moved(
        self, point: FloatArray, noise: Mapping[int, float], released: Mapping[int, float]
    ) -> FloatArray:
        """How far from a belief a quantile lies if the batch is a sample and the belief its source.

        The share of sampling in the variance of what was measured about the belief.
        """
        moved = np.zeros(len(point))
        for index, deviation in noise.items():
            sampling = self.targets[index] * (1.0 - self.targets[index]) / self.rows
            share = sampling / (sampling + deviation**2)
            moved[index] = share * (released[index] - point[index])
        return moved

    def _sampling(self, noise: Mapping[int, float]) -> FloatArray:
        """Least variance in ranks: that of a sample, as far as the measurement leaves it open."""
        least = np.asarray(self.targets * (1.0 - self.targets) / self.rows)
        for index, deviation in noise.items():
            least[index] = 1.0 / (1.0 / least[index] + 1.0 / deviation**2)
        return least

    def _on_curve(self, point: FloatArray, ranks: FloatArray, tail: float) -> FloatArray:
        """Values at some ranks, straight against a standard law between the quantiles."""
        end = 0.5 / self.rows
        law, wanted = np.full(1, tail), ranks.clip(end, 1.0 - end)
        standard, at = tukey(self.targets, law), tukey(wanted, law)
        values = point + 1e-3 * self.resolution * np.arange(len(point))
        return extended(at, standard, values, 2)
