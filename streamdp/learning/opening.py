"""While little is known: draw under shapes that anyone would believe in, and learn from that.

A tree whose nodes draw jointly under broad shapes finds any place and spread, and errs the same
whether the past says anything or not; priors that learn err less once they know and more before.
So a stream opens with the former, and returns to it when its quantiles leave their forecasts.

Shapes are broad against the noise, so the root's values are the true ones and noise: increments of
rank between neighbours have Laplace errors of variance 2/(c·n)², tied to sum to zero. Between the
root's quantiles a shape fills in, which is off by as much again and by its own misfit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamdp.learning import spacing
from streamdp.learning.belief import TINY, Belief
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.filters import Filters
from streamdp.learning.learner import Features
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import REACH
from streamdp.types import FloatArray, Json

SURPRISED, SETTLED = 6.0, 3.6
"""Day-to-day deviation of the quantiles above which broad shapes are drawn, and below which again
learned priors, in ranks times epsilon times rows: between them the errors of both cross."""

UNKNOWN = 1.8
"""What a level that never moves may be off, in the same unit, before its priors are drawn from."""

EXPLAINED = 0.25
"""Part of a level's deviations that is left at most where features explain a stream."""

MISFIT = 0.1
"""Deviation of a filled-in quantile that is due to the shape, in ranks. It is the same every day:
so high, that later draws decide."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Learns for the experts from releases that were not drawn from their priors.

    Args:
        experts: Whose state it is.
        tree: How these releases are drawn.
        prior: Broad shapes beside robust priors.
    """

    experts: ExpertMixture
    tree: QuantileTree
    prior: JointPrior
    noise: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        node, levels = self.tree.nodes()[0], self.tree.levels()
        records = float(levels[0].sharpness(node.quantiles)) * self.experts.expected_rows
        steps = np.arange(1, len(node.targets) + 1)
        bridge = np.minimum.outer(steps, steps) - np.outer(steps, steps) / (len(steps) + 1)
        targets = self.experts.targets
        ends = np.array([0.0, *targets[list(node.targets)], 1.0])
        between = np.array([np.interp(targets, ends, unit) for unit in np.eye(len(ends))[1:-1]])
        misfit = np.diag(np.where(np.isin(targets, ends), 0.0, MISFIT**2))
        noise = between.T @ (2.0 / records**2 * bridge) @ between + misfit
        object.__setattr__(self, "noise", noise)

    def unsettled(self, state: Json, features: Features = ()) -> bool:
        """Whether the quantiles leave their forecasts too far for priors to pay; releases alone.

        With features it is asked of levels without them, unless filters that know the features are
        trusted and deviate far less: what the features explain looks like leaps to the levels.
        """
        known = self.experts.known(state, len(features))
        level, *informed = known.parts
        if not self._reaches(state):
            return False
        if known.lead() == 1 and self._leap(informed[0]) < EXPLAINED * self._leap(level):
            return False
        off = np.sqrt(level.uncertainties[0, 0, 0]) * self._moves(level)[0]
        return bool(off > UNKNOWN) or self._leaps(state, level)

    def _reaches(self, state: Json) -> bool:
        """Whether the last batch lay among the broad shapes: elsewhere only the experts find it."""
        location, scale = self.experts.guess
        away = np.abs(np.array(state.get("point", location)) - location)
        return bool(away.max() < REACH * scale)

    def _leaps(self, state: Json, level: Filters) -> bool:
        """Whether days differ too much for forecasts; once they do, until they differ much less."""
        return self._leap(level) > (SETTLED if state.get("opening") else SURPRISED)

    def _leap(self, filters: Filters) -> float:
        shares = np.exp(filters.log_weights).sum(axis=1)
        return float(shares @ self._moves(filters) / shares.sum())

    def _moves(self, filters: Filters) -> FloatArray:
        """Day-to-day deviation by each expert, in ranks times epsilon times rows, shape (k,)."""
        own = np.sqrt(np.diagonal(filters.deviations, axis1=1, axis2=2))
        information = float(self.tree.epsilon) * self.experts.expected_rows
        return np.asarray((own * self._densities(filters.log_gaps)).mean(axis=1) * information)

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        """The experts' state after one more release."""
        known, inputs = self.experts.known(state, len(features)), np.array([1.0, *features])
        forecast, level = known.forecast(inputs), known.parts[0]
        density = self._densities(level.log_gaps)
        noise = self.noise / density[:, None] / density
        belief = _observed(forecast, np.array(values), noise)
        learned = self.experts.remembered(known, forecast, belief, inputs, values)
        return learned | {"opening": self._leaps(state, level)}

    def _densities(self, log_gaps: FloatArray) -> FloatArray:
        return spacing.densities(self.experts.targets, log_gaps)


def _observed(belief: Belief, values: FloatArray, noise: FloatArray) -> Belief:
    """The belief once all quantiles were seen with normal noise of a covariance (Kalman 1960)."""
    innovations = belief.covariances + noise
    gain = np.linalg.solve(innovations, belief.covariances).transpose(0, 2, 1)
    off = values - belief.means
    pulled = np.linalg.solve(innovations, off[:, :, None])[:, :, 0]
    evidence = -0.5 * ((off * pulled).sum(axis=1) + np.linalg.slogdet(innovations)[1])
    left = belief.covariances - gain @ belief.covariances
    rows = np.arange(left.shape[1])
    left[:, rows, rows] = np.maximum(left[:, rows, rows], TINY)
    means = belief.means + np.einsum("eij,ej->ei", gain, off)
    return Belief(belief.log_weights + evidence, means, left)
