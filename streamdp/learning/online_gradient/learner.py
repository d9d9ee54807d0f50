"""The learner `online-gradient`: priors by gradient descent on the censored-regression surrogate.

It releases as the default learner does: the first batch is drawn, later ones are counted between
cuts at fixed levels of the learned priors (`mixture.release_plan`). Its only predictive
distribution is the one through these priors.

Priors are those of the quantiles at all shares where a batch is cut. What a release shows of
each quantile, apart from what was believed before it, is the interval on whose loss they step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.learner import LinearPriors
from streamdp.learning.mixture.averages import GUESSED
from streamdp.learning.mixture.belief import Update
from streamdp.learning.mixture.distribution import Distribution, LocationScale
from streamdp.learning.mixture.memory import Predictor
from streamdp.learning.mixture.mixture import BayesianMixture, PlanBasis
from streamdp.learning.online_gradient.descent import Descent, LossName, StepsName
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import robust_laplaces
from streamdp.types import FloatArray, Json

UNKNOWN = LocationScale(0.0, 1.0)
"""Unit before any release."""

GRADIENT = "gradient"
"""Name of the distribution among those that a batch may have."""

LOST = 0.5
"""Weight of broad curves after a release that no believed distribution foretold."""

JUMP, ALIKE = 5.0, 0.2
"""Two batches in a row that lie so many scales off, as far as each other but for this part, are a
stream that jumped: the constants are put where it lies, and what features say is kept."""

RESTARTED = 10.0
"""A batch that lies so many units off the priors starts them anew."""

RESCALED = 4.0
"""A batch that is so many times as wide as the unit, or as narrow, gives a new unit."""

WITHIN = 0.5
"""Part of the deviation of a batch's own quantile that an interval reaches beyond it."""

ONE_DEVIATION = 0.6827
"""Probability of a normal distribution within one standard deviation."""

TAILS = np.array([64.0, 16.0, 4.0])
"""Parts of the outermost shares at which tails have knots."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """Laplace priors of the quantiles at some levels, learned by gradient descent.

    Values are standardised by location and scale of the first batch, or of one far wider or
    narrower. The priors are reset at a batch that lies more than RESTARTED units off, or of which
    two hold: its width differs by more than RESCALED, curves about the guess have more than
    LOST of the weight, it is among the first GUESSED.

    Args:
        levels: Of the quantiles, in (0, 1), increasing, shape (l,).
        descent: Their priors.
        unit: Zero and one of the standardised values, in cells.
        began: Whether there was a release.
        away: How far the last batch lay off, in the unit; 0 if it was not far.
    """

    levels: FloatArray
    descent: Descent
    unit: LocationScale = UNKNOWN
    began: bool = False
    away: float = 0.0

    @classmethod
    def start(cls, levels: FloatArray, loss: LossName, steps: StepsName) -> Self:
        """Return priors of the quantiles at some levels before any release."""
        return cls(levels, Descent.start(levels, 1, loss, steps))

    def predict(self, inputs: FloatArray) -> dict[str, Distribution]:
        """Return the distribution through the locations of the priors, by its name."""
        if not self.began:
            return {}
        return {GRADIENT: _through(self.quantiles(inputs), self.levels)}

    def updated(self, inputs: FloatArray, after: Update) -> Gradient:
        """Return the priors after one more release."""
        found, levels = after.posterior_mean.distribution(), self.levels
        place, where = found.location_scale(), found.quantile(levels)
        far = abs(np.log(place.half_width / self.unit.half_width)) > np.log(RESCALED)
        young, lost = after.before.releases < GUESSED, after.broad > LOST
        away = where - self.quantiles(inputs)
        off = float(np.median(away)) / self.unit.half_width
        if not self.began or far + young + lost > 1 or abs(off) > RESTARTED:
            start = self._anew(inputs).placed(inputs, _standard(where, place))
            return replace(self, descent=start, unit=place, began=True, away=0.0)
        priors = self.priors(inputs)
        off = off if abs(off) > JUMP * float(np.median(priors.scales)) else 0.0
        if off and abs(off - self.away) < ALIKE * abs(off):
            descent, off = priors.placed(inputs, _standard(where, self.unit)), 0.0
        else:
            descent = priors.updated(inputs, *self._shown(after, where))
        if not far:
            return replace(self, descent=descent, away=off)
        shift, stretch = found.away(self.unit)
        descent = descent.restandardised(shift, float(np.exp(stretch)))
        return replace(self, descent=descent, unit=place, away=off / float(np.exp(stretch)))

    def _shown(self, after: Update, where: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the intervals of the quantiles from the likelihood of a release, standardised."""
        levels = self.levels
        values = np.concatenate([each.quantiles(levels) for each in after.before.groups.values()])
        shown, variances = after.likelihood_moments(values, where)
        low, high = after.posterior.interval(levels, ONE_DEVIATION)
        radius = np.sqrt(variances) + WITHIN * np.maximum((high - low) / 2.0, 0.5)
        return _standard(shown - radius, self.unit), _standard(shown + radius, self.unit)

    def priors(self, inputs: FloatArray) -> Descent:
        """Return the priors, anew where a batch has other inputs than those before."""
        same = self.descent.weights.shape[1] == len(inputs)
        return self.descent if same else self._anew(inputs)

    def _anew(self, inputs: FloatArray) -> Descent:
        """Return the priors before any release."""
        return Descent.start(self.levels, len(inputs), self.descent.loss, self.descent.steps)

    def quantiles(self, inputs: FloatArray) -> FloatArray:
        """Return the cells at which a batch is believed to reach the levels."""
        return self.priors(inputs).locations(inputs) * self.unit.half_width + self.unit.centre

    def in_unit(self, cell: float) -> LinearPriors:
        """Return the priors in the unit of the column.

        Args:
            cell: Width of a cell in it.
        """
        descent, unit = self.descent, self.unit.half_width * cell
        effects = descent.weights * descent.scales[:, None] * unit
        effects[:, 0] += self.unit.centre * cell
        return LinearPriors(
            self.levels,
            descent.weights,
            descent.inverse_scales,
            effects,
            descent.scales * unit,
            descent.last_loss,
            descent.total_loss,
        )

    def finite(self) -> bool:
        """Return whether no number overflowed."""
        return self.descent.finite()

    def to_json(self) -> Json:
        """Return a state that `restored` reads exactly."""
        about = {"unit": [self.unit.centre, self.unit.half_width], "began": self.began}
        return {"descent": {**self.descent.to_json(), **about, "away": self.away}}

    def restored(self, state: Json) -> Gradient:
        """Return the priors of a state, with the levels and rules of these."""
        kept = state["descent"]
        unit = LocationScale(*map(float, kept["unit"]))
        descent = self.descent.restored(kept)
        began, away = bool(kept["began"]), float(kept["away"])
        return replace(self, descent=descent, unit=unit, began=began, away=away)


