"""The learner `online-gradient`: priors by gradient descent on the censored-regression surrogate.

It releases as the default learner does: the first batch is drawn, later ones are counted between
cuts at the quantiles of the learned priors. It believes nothing but these priors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.learning.descent import LossName, StepsName
from streamdp.learning.mixture.gradient import Gradient
from streamdp.learning.mixture.memory import Believer
from streamdp.learning.mixture.mixture import BayesianMixture, Planned
from streamdp.priors.joint import JointPrior
from streamdp.priors.mixture import robust_laplaces
from streamdp.types import Json

VERSION = 3
"""Of the form of the state."""


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
        about = {"version": VERSION, "guess": list(self.guess)}
        return {"learner": "online-gradient", **about, "loss": self.loss, "steps": self.steps}

    def _believers(self) -> tuple[Believer, ...]:
        levels = np.union1d(self.shares, self.targets)
        return (Gradient.start(levels, self.loss, self.steps),)

    def _priors(self, planned: Planned) -> JointPrior:
        """First priors; after a release the learned ones take the robust ones' place."""
        (learned,), first = planned.memory.believers, self.first[1]
        if planned.memory.releases == 0 or not isinstance(learned, Gradient):
            return first
        descent = learned.priors(planned.around.inputs)
        at = np.searchsorted(learned.levels, self.targets)
        unit = float(self.tree.grid.resolution)
        locations = learned.places(planned.around.inputs)[at] * unit
        scales = np.maximum(descent.scales[at] * learned.unit.width, 1.0) * unit
        made = robust_laplaces(locations, scales, self.robust, self.robust_weight)
        return self._beside_public(first, made, planned.memory)
