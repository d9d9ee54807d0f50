"""Choose one of finitely many candidates by integer scores: two mechanisms, drawn with integers.

The exponential mechanism draws a candidate in proportion to e^(c·score), in a fixed number of
steps. Permute-and-flip proposes candidates in random order and accepts one with a coin of bias
e^(-c·(best - score)): its time depends on the scores. Only differences of scores matter, so the
loss is c times the *range* of the scores' changes: the largest change of a candidate minus the
smallest, over the candidates, between neighbours.

A public integer may be added to every score (a prior as virtual records): it changes no range.

References:
    McSherry & Talwar 2007 (the exponential mechanism); Durfee & Rogers 2019 (its bounded range);
    McKenna & Sheldon 2020 (permute-and-flip); Ding et al. 2021 (its law is that of the best score
    after one-sided exponential noise).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from streamdp.mechanisms.exponential_weights import CHANCE, exponential_weights
from streamdp.privacy.exponential_coins import exactly_below, exponential_coin
from streamdp.types import Entropy


def exponent(epsilon: Fraction, score_range: Fraction | int) -> Fraction:
    """c = epsilon/range, for both mechanisms.

    Args:
        epsilon: Pure loss of one draw, positive.
        score_range: Range of the change of the scores, over candidates, between neighbours:
            1 if one record adds 0 or 1 to each score; 2 if it adds -1 ... 1; twice that if
            neighbours substitute a record.
    """
    return epsilon / Fraction(score_range)


def exponential_choice(scores: Sequence[int], sharpness: Fraction, entropy: Entropy) -> int:
    """Index i with P(i) ∝ e^(c·score_i), in a number of steps that does not depend on the scores.

    One pass over the candidates weighs them, and one finds where a fixed number of random bits
    falls among the weights; neither ends early. What is left of time is how long the host takes
    for integers of a few sizes. c is taken 2^-40 lower, which pays for rounding.

    Args:
        scores: Integers, at least one; higher is better. Private.
        sharpness: c = `exponent`.
        entropy: Source of chance; `CHANCE` bits are used.

    Privacy: loss of range c·R for neighbours that change the scores by amounts of range R:
    `bounded-range` (`exponential_weights` has the proof).
    """
    best, weights = max(scores), exponential_weights(sharpness)
    ends = list(accumulate(weights.of(best - score) for score in scores))
    place = entropy.bits(CHANCE) * ends[-1] >> CHANCE
    return sum(end <= place for end in ends)


def permute_and_flip(scores: Sequence[int], sharpness: Fraction, entropy: Entropy) -> int:
    """The first candidate, in random order, whose coin of bias e^(-c·(best - score)) falls heads.

    Its expected score is at least that of the exponential mechanism with the same c.

    Args:
        scores: Integers, at least one; higher is better. Private.
        sharpness: c = `exponent`.
        entropy: Source of chance.

    Privacy: pure loss c·R for neighbours that change the scores by amounts of range R: the law is
    that of the largest score + X, X exponential of rate c, and P(X ≥ x + R) ≥ e^(-c·R)·P(X ≥ x).
    Not of bounded range: `pure`. Time and chance used are not to be shown.
    """
    best, waiting = max(scores), list(range(len(scores)))
    while True:
        place = exactly_below(len(waiting), entropy)
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        proposed = waiting.pop()
        if _accepts(best - scores[proposed], sharpness, entropy):
            return proposed


def _accepts(short: int, sharpness: Fraction, entropy: Entropy) -> bool:
    return exponential_coin(int(short) * sharpness.numerator, sharpness.denominator, entropy)
