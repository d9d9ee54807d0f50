"""Posterior of the number of records of a batch, from noisy totals and past batches.

Counts between cuts add up to a noisy total, so the number N of records of the batch costs nothing
beside them. Its prior is that of past batches, and a small share that is flat, for a day unlike
them:

    N ~ (1 - ODD)·Student(mean, variance) + ODD·uniform(0, most),    total_s ~ Normal(N, noise_s).

The posterior is computed on a grid of values. It says how likely the batch is empty, whether its
day is a usual one, and between which numbers N lies. From releases alone, so free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi, sqrt
from typing import Self

import numpy as np

from streamdp.types import FloatArray, Json

LEVEL = 0.95
"""How often the interval is to hold the number."""

FIRST_SPREAD, LEAST_SPREAD = 0.4, 0.02
"""Deviation of the number of records about its mean, as a part of it: at first, and at least."""

LEAST_VARIANCE = 1e-3
"""Least variance of a noisy total; less says no more of a whole number."""

LEAST_DEVIATION = 0.3
"""Least deviation of a total on the grid, whose steps are whole numbers if noise is small."""

FORGET = 0.05
"""Least weight of a new release in the number of records."""

ODD = 0.02
"""Share of days that have any number of records, up to thrice the usual."""

ODD_TEACHES = 0.25
"""Learning rate on an unusual day, relative to a usual one: a stream whose batches have changed is
followed in days, and a single empty day moves little."""

FREEDOM = 5.0
"""Degrees of freedom of the law of usual days: their spread is learned from few of them."""

LOG_GAMMA_RATIO = log(2.0) - log(0.75 * sqrt(pi))
"""Logarithm of gamma(3) / gamma(5/2), for 5 degrees of freedom; SciPy would take 20 MB for it."""

FEW, FEW_SHARE = 5.0, 0.1
"""Fewer records than either are hardly any."""

MAYBE = 0.025
"""Probability of hardly any records at which nothing is said of where they lie."""


@dataclass(frozen=True, slots=True)
class RecordsPrior:
    """Prior of the number of records of the next batch.

    Args:
        mean: Of past batches, or as it is expected.
        variance: Of a batch about it.
    """

    mean: float
    variance: float

    @classmethod
    def expected(cls, rows: int) -> Self:
        """Return the prior before any release."""
        return cls(float(rows), (FIRST_SPREAD * rows) ** 2)

    def updated(self, number: Number | None, releases: int) -> RecordsPrior:
        """Return the prior after one more release.

        The law of total variance adds the posterior variance of N to that of the posterior means.

        Args:
            number: What it shows; None where nothing was counted, which teaches nothing.
            releases: How many there are now.
        """
        if number is None:
            return self
        step = max(1.0 / (releases + 1), FORGET)
        step *= number.p_usual + (1.0 - number.p_usual) * ODD_TEACHES
        off = number.mean - self.mean
        variance = (1.0 - step) * (self.variance + step * off**2) + step * number.variance
        mean = max(self.mean + step * off, 1.0)
        return RecordsPrior(mean, max(variance, (LEAST_SPREAD * mean) ** 2))

    def to_json(self) -> Json:
        """Return the moments, which `from_json` reads exactly."""
        return [self.mean, self.variance]

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`; older states hold a third number."""
        mean, variance, *_ = map(float, state)
        return cls(mean, variance)


@dataclass(frozen=True, eq=False)
class Number:
    """Posterior of the number of records of one batch.

    Args:
        values: Increasing whole numbers, shape (k,).
        weights: Their probabilities.
        p_usual: Probability that the day is one like those before.
        n_usual: Records of a usual batch.
    """

    values: FloatArray
    weights: FloatArray
    p_usual: float
    n_usual: float

    @classmethod
    def of(
        cls, before: RecordsPrior, totals: Sequence[float], variances: Sequence[float]
    ) -> Number:
        """Return the posterior after noisy totals of the batch.

        Args:
            before: What is known from batches before it.
            totals: Noisy ones, one a stage; any finite numbers.
            variances: Of their noise.
        """
        precision = np.array([1.0 / max(each, LEAST_VARIANCE) for each in variances])
        noise = max(float(precision.sum()) ** -0.5, LEAST_DEVIATION)
        seen = float(precision @ np.array(totals) / precision.sum())
        spread, most = before.variance**0.5, max(3.0 * before.mean, seen + 5.0 * noise)
        around = (
            np.linspace(0.0, most, 200),
            before.mean + spread * np.linspace(-4.0, 4.0, 80),
            seen + noise * np.linspace(-6.0, 6.0, 240),
            np.arange(min(30.0, most) + 1.0),
        )
        values = np.unique(np.rint(np.concatenate(around)).clip(0.0, np.ceil(most)) + 0.0)
        widths = np.gradient(values) if len(values) > 1 else np.ones(1)
        fits = -0.5 * ((values - seen) / noise) ** 2
        likely = widths * np.exp(fits - fits.max())
        usual = (1.0 - ODD) * _student((values - before.mean) / spread) / spread
        both = likely * (usual + ODD / most)
        return cls(
            values, both / both.sum(), float((likely * usual).sum() / both.sum()), before.mean
        )

    @cached_property
    def mean(self) -> float:
        """Posterior mean, at least one, since shares are divided by it."""
        return max(float(self.weights @ self.values), 1.0)

    @cached_property
    def variance(self) -> float:
        """Variance of the number about its mean."""
        return float(self.weights @ (self.values - self.mean) ** 2)

    @cached_property
    def extra_sampling_variance(self) -> float:
        """Sampling variance max(E[1/N] - 1/N_usual, 0) beyond that of a usual batch."""
        each = float(self.weights @ (1.0 / np.maximum(self.values, 1.0)))
        return max(each - 1.0 / max(self.n_usual, 1.0), 0.0)

    @cached_property
    def few(self) -> float:
        """Posterior probability of too few records to say where they lie."""
        few = max(min(FEW, FEW_SHARE * self.n_usual), 1.0)
        return float(self.weights[self.values < few].sum())

    @property
    def hardly_any(self) -> bool:
        """Whether few records have a posterior probability above `MAYBE`."""
        return self.few > MAYBE

    @property
    def probably_few(self) -> bool:
        """Whether few records are likelier than not, or possible on an unusual day."""
        return self.few > 0.5 or (self.hardly_any and self.p_usual < 0.5)

    @property
    def point(self) -> float:
        """Posterior median."""
        at = np.searchsorted(np.cumsum(self.weights), 0.5).clip(max=len(self.values) - 1)
        return float(self.values[at])

    def interval(self) -> tuple[float, float]:
        """Ends between which the number lies with `LEVEL`, whole numbers.

        It reaches down to zero where the batch may well have hardly any records.
        """
        sums = np.cumsum(self.weights)
        tail = (1.0 - LEVEL) / 2.0
        ends = np.searchsorted(sums, (tail, 1.0 - tail)).clip(max=len(sums) - 1)
        low, high = self.values[ends].tolist()
        return 0.0 if self.hardly_any else low, high


def _student(values: FloatArray) -> FloatArray:
    """Density of Student's law of `FREEDOM` degrees, scaled to variance one."""
    scale = FREEDOM - 2.0
    factor = LOG_GAMMA_RATIO - 0.5 * np.log(np.pi * scale)
    found: FloatArray = np.exp(factor - (FREEDOM + 1.0) / 2.0 * np.log1p(values**2 / scale))
    return found
