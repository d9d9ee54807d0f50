"""Integer weights in proportion to e^(-c·d), by public tables, in a fixed number of steps.

d is cut at D >= 1, where the weight has fallen to about 2^-FEWEST of the largest, and written in
digits of DIGIT bits; a weight is a product of one table entry a digit. Entries are
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
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

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
