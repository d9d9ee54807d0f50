"""The learner `online-gradient`: priors by gradient descent on the censored-regression surrogate.

It releases as the default learner does: the first batch is drawn, later ones are counted between
cuts at fixed levels of the learned priors (`mixture.release_plan`). Its only predictive
distribution is the one through these priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.learner import LinearPriors
from streamdp.learning.mixture.memory import Predictor
from streamdp.learning.mixture.mixture import BayesianMixture, PlanBasis
from streamdp.learning.online_gradient.descent import LossName, StepsName
from streamdp.learning.online_gradient.predictor import Gradient
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import robust_laplaces
from streamdp.types import FloatArray, Json

VERSION = 3
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
        about |= {"loss": self.loss, "steps": self.steps}
        levels = self._levels()
        known = np.array_equal(levels, _levels_of_version_3(self.targets))
        return about if known else about | {"levels": levels.tolist()}

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


def _levels_of_version_3(targets: FloatArray) -> FloatArray:
    """Return the levels that a signature of version 3 means if it names none; never to be changed.

    A state has one prior a level, so another rule of cuts must show in the signature.
    """
    tails = targets[targets < 0.1] * 0.5, 1.0 - (1.0 - targets[targets > 0.9]) * 0.5
    return np.unique(np.concatenate((np.arange(1, 10) / 10.0, targets, *tails)))
