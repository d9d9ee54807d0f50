"""While little is known: draw under shapes that anyone would believe in, and learn from that.

A tree whose nodes draw jointly under broad shapes finds any place and spread, and errs the same
whether the past says anything or not; priors that learn err less once they know and more before.
So a stream opens with the former, and returns to it when its quantiles leave their forecasts.

Shapes are broad against the noise, so the root's values are the true ones and noise: increments of
rank between neighbours have Laplace errors of variance 2/(c·n)², tied to sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.belief import TINY, Belief
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.learner import Features, Smoothed
from streamdp.learning.weighted import weighted_quantiles
from streamdp.mechanisms.tree import QuantileTree
from streamdp.types import FloatArray, Json, Prior

SURPRISED, SETTLED = 6.0, 3.6
"""Day-to-day deviation of the quantiles above which broad shapes are drawn, and below which again
learned priors, in ranks times epsilon times rows: between them the errors of both cross."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Learns for the experts from releases that were not drawn from their priors.

    Args:
        experts: Whose state it is.
        tree: How these releases are drawn.
        first: Robust prior of each quantile.
    """

    experts: ExpertMixture
    tree: QuantileTree
    first: tuple[Prior, ...]
    root: list[int] = field(init=False, repr=False, compare=False)
    noise: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        node, levels = self.tree.nodes()[0], self.tree.levels()
        records = float(levels[0].sharpness(node.quantiles)) * self.experts.expected_rows
        steps = np.arange(1, len(node.targets) + 1)
        bridge = np.minimum.outer(steps, steps) - np.outer(steps, steps) / (len(steps) + 1)
        object.__setattr__(self, "root", list(node.targets))
        object.__setattr__(self, "noise", 2.0 / records**2 * bridge)

    def unsettled(self, state: Json, features: Features = ()) -> bool:
        """Whether the experts' forecast says less than a draw under broad shapes would."""
        filters = self.experts.filters(state, len(features))
        shares = np.exp(filters.log_weights).sum(axis=1)
        own = np.sqrt(np.diagonal(filters.deviations, axis1=1, axis2=2))[:, self.root]
        ranks = own @ self._densities(filters.log_gaps) / len(self.root)
        information = float(self.tree.epsilon) * self.experts.expected_rows
        bound = SETTLED if state.get("opening") else SURPRISED
        return bool(shares @ ranks / shares.sum() * information > bound)

    def describe(self) -> Json:
        """The state is that of the experts."""
        return self.experts.describe()

    def init(self) -> Json:
        """The experts' first state."""
        return self.experts.init()

    def priors(self, state: Json, count: int, features: Features = ()) -> tuple[Prior, ...]:
        """The robust priors; the shapes beside them are those of the release's form."""
        return self.first

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        """The experts' state after one more release."""
        filters = self.experts.filters(state, len(features))
        inputs = np.array([1.0, *features])
        forecast = filters.forecast(inputs)
        density = self._densities(filters.log_gaps)
        noise = self.noise / density[:, None] / density
        belief = _observed(forecast, self.root, np.array(values)[self.root], noise)
        learned = self.experts.remembered(filters, forecast, belief, inputs, values)
        return learned | {"opening": True}

    def smoothed(self, state: Json) -> tuple[Smoothed, ...]:
        """As the experts say."""
        return self.experts.smoothed(state)

    def _densities(self, log_gaps: FloatArray) -> FloatArray:
        return spacing.densities(self.experts.targets, log_gaps)[self.root]


def _observed(belief: Belief, seen: list[int], values: FloatArray, noise: FloatArray) -> Belief:
    """The belief once some quantiles were seen with normal noise of a covariance (Kalman 1960)."""
    chosen = belief.only(seen)
    innovations = chosen.covariances + noise
    inverse = np.linalg.inv(innovations)
    off = values - chosen.means
    pulled = np.einsum("eij,ej->ei", inverse, off)
    across = belief.covariances[:, :, seen]
    evidence = -0.5 * ((off * pulled).sum(axis=1) + np.linalg.slogdet(innovations)[1])
    left = belief.covariances - np.einsum("eia,eab,ejb->eij", across, inverse, across)
    rows = np.arange(left.shape[1])
    left[:, rows, rows] = np.maximum(left[:, rows, rows], TINY)
    return Belief(
        belief.log_weights + evidence, belief.means + np.einsum("eia,ea->ei", across, pulled), left
    )
