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
from streamdp.learning.averaging import Averaging
from streamdp.learning.belief import TINY, Belief
from streamdp.learning.experts import ExpertMixture
from streamdp.learning.learner import Features
from streamdp.learning.outlook import forecast_error, misfit
from streamdp.mechanisms.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import REACH
from streamdp.types import FloatArray, Json

SURPRISED, SETTLED = 1.1, 0.9
"""Error of the forecasts above which broad shapes are drawn, and below which again learned priors,
in units of the error of broad shapes."""

TURN = 10
"""Releases that experts, then broad shapes, have each to find a stream that is lost."""

EXPLAINED = 0.25
"""Part of a level's errors that is left at most where features explain a stream."""

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
        noise: Covariance of what is learned from them, in squared ranks, shape (m, m).
        error: Mean deviation of these releases if a shape fits, in ranks.
    """

    experts: ExpertMixture
    tree: QuantileTree
    prior: JointPrior
    noise: FloatArray = field(init=False, repr=False, compare=False)
    error: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        node, levels = self.tree.nodes()[0], self.tree.levels()
        records = float(levels[0].sharpness(node.quantiles)) * self.experts.expected_rows
        steps = np.arange(1, len(node.targets) + 1)
        bridge = np.minimum.outer(steps, steps) - np.outer(steps, steps) / (len(steps) + 1)
        targets = self.experts.targets
        ends = np.array([0.0, *targets[list(node.targets)], 1.0])
        between = np.array([np.interp(targets, ends, unit) for unit in np.eye(len(ends))[1:-1]])
        noise = between.T @ (2.0 / records**2 * bridge) @ between
        object.__setattr__(self, "error", float(np.sqrt(np.diag(noise)).mean()))
        filled = np.diag(np.where(np.isin(targets, ends), 0.0, MISFIT**2))
        object.__setattr__(self, "noise", noise + filled)

    def unsettled(self, state: Json, features: Features = ()) -> bool:
        """Whether the quantiles leave their forecasts too far for priors to pay; releases alone.

        With features it is asked of levels without them, unless filters that know the features are
        trusted and err far less: what the features explain looks like leaps to the levels.
        """
        known = self.experts.known(state, len(features))
        return self._reaches(state) and self._leaps(state, known, features)

    def counted(self, state: Json, learned: Json) -> Json:
        """What was learned, and for how many releases in a row a quantile lay out of reach."""
        if self._away(learned).max() < REACH:
            return learned
        return learned | {"beyond": int(state.get("beyond", 0)) + 1}

    def _reaches(self, state: Json) -> bool:
        """Whether the batches may lie among the broad shapes: elsewhere only experts find them.

        Shapes that hold nothing release some tail out of reach; so do experts that know nothing of
        a stream among them. While its middle does not tell one from the other they take turns.
        """
        away, turn = self._away(state), int(state.get("beyond", 0)) // TURN
        return bool(away.max() < REACH or (turn % 2 == 1 and np.median(away) < REACH))

    def _away(self, state: Json) -> FloatArray:
        """Distance of the last batch from the guess, in guessed scales, shape (m,)."""
        location, scale = self.experts.guess
        return np.asarray(np.abs(np.array(state.get("point", [location])) - location) / scale)

    def _leaps(self, state: Json, known: Averaging, features: Features) -> bool:
        """Whether days differ too much for forecasts; once they do, until they differ much less."""
        targets, root = self.experts.targets, self.tree.nodes()[0].targets
        told = zip(known.parts, known.inputs(np.array([1.0, *features])), strict=True)
        level, *informed = (forecast_error(*each, targets, self.error) for each in told)
        if known.lead() == 1 and informed[0] < EXPLAINED * level:
            return False
        profiles = [each.centres[0] for each in self.prior.shapes]
        broad = self.error + misfit(known.parts[0].log_gaps, targets, list(root), profiles)
        return level > (SETTLED if state.get("opening") else SURPRISED) * broad

    def learn(self, state: Json, values: tuple[float, ...], features: Features = ()) -> Json:
        """The experts' state after one more release, drawn while the state was unsettled."""
        known, inputs = self.experts.known(state, len(features)), np.array([1.0, *features])
        forecast, level = known.forecast(inputs), known.parts[0]
        density = spacing.densities(self.experts.targets, level.log_gaps)
        noise = self.noise / density[:, None] / density
        belief = _observed(forecast, np.array(values), noise)
        learned = self.experts.remembered(known, forecast, belief, inputs, values)
        return learned | {"opening": True}


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
