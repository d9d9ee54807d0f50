"""Exponentially weighted averages of past cdfs, and a regression on public numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from streamdp.learning.mixture.belief import Update
from streamdp.learning.mixture.distribution import Distribution, LocationScale
from streamdp.types import FloatArray, Json
from streamdp.types.forms import rounded

FIRST_LEVEL, FIRST_EFFECT = 3.0, 0.5
"""Deviations before any release: of what all batches have in common, and of what an input does."""

ERROR = 0.2
"""Deviation of a batch from what its numbers say."""

DISCOUNT = 0.995
"""Weight of a release relative to that of the next."""

LARGEST = np.array([30.0, 3.0])
"""Shift and logarithm of a stretch, at most."""


DIGITS = 12
"""Binary digits of the sums that are remembered."""


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Bayesian linear regression of a batch's shift and stretch on its public numbers.

    They are those of a batch against a reference: by how many of its half widths the middle is
    shifted, and the logarithm of what it is stretched by.

    A batch of which a release shows little has little weight.

    References:
        West & Harrison 1997, chapter 4 (regression that forgets by a discount).

    Args:
        products: Σ w·x·xᵀ of past inputs, for shift and for stretch; shape (2, d, d).
        moments: Σ w·x·y, shape (2, d).
    """

    products: FloatArray
    moments: FloatArray

    @classmethod
    def start(cls, count: int) -> Self:
        """Return the regression before any release, for so many inputs."""
        return cls(np.zeros((2, count, count)), np.zeros((2, count)))

    def predict(self, inputs: FloatArray) -> tuple[float, float]:
        """Predict shift and log scale factor of a batch with inputs, a one first; shape (d,)."""
        first = np.full(len(inputs), (ERROR / FIRST_EFFECT) ** 2)
        first[0] = (ERROR / FIRST_LEVEL) ** 2
        effects = np.linalg.solve(self.products + np.diag(first), self.moments[..., None])
        each = effects[..., 0] @ inputs
        shift, stretch = each.clip(-LARGEST, LARGEST).tolist()
        return shift, stretch

    def updated(
        self,
        inputs: FloatArray,
        found: tuple[float, float],
        variances: tuple[float, float] = (0.0, 0.0),
    ) -> Regression:
        """Return the regression updated by one batch.

        Args:
            inputs: Of the batch, a one first; shape (d,).
            found: Its shift and stretch, as its release alone shows them.
            variances: Of their errors.
        """
        each = np.array(found).clip(-LARGEST, LARGEST)
        weights = ERROR**2 / (ERROR**2 + np.array(variances))
        return Regression(
            DISCOUNT * self.products + weights[:, None, None] * np.outer(inputs, inputs),
            DISCOUNT * self.moments + np.outer(weights * each, inputs),
        )

    def to_json(self) -> Json:
        """Return the sums to `DIGITS`."""
        return {
            "products": rounded(self.products, DIGITS),
            "moments": rounded(self.moments, DIGITS),
        }

    @classmethod
    def from_json(cls, state: Json) -> Self:
        """The inverse of `to_json`."""
        return cls(state["products"], state["moments"])


STEPS = {"usual": 0.05, "of late": 0.3, "last": 1.0}
"""Rates of the exponential averages, by name."""

INPUTS = "inputs"
"""Name of the usual distribution as public numbers of a batch move it."""

MEASURED, PULL = 2.0, 0.1
"""Deviations of a count's noise from which on a release shows how many records a tail has, and how
far a tail of fewer is drawn in by each release. Without it the length of such a tail is a random
walk that mostly goes outwards: that a tail is too short shows by the records beyond it, that it is
too long by their absence alone. From development streams of
`tests.benchmarks.calibration_family`."""

GUESSED = 10
"""Releases that are taken as they stand: beliefs before them are little more than a guess."""


@dataclass(frozen=True, slots=True, eq=False)
class Averages:
    """Predictors from past batches: averages in quantile space, and the usual one moved by inputs.

    Args:
        distributions: By the names of `STEPS`; none before the first release.
        numbers: What public numbers of a batch say of it.
        origin: Where the first batch lay: numbers say how far others lie from it.
    """

    distributions: Mapping[str, Distribution]
    numbers: Regression
    origin: LocationScale

    @classmethod
    def start(cls) -> Self:
        """Return what is known before any release."""
        return cls({}, Regression.start(1), LocationScale(0.0, 1.0))

    def predict(self, inputs: FloatArray) -> dict[str, Distribution]:
        """Return believed distributions of a batch by name; none before the first release."""
        believed = dict(self.distributions)
        if believed and len(inputs) > 1:
            away = self._numbers(inputs).predict(inputs)
            believed[INPUTS] = believed["usual"].moved(self.origin, *away)
        return believed

    def updated(self, inputs: FloatArray, after: Update) -> Averages:
        """Return what is known after one more release."""
        releases, least = after.before.releases, MEASURED * np.sqrt(after.evidence.unit)
        found = after.posterior_mean.distribution().with_tails_drawn_in(least, PULL)
        taught = after.corrected_mean.distribution().with_tails_drawn_in(least, PULL)
        origin = self.origin if releases else found.location_scale()
        past = {
            name: self._step(name, found if rate == 1.0 else taught, releases)
            for name, rate in STEPS.items()
        }
        return Averages(past, self._explained(inputs, after, found, origin), origin)

    def _step(self, name: str, found: Distribution, releases: int) -> Distribution:
        """Return an average after one more distribution."""
        if not releases:
            return found
        return self.distributions[name].towards(found, max(STEPS[name], 1.0 / (releases + 1)))

    def _explained(
        self, inputs: FloatArray, after: Update, found: Distribution, origin: LocationScale
    ) -> Regression:
        """Return the regression on public numbers updated by one release."""
        known, away = self._numbers(inputs), found.away(origin)
        if after.before.releases < GUESSED:
            return known.updated(inputs, away)
        curves = [each.away(origin) for each in after.before.groups.values()]
        shown, variances = after.likelihood_moments(np.concatenate(curves), np.array(away))
        (shift, stretch), (of_shift, of_stretch) = shown.tolist(), variances.tolist()
        return known.updated(inputs, (shift, stretch), (of_shift, of_stretch))

    def _numbers(self, inputs: FloatArray) -> Regression:
        """Return the regression; a new one where a batch has another number of inputs."""
        count = len(inputs)
        known = self.numbers.products.shape[-1]
        return self.numbers if known == count else Regression.start(count)

    def finite(self) -> bool:
        """Return whether no number overflowed."""
        parts = [part for each in self.distributions.values() for part in (each.cells, each.levels)]
        return all(np.isfinite(each).all() for each in parts)

    def to_json(self) -> Json:
        """Return a state that `restored` reads."""
        return {
            "past": {name: each.to_json() for name, each in self.distributions.items()},
            "numbers": self.numbers.to_json(),
            "origin": [self.origin.centre, self.origin.half_width],
        }

    def restored(self, state: Json) -> Averages:
        """Return what a state holds."""
        return Averages(
            {name: Distribution.from_json(each) for name, each in state["past"].items()},
            Regression.from_json(state["numbers"]),
            LocationScale(*map(float, state["origin"])),
        )
