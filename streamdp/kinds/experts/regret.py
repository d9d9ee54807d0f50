"""Regret of the experts that were followed: a bound that holds at all releases together.

Before each batch one expert c is published as the one to follow. What it loses more than expert i
is seen with the noise of both, of which the part that the two share cancels:

    Σ_t (ℓ_t[c_t] - ℓ_t[i]) = Σ_t (y_t[c_t] - y_t[i]) + u·X_i,

X_i a sum of D_i discrete Laplace variables, u what one unit of an integer is in losses per expected
record. c_t is fixed before the noise of batch t, so e^(s·X_i - ψ(s)·D_i) is a martingale, with

    ψ(s) = ln E e^(s·X) = -ln(1 - 2·V·sinh²(s/2)),  V the variance of one variable.

By Ville's inequality s·X_i ≤ ψ(s)·D_i + ln(k·|S|/β) for all releases, all k experts and all s of a
grid S, with probability 1 - β.

Reads releases alone: post-processing, no privacy cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.privacy.draws import discrete_laplace_variance
from streamdp.types import FloatArray, IntArray, Json

GRID = 12
"""Values of s, each half of the one before."""

LARGEST_RATE = 30.0
"""Largest rate s, where the noise is next to none."""


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """Released losses of what was followed, against those of each expert.

    Args:
        releases: After which an expert was followed.
        behind: Σ (y[c] - y[i]), shape (k,).
        parted: D_i: noisy integers in which followed and expert differed, shape (k,).
    """

    releases: int
    behind: FloatArray
    parted: IntArray

    @classmethod
    def nothing(cls, experts: int) -> Followed:
        """The record before anything was followed."""
        return cls(0, np.zeros(experts), np.zeros(experts, dtype=np.int64))

    def after(self, losses: FloatArray, matrix: FloatArray, chosen: int) -> Followed:
        """The record with one more batch.

        Args:
            losses: Released of each expert, shape (k,).
            matrix: From integers to losses, shape (k, m).
            chosen: The expert that was followed.
        """
        parted = np.count_nonzero(matrix != matrix[chosen], axis=1)
        behind = self.behind + losses[chosen] - losses
        return Followed(self.releases + 1, behind, self.parted + parted)

    def to_json(self) -> Json:
        """Numbers alone, as the store keeps them."""
        return [self.releases, self.behind.tolist(), self.parted.tolist()]

    @classmethod
    def from_json(cls, state: Json) -> Followed:
        """The inverse of `to_json`."""
        releases, behind, parted = state
        return cls(releases, np.array(behind), np.array(parted, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class RegretBound:
    """The bound, from public parameters of the noise.

    Args:
        scale: Of the noise on each integer.
        unit: u.
        beta: β.
    """

    scale: Fraction
    unit: float
    beta: float

    def average(self, followed: Followed) -> float | None:
        """Most by which what was followed lost more a batch than any expert; None at the start."""
        if followed.releases == 0:
            return None
        parted = followed.parted.astype(float)
        cost = math.log(len(parted) * GRID / self.beta)
        rates = [min(0.5 / float(self.scale), LARGEST_RATE) / 2**n for n in range(GRID)]
        widest = np.min([(self._growth(rate) * parted + cost) / rate for rate in rates], axis=0)
        noise = np.where(parted > 0, widest, 0.0)
        return float((followed.behind + self.unit * noise).max()) / followed.releases

    def _growth(self, rate: float) -> float:
        """ψ(s) at the rate s."""
        variance = discrete_laplace_variance(self.scale)
        return -math.log1p(-2.0 * variance * math.sinh(rate / 2.0) ** 2)
