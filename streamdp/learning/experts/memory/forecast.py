"""Forecasts of experts for one batch, before its release and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from streamdp.learning.experts.belief.belief import Belief
from streamdp.types import FloatArray

NO_WEIGHT = 1e-4
"""Of a part of the belief that does not change what a draw is foretold to err."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Belief of experts about one batch before its release, with the own moves.

    Args:
        means: Shape (k, m).
        carried: Covariance of coefficients and level, shape (k, m·d, m).
        spreads: Covariance of the quantiles, shape (k, g, m, m).
        own: Covariance of the own moves of either kind, shape (2, m, m).
    """

    means: FloatArray
    carried: FloatArray
    spreads: FloatArray
    own: FloatArray

    def moved(self, values: FloatArray, noise: FloatArray) -> Forecast:
        """The same from a reference, which has noise of a covariance."""
        return replace(self, means=self.means + values, spreads=self.spreads + noise)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Belief of experts after it: `shares` of the widths within each expert, shape (k, g)."""

    means: FloatArray
    spreads: FloatArray
    shares: FloatArray


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of one release about the own moves.

    Args:
        excess: Sum over independent parts of what was seen less what was believed, in squared
            ranks, by kind and expert, shape (2, k).
        information: Sum of the squared shares of their variances that the release removed.
    """

    excess: FloatArray
    information: FloatArray


@dataclass(frozen=True, slots=True)
class Seen:
    """Belief before a release: of each group, and together.

    Args:
        forecasts: Of each group.
        belief: Of all experts.
        forgetful: Places of the forgetful expert's widths among the parts of the belief.
    """

    forecasts: tuple[Forecast, ...]
    belief: Belief
    forgetful: slice

    def steady(self) -> Belief:
        """Of all but the forgetful expert, which expects anything, and those of no weight."""
        kept = self.belief.weights() > NO_WEIGHT
        kept[self.forgetful] = False
        whole = self.belief
        if not kept.any():
            return whole
        return Belief(whole.log_weights[kept], whole.means[kept], whole.covariances[kept])
