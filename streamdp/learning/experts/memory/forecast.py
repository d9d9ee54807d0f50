"""Forecasts of experts for one batch, before its release and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.memory.own import whitened
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
class Change:
    """Change of the belief of experts about one batch by its release.

    Args:
        seen: The forecast.
        inverse: Of its spreads, same shape.
        off: Means after the release less those before, shape (k, g, m, 1).
        shrunk: Spreads before the release less those after, shape (k, g, m, m).
        shares: Weights of the widths within each expert, shape (k, g).
    """

    seen: Forecast
    inverse: FloatArray
    off: FloatArray
    shrunk: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, seen: Forecast, means: FloatArray, spreads: FloatArray, shares: FloatArray) -> Self:
        """The change to means of shape (k, g, m) and spreads of shape (k, g, m, m)."""
        inverse = np.asarray(np.linalg.inv(seen.spreads), dtype=np.float64)
        off = (means - seen.means[:, None])[..., None]
        return cls(seen, inverse, off, seen.spreads - spreads, shares)

    def moments(self, part: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Second moments of a part of the spread after the release, and what that removed."""
        rest = part @ self.inverse
        away = rest @ self.off
        removed = rest @ self.shrunk @ rest.transpose(0, 1, 3, 2)
        return part + away @ away.transpose(0, 1, 3, 2) - removed, removed

    def own(self, targets: FloatArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Evidence of the release about the own moves, by kind and expert, each of shape (2, k).

        Returns:
            The sum over independent parts of what was seen less what was believed, in squared
            ranks, and that of the squared shares of their variances that the release removed.
        """
        square, gone = (
            np.einsum("kg,tkga->tka", self.shares, whitened(each, targets, density))
            for each in np.array([self.moments(part) for part in self.seen.own]).swapaxes(0, 1)
        )
        believed = whitened(self.seen.own, targets, density)[:, None]
        shares = np.clip(gone / believed, 0.0, 1.0)
        return (square - believed).sum(axis=2), (shares**2).sum(axis=2)


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
