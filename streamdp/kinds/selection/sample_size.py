"""How far a choice falls short of the best, and how many records a wanted error takes (PAC).

The exponential mechanism and permute-and-flip with exponent c over a class C with prior μ choose a
candidate whose score is within ln(1/(β·μ_best))/c of the best, with probability 1 - β: candidate i
is taken at most as often as μ_i·e^(-c·(s_best - s_i))/μ_best. μ_best is at least λ/|C|: λ = 1 under
the uniform prior; under a learned one λ is its robust share times e^-c, as virtual records are
whole and two of them are off by half a unit of the score each.

On new records of the law that the n records of a batch came from, the error of the choice (a mean
loss in [0, 1]) is with probability 1 - β above that of the best candidate by at most

    α(n) = L_d/(c·n) + √(2·L_s/n),    L_d = ln(2|C|/(λ·β)),  L_s = ln(2|C|/β).

Proof. Let h* have the least true error and call h bad if its own is more than α above. The losses
of h and h* on a record differ by a number in [-1, 1], whose mean is above α for a bad h. By
Hoeffding the mean of n of them is below α - √(2·L_s/n) with probability e^(-L_s) = β/(2|C|) at
most, and for some bad h with β/2 at most. Else every bad h is more than α - √(2·L_s/n) = L_d/(c·n)
worse than h* on the batch, and the draw takes one that is so with probability β/2 at most. ∎

So neither 2·L_s/α² records, which the sample takes alone, nor L_d/(c·α), which the draw takes
alone, suffice together: n solves A/n + B/√n = α. Half of α for each would take 8·L_s/α².

References:
    McSherry & Talwar 2007; Kasiviswanathan et al. 2011 (private agnostic learning); Hoeffding 1963.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


def shortfall(exponent: Fraction, candidates: int, beta: float, least_prior: float = 1.0) -> float:
    """Most by which the chosen score is below the best, in units of the score.

    Args:
        exponent: c of the mechanism.
        candidates: |C|.
        beta: Probability of a larger shortfall.
        least_prior: λ: least prior of a candidate, times |C|.
    """
    return math.log(candidates / (least_prior * beta)) / float(exponent)


@dataclass(frozen=True, slots=True)
class Generalization:
    """α(n), and the n of a wanted α.

    Args:
        exponent: c of the mechanism.
        unit: Units of the score that one error makes.
        candidates: |C|.
        beta: Probability of a larger error.
        least_prior: λ.
    """

    exponent: Fraction
    unit: float
    candidates: int
    beta: float
    least_prior: float = 1.0

    def error(self, records: int) -> float:
        """Excess error rate on new records, for a batch of so many."""
        drawn, sampled = self._parts()
        return drawn / records + sampled / math.sqrt(records)

    def records(self, error: float) -> int:
        """Records of a batch with which the excess error rate on new records is at most this.

        Args:
            error: In (0, 1).
        """
        drawn, sampled = self._parts()
        root = (sampled + math.sqrt(sampled**2 + 4.0 * error * drawn)) / (2.0 * error)
        return math.ceil(root**2)

    def _parts(self) -> tuple[float, float]:
        """A and B of α(n) = A/n + B/√n."""
        half = self.beta / 2.0
        drawn = shortfall(self.exponent, self.candidates, half, self.least_prior) / self.unit
        return drawn, math.sqrt(2.0 * math.log(self.candidates / half))
