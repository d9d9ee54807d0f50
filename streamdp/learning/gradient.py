"""The learner `online-gradient`: priors by gradient descent on the censored-regression surrogate.

It releases as the default learner does: the first batch is drawn, later ones are counted between
cuts at the quantiles of the learned priors. What a release shows of each quantile, apart from what
was believed before it, is the interval on whose loss the priors take a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from streamdp.learning.descent import Descent, LossName, StepsName
from streamdp.learning.experts.belief import After
from streamdp.learning.experts.distribution import Distribution, Place
from streamdp.learning.experts.inputs import Regression
from streamdp.learning.experts.memory import Around, Memory
from streamdp.learning.experts.mixture import ExpertMixture, Planned
from streamdp.priors.joint import JointPrior
from streamdp.priors.mixture import robust_laplaces
from streamdp.types import FloatArray, Json

GRADIENT = "gradient"
"""Name of the learned distribution among those that a batch may have."""

VERSION = 1
"""Of the form of the state."""

LOST = 0.5
"""Weight of broad curves after a release from which on the learned priors begin anew."""

FARTHEST_UNIT = 4.0
"""A batch that is so many times as wide as the unit, or as narrow, gives a new unit."""

WITHIN = 0.5
"""Part of the deviation of a batch's own quantile that an interval reaches beyond it."""

TAILS = np.array([64.0, 16.0, 4.0])
"""Parts of the outermost shares at which tails have knots."""


@dataclass(frozen=True, slots=True, eq=False)
class GradientMemory(Memory):
    """What past releases say, as priors that gradient descent learns.

    Values are standardised by the place of the first batch, or of one after which nothing that was
    learned holds, or that is far wider or narrower.

    Args:
        descent: The priors.
    """

    descent: Descent = field(kw_only=True)

    @classmethod
    def of(cls, memory: Memory, descent: Descent) -> GradientMemory:
        """Return a memory with these priors and everything else of another memory."""
        rest = {each.name: getattr(memory, each.name) for each in fields(Memory)}
        return cls(**rest, descent=descent)

    def learned(self, around: Around, after: After) -> Memory:
        """Return the memory after one more release.

        Args:
            around: The batch.
            after: Belief about it after the release.
        """
        new, inputs, levels = (
            Memory.learned(self, around, after),
            around.inputs,
            self.descent.levels,
        )
        found = after.known.distribution()
        if not self.releases or new.lost > LOST:
            start = Descent.start(levels, len(inputs), self.descent.loss, self.descent.steps)
            place = found.lies()
            descent = start.placed(inputs, _standard(found.place(levels), place))
            return GradientMemory.of(replace(new, origin=place), descent)
        values = np.concatenate([each.places(levels) for each in self.curves(around).values()])
        weights, place = self.belief(around).weights, self.origin
        shown, variances = after.news(weights, values, found.place(levels))
        low, high = after.known.ends(levels, 1.0)
        radius = np.sqrt(variances) + WITHIN * np.maximum((high - low) / 2.0, 0.5)
        ends = _standard(shown - radius, place), _standard(shown + radius, place)
        descent = self.priors(inputs).learned(inputs, *ends)
        if abs(np.log(found.width / place.width)) > np.log(FARTHEST_UNIT):
            shift, stretch = found.away(place)
            descent, place = descent.restandardised(shift, float(np.exp(stretch))), found.lies()
        return GradientMemory.of(replace(new, origin=place), descent)

    def priors(self, inputs: FloatArray) -> Descent:
        """Return the priors, anew where a batch has other inputs than those before."""
        kept = self.descent
        if kept.weights.shape[1] == len(inputs):
            return kept
        return Descent.start(kept.levels, len(inputs), kept.loss, kept.steps)

    def places(self, inputs: FloatArray) -> FloatArray:
        """Return the cells at which a batch is believed to reach the levels."""
        return self.priors(inputs).locations(inputs) * self.origin.width + self.origin.centre

    def finite(self) -> bool:
        """Return whether no number overflowed."""
        return Memory.finite(self) and self.descent.finite()

    def to_json(self) -> Json:
        """Return a state that is read exactly."""
        return {**Memory.to_json(self), "descent": self.descent.to_json()}

    def _believed(self, around: Around) -> dict[str, Distribution]:
        """The learned distribution."""
        if not self.releases:
            return {}
        return {GRADIENT: _through(self.places(around.inputs), self.descent.levels)}

    def _explained(
        self, around: Around, after: After, found: Distribution, origin: Place
    ) -> Regression:
        """No regression: the priors depend on public numbers themselves."""
        return self.numbers

    def _remembered(self, found: Distribution) -> dict[str, Distribution]:
        """Nothing: the priors are all that is remembered."""
        return {}


@dataclass(frozen=True, slots=True)
class OnlineGradient(ExpertMixture):
    """Prior of quantile j: Laplace((W_j·f)/φ_j, 1/φ_j), f the public features of the batch.

    Args:
        loss: Of a release: Σ U_j over the levels, or ln Σ exp U_j.
        steps: Rule of the steps.
    """

    loss: LossName = "sum"
    steps: StepsName = "adagrad"

    def describe(self) -> Json:
        """Return the public parameters that a state depends on."""
        about = {"version": VERSION, "guess": list(self.guess)}
        return {"learner": "online-gradient", **about, "loss": self.loss, "steps": self.steps}

    def _memory(self, state: Json) -> Memory:
        levels = np.union1d(self.shares, self.targets)
        descent = Descent.start(levels, 1, self.loss, self.steps)
        if not state:
            return GradientMemory.of(Memory.start(self.expected_rows), descent)
        return GradientMemory.of(Memory.from_json(state), descent.restored(state["descent"]))

    def _priors(self, planned: Planned) -> JointPrior:
        """First priors; after a release the learned ones take the robust ones' place."""
        memory, first = planned.memory, self.first[1]
        if memory.releases == 0 or not isinstance(memory, GradientMemory):
            return first
        descent = memory.priors(planned.around.inputs)
        at = np.searchsorted(descent.levels, self.targets)
        unit = float(self.tree.grid.resolution)
        locations = memory.places(planned.around.inputs)[at] * unit
        scales = np.maximum(descent.scales[at] * memory.origin.width, 1.0) * unit
        learned = robust_laplaces(locations, scales, self.robust, self.robust_weight)
        return replace(first, robust=learned)


def _standard(cells: FloatArray, place: Place) -> FloatArray:
    """Cells as their distance from a centre, in half widths."""
    return (cells - place.centre) / place.width


def _through(places: FloatArray, levels: FloatArray) -> Distribution:
    """The distribution that reaches some levels at some cells, with exponential tails.

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
