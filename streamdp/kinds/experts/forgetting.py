"""Follow the expert that leads now: a mixture over how fast old releases are forgotten.

Each rate γ of forgetting, with each prior of `Leader`, is a belief about the next losses: those of
a discounted mean of the releases so far, with what its noise and the prior leave open. A release
weighs these beliefs by how well they foretold it. A share goes back to all rates at each release,
so that after a jump of the best expert the rates that remember little take over within a day, and
longer memories once they hold nothing else.

Reads releases alone: post-processing, no privacy cost.

References:
    Raftery, Kárný & Ettler 2010 (dynamic model averaging).
    Herbster & Warmuth 1998 (fixed share).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.kinds.experts.leader import Leader
from streamdp.types import FloatArray, Json

RATES = np.array([0.0, *(2.0 ** (-1.0 / releases) for releases in (1, 2, 4, 8, 16, 32)), 1.0])
"""Factors of the weight of old releases at each new one."""

SHARED = 0.02
"""Share of each prior's weight that goes to all rates alike at each release."""

ANY = 0.001
"""Share of all weight that goes to all rates and priors alike."""

FREEDOM = 4.0
"""Degrees of freedom of the law by which releases weigh beliefs: batches differ by more than by
noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Memories:
    """Discounted sums of released losses, one a rate of forgetting; and weights of the beliefs.

    Args:
        totals: Σ γ^age·y, shape (r, k).
        weights: Σ γ^age, shape (r,).
        squares: Σ γ^(2·age), shape (r,).
        shares: Weights of rates and priors, shape (r, h, s); they sum to one.
    """

    totals: FloatArray
    weights: FloatArray
    squares: FloatArray
    shares: FloatArray

    @classmethod
    def nothing(cls, leader: Leader) -> Memories:
        """Return the memory before any release, in which all beliefs weigh the same."""
        shape = len(RATES), *leader.variances.shape[:2]
        shares, zeros = np.full(shape, 1.0 / np.prod(shape)), np.zeros(len(RATES))
        return cls(np.zeros((len(RATES), leader.experts)), zeros, zeros, shares)

    @property
    def mean(self) -> FloatArray:
        """Mean of all releases alike, shape (k,)."""
        return np.asarray(self.totals[-1] / self.weights[-1])

    @property
    def noise(self) -> float:
        """Variance of that mean over that of one release."""
        return float(self.squares[-1] / self.weights[-1] ** 2)

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        arrays = (self.totals, self.weights, self.squares, self.shares)
        return [array.tolist() for array in arrays]

    @classmethod
    def from_json(cls, state: Json) -> Memories:
        """The inverse of `to_json`."""
        return cls(*(np.array(array, dtype=float) for array in state))

    def leading(self, leader: Leader) -> FloatArray:
        """All weight on the expert that leads; the same for all before anything was seen."""
        if not self.weights.any():
            return np.full(leader.experts, 1.0 / leader.experts)
        means, _ = self._believed(leader)
        return leader.first((self.shares[..., None] * means).sum(axis=(0, 2)))

    def after(self, leader: Leader, losses: FloatArray) -> Memories:
        """Update the memories after the released losses of one more batch, shape (k,)."""
        means, open_ = self._believed(leader)
        off = (leader.whiten @ losses)[:, None] - means
        variances, size = open_ + 1.0, off.shape[-1]
        far = (off * off / variances).sum(axis=-1) / FREEDOM
        logs = np.log(self.shares) - 0.5 * (FREEDOM + size) * np.log1p(far)
        logs -= 0.5 * np.log(variances).sum(axis=-1)
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        shares = (1.0 - SHARED) * shares + SHARED * shares.sum(axis=0) / len(RATES)
        return Memories(
            RATES[:, None] * self.totals + losses,
            RATES * self.weights + 1.0,
            RATES**2 * self.squares + 1.0,
            (1.0 - ANY) * shares + ANY / shares.size,
        )

    def _believed(self, leader: Leader) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the losses under each rate and prior, shape (r, h, s, k - 1).

        What a rate has not seen is as the prior says.
        """
        weights = np.where(self.weights > 0.0, self.weights, 1.0)[:, None, None, None]
        white = np.moveaxis(leader.whiten @ self.totals.T, 2, 0)[:, :, None] / weights
        seen = (self.weights > 0.0)[:, None, None, None]
        noise = np.where(seen, self.squares[:, None, None, None] / weights**2, 1.0)
        left = leader.variances / (leader.variances + noise)
        means = np.where(seen, left * white, 0.0)
        return means, np.where(seen, left * noise, leader.variances)
