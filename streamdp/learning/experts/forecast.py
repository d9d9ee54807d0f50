"""Forecasts of experts for one batch: before its release, after it, and in the unit of ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray


@dataclass(frozen=True, slots=True)
class Usual:
    """How a batch usually looks, which turns ranks into values.

    Args:
        density: Share of a batch per unit of value at each quantile, shape (m,).
        common: Projection on the common directions, in ranks, shape (m, m).
        resolution: Width of a cell.
    """

    density: FloatArray
    common: FloatArray
    resolution: float

    def in_values(self, ranks: FloatArray) -> FloatArray:
        """A covariance of ranks as one of values."""
        return np.asarray(ranks / self.density[:, None] / self.density)

    def in_ranks(self, values: FloatArray) -> FloatArray:
        """The inverse."""
        return np.asarray(self.density[:, None] * values * self.density)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Belief of experts about one batch before its release, with the own moves.

    Args:
        means: Shape (k, m).
        carried: Covariance of coefficients and level, shape (k, m·d, m).
        spreads: Covariance of the quantiles, shape (k, g, m, m).
        own: Covariance of the own moves, shape (m, m).
    """

    means: FloatArray
    carried: FloatArray
    spreads: FloatArray
    own: FloatArray


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
        excess: Sum over quantiles of what was seen less what was believed, in squared ranks.
        information: Sum of the squared shares of the own variance that the release removed.
    """

    excess: FloatArray
    information: FloatArray