def _standard(cells: FloatArray, place: LocationScale) -> FloatArray:
    """Return cells as distances from a centre, in half widths."""
    return (cells - place.centre) / place.half_width


def _through(places: FloatArray, levels: FloatArray) -> Distribution:
    """Return the cdf through some cells and levels, with exponential tails.

    Args:
        places: Cells, non-decreasing, shape (l,).
        levels: Shares, increasing, shape (l,).
    """
    apart = max(float(places[-1] - places[0]) * 1e-3, 0.5)
    at = places + 1e-6 * np.arange(len(places))
    if len(levels) > 1:
        first = max(float(at[1] - at[0]), apart) / np.log(levels[1] / levels[0])
        last = max(float(at[-1] - at[-2]), apart) / np.log((1.0 - levels[-2]) / (1.0 - levels[-1]))
    else:
        first = last = apart
    beyond = TAILS[::-1]
    cells = np.concatenate((at[0] - first * np.log(TAILS), at, at[-1] + last * np.log(beyond)))
    shares = np.concatenate((levels[0] / TAILS, levels, 1.0 - (1.0 - levels[-1]) / beyond))
    return Distribution.about(cells, shares)


VERSION = 4
"""Version of the state's form."""


@dataclass(frozen=True, slots=True)
class OnlineGradient(BayesianMixture):
    """Prior of quantile j: Laplace((W_j·f)/φ_j, 1/φ_j), f the public features of the batch.

    Args:
        loss: Of a release: Σ U_j over the levels, or ln Σ exp U_j.
        steps: Rule of the steps.
    """

    loss: LossName = "sum"
    steps: StepsName = "newton"

    def describe(self) -> Json:
        """Return the public parameters that a state depends on."""
        about: Json = {"learner": "online-gradient", "version": VERSION, "guess": list(self.guess)}
        return about | {"loss": self.loss, "steps": self.steps, "levels": self._levels().tolist()}

    def linear_priors(self, state: Json) -> LinearPriors | None:
        """Return the priors' weights and scales; None before a release."""
        (learned,) = self._memory(state).predictors
        if not isinstance(learned, Gradient) or not learned.began:
            return None
        return learned.in_unit(float(self.tree.grid.resolution))

    def _predictors(self) -> tuple[Predictor, ...]:
        return (Gradient.start(self._levels(), self.loss, self.steps),)

    def _levels(self) -> FloatArray:
        """Levels that have a prior: those of the cuts and those that are released."""
        return np.union1d(self.cut_levels, self.targets)

    def _priors(self, basis: PlanBasis) -> JointPrior:
        """First priors; after a release the learned ones take the robust ones' place."""
        (learned,), first = basis.memory.predictors, self.first[1]
        if basis.memory.releases == 0 or not isinstance(learned, Gradient):
            return first
        descent = learned.priors(basis.facts.inputs)
        at = np.searchsorted(learned.levels, self.targets)
        unit = float(self.tree.grid.resolution)
        locations = learned.quantiles(basis.facts.inputs)[at] * unit
        scales = np.maximum(descent.scales[at] * learned.unit.half_width, 1.0) * unit
        made = robust_laplaces(locations, scales, self.robust, self.robust_weight)
        return self._beside_public(first, made, basis.memory)
