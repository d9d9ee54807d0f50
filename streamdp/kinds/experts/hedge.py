"""AdaHedge: weights over experts whose rate of learning follows from the losses that were seen.

    w_i ∝ e^(-η·L_i),  η = ln k / Δ,  Δ = Σ_t (w_t·ℓ_t - m_t),  m = -(1/η)·ln Σ_i w_i e^(-η·ℓ_i)

L_i are cumulative losses, Δ is the cumulative mixability gap. Losses may have any size and sign, so
noisy ones are admitted, and neither a horizon nor a range is needed.

References:
    De Rooij, van Erven, Grünwald & Koolen 2014: regret ≤ 2·Δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Hedge:
    """State of AdaHedge after some losses.

    Args:
        losses: Cumulative loss of each expert, shape (k,).
        gap: Cumulative mixability gap Δ, at least 0.
    """

    losses: FloatArray
    gap: float = 0.0

    @classmethod
    def over(cls, experts: int) -> Hedge:
        """The state before any loss: all experts weigh the same."""
        return cls(np.zeros(experts))

    def weights(self) -> FloatArray:
        """Weight of each expert for the next loss, shape (k,); they sum to one."""
        if self.gap == 0.0:
            leading = (self.losses == self.losses.min()).astype(float)
            return np.asarray(leading / leading.sum())
        behind = self.losses - self.losses.min()
        weights = np.exp(-self._rate() * behind)
        return np.asarray(weights / weights.sum())

    def observe(self, losses: FloatArray) -> Hedge:
        """The state after one more loss of each expert, shape (k,)."""
        played = float(self.weights() @ losses)
        after = self.losses + losses
        mixed = self._mixed(after) - self._mixed(self.losses)
        return Hedge(after, self.gap + max(played - mixed, 0.0))

    def _mixed(self, losses: FloatArray) -> float:
        """Mix loss -(1/η)·ln Σ e^(-η·L_i), whose increments are those of the weighted experts."""
        least = float(losses.min())
        if self.gap == 0.0:
            return least
        rate = self._rate()
        return least - math.log(float(np.exp(-rate * (losses - least)).sum())) / rate

    def _rate(self) -> float:
        return math.log(max(len(self.losses), 2)) / self.gap
