"""How far a choice falls short of the best, and how many records a wanted error takes (PAC).

The exponential mechanism and permute-and-flip with exponent c over a class C with prior μ choose a
candidate whose score is within ln(1/(β·μ_best))/c of the best, with probability 1 - β; μ_best is at
least the robust share λ/|C| under a learned prior, and 1/|C| under the uniform one.

References:
    McSherry & Talwar 2007; Kasiviswanathan et al. 2011 (private agnostic learning); Hoeffding 1963
    for the distance between a sample and the law it comes from.
"""

from __future__ import annotations

import math
from fractions import Fraction


def shortfall(exponent: Fraction, candidates: int, beta: float, least_prior: float = 1.0) -> float:
    """Most by which the chosen score is below the best, in units of the score.

    Args:
        exponent: c of the mechanism.
        candidates: |C|.
        beta: Probability of a larger shortfall.
        least_prior: Least prior of a candidate, times |C|.
    """
    return math.log(candidates / (least_prior * beta)) / float(exponent)


def records_needed(
    error: float, exponent: Fraction, unit: float, candidates: int, beta: float
) -> int:
    """Records with which a rule's error rate on new records is within `error` of the best rule's.

    Half the error and half of beta go to the draw, the rest to the sample.

    Args:
        error: Wanted excess error rate, in (0, 1).
        exponent: c of the mechanism.
        unit: Units of the score that one error makes.
        candidates: |C|.
        beta: Probability of a larger error.
    """
    drawn = 2.0 * shortfall(exponent, candidates, beta / 2.0) / (unit * error)
    sampled = 8.0 * math.log(4.0 * candidates / beta) / error**2
    return math.ceil(max(drawn, sampled))
