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

`exponential_weights` are integers in proportion to e^(-c·d), by public tables, in a fixed number of
steps. d is cut at D >= 1, where the weight has fallen to about 2^-FEWEST of the largest, and
written in digits of DIGIT bits; a weight is a product of one table entry a digit. Entries are
e^(-c'·d)·2^BITS rounded down, with c' = c·(1 - MARGIN), or with c' = 70 if that is less: one point
behind the best is then as far as any.

Privacy: with weights that were exactly e^(-c'·min(d, D)) a choice would lose, between neighbours
whose scores change by amounts of range R, bounded range c'·R: d = best - score changes by numbers
in an interval of length R that holds 0, and min(·, D) leaves each change between 0 and itself.
Rounding moves a weight by less than a share of 2^(FEWEST + 2 - BITS) a digit, 2^-140 in all, and a
choice by chance of CHANCE bits by less still: both together move a log ratio by less than 2^-137.
That is less than c·R·MARGIN for every c·R above 2^-97, so the loss is below c·R as it is written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

from streamdp.privacy.draws import exactly_below, exponential_coin
from streamdp.types import Entropy

BITS = 256
FEWEST = 101
MARGIN = Fraction(1, 2**40)
CHANCE = 512
"""Bits of chance of one choice."""

DIGIT = 10
_DEEPEST = 70
"""e^-70 is just above 2^-FEWEST."""

_PRECISION = 100
"""Decimal digits of an entry before it is rounded; `Decimal.exp` rounds correctly."""


@dataclass(frozen=True, slots=True)
class ExponentialWeights:
    """Tables for one exponent; public.

    Args:
        deepest: D.
        tables: Of each digit, from the lowest.
    """

    deepest: int
    tables: tuple[tuple[int, ...], ...]

    def of(self, behind: int) -> int:
        """The weight of a score so far behind the best; 2^BITS at none.

        Args:
            behind: At least 0. Private: the steps are the same for all.
        """
        rest, weight = min(behind, self.deepest), 1 << BITS
        for table in self.tables:
            weight = weight * table[rest & (2**DIGIT - 1)] >> BITS
            rest >>= DIGIT
        return weight


@functools.lru_cache(maxsize=256)
def exponential_weights(exponent: Fraction) -> ExponentialWeights:
    """The tables of an exponent.

    Args:
        exponent: c, positive.
    """
    less = min(exponent * (1 - MARGIN), Fraction(_DEEPEST))
    deepest = math.floor(_DEEPEST / less)
    digits = max(1, math.ceil(deepest.bit_length() / DIGIT))
    entries = range(2**DIGIT)
    tables = tuple(
        tuple(_entry(less, number << (DIGIT * digit), deepest) for number in entries)
        for digit in range(digits)
    )
    return ExponentialWeights(deepest, tables)


def _entry(exponent: Fraction, behind: int, deepest: int) -> int:
    """e^(-c·behind)·2^BITS, rounded down; nought beyond the deepest, which is never looked up."""
    if behind > deepest:
        return 0
    with localcontext(prec=_PRECISION):
        power = Decimal(exponent.numerator * behind) / Decimal(exponent.denominator)
        return int((-power).exp() * 2**BITS)


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
