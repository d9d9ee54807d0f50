"""Finding of keys at a price in epsilon and delta: a coin for each key that is not known yet.

The chance to find a key of n units is the largest there is for every n at once, given that it moves
by (ε, δ) at most from n to n + 1:

    p(0) = 0,   p(n + 1) = min(e^ε·p(n) + δ, 1 - e^-ε·(1 - p(n) - δ), 1).

References:
    Desfontaines, Voss, Gipson & Mandayam 2022, Differentially private partition selection.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from streamdp.mechanisms.additive_noise import AdditiveNoise
from streamdp.privacy.coins import BIAS_BITS, digits_of, toss_each
from streamdp.privacy.events import approximate, parallel, pure
from streamdp.types import BoolArray, Entropy, IntArray, Json

ONE = 2**BIAS_BITS

LEAST_EPSILON = Fraction(1, 10**4)
"""Least epsilon of one coin; its table has some 2·ln(ε/δ)/ε chances."""

_DIGITS = 60


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """Coins for keys, and noise for the counts of those that are known.

    Args:
        epsilon: Price of a unit, for all of its keys.
        delta: Likewise.
        numbers: Of how many keys the number of units differs between neighbours, by one each: k
            keys of a unit that is added or removed, 2k where one is put in the place of another.
        at_least: A key of fewer units is never found.

    Privacy: a unit moves a numbers of keys that are not known and b of known ones, a + b at most
    `numbers`. A coin loses (ε, δ)/numbers, a count ε/numbers, each independent of the others: at
    most (ε, δ) together (`mechanisms/PRIVACY.md`, 7.10).
    """

    epsilon: Fraction
    delta: Fraction
    numbers: int
    at_least: int

    def __post_init__(self) -> None:
        if self.epsilon / self.numbers < LEAST_EPSILON:
            raise ValueError(
                f"epsilon {self.epsilon} over {self.numbers} keys is less than 1e-4 for each:"
                " give more epsilon, or bound units to fewer keys"
            )
        if not Fraction(self.numbers, 10**18) <= self.delta < 1:
            raise ValueError("delta is below 1, and at least 1e-18 for each key of a unit")

    @property
    def chances(self) -> tuple[int, ...]:
        """Chances by number of units above `at_least` - 1, in units of 2^-128."""
        return chances(self.epsilon / self.numbers, self.delta / self.numbers)

    @property
    def half(self) -> int:
        """The least number of units of which a key is found with a chance of one half or more."""
        step = next(step for step, chance in enumerate(self.chances) if 2 * chance >= ONE)
        return self.at_least - 1 + step

    @property
    def noise(self) -> AdditiveNoise:
        """The noise for counts of known keys."""
        return AdditiveNoise(self.epsilon, self.numbers)

    def event(self) -> Json:
        """The event of all coins and counts, for a whole unit."""
        known = pure(self.epsilon)
        return parallel([known, approximate(known, self.delta)], parts="known or not")

    def found(self, units: IntArray, entropy: Entropy) -> BoolArray:
        """Which keys are found.

        Args:
            units: How many units hold each key that is not known.
            entropy: Source of chance.

        Privacy: neighbours' numbers differ by one in at most `numbers` places, and the chance of
        each moves by (ε, δ)/numbers as the table says, exactly. A key of fewer than `at_least`
        units has the chance 0, so one that is left out of the numbers has the law of one that is
        in them.
        """
        table = self.chances
        steps = np.clip(units - (self.at_least - 1), 0, len(table) - 1)
        fell, _ = toss_each(_digits(table), steps, entropy)
        fell[steps == len(table) - 1] = True
        return fell


@cache
def chances(epsilon: Fraction, delta: Fraction) -> tuple[int, ...]:
    """p(0), p(1), ... up to the first that is 1, in units of 2^-128.

    Privacy: every step is rounded down, with e^ε from below and e^-ε from above, so p(n + 1) ≤
    e^ε·p(n) + δ and 1 - p(n) ≤ e^ε·(1 - p(n + 1)) + δ hold of the numbers of the table themselves.
    They rise, so the same holds with n and n + 1 exchanged.
    """
    low, high = (Context(prec=_DIGITS, rounding=way) for way in (ROUND_FLOOR, ROUND_CEILING))
    above, below = epsilon.numerator, epsilon.denominator
    grow = int(low.multiply(low.divide(above, below).exp(low), ONE)) - 1
    fall = int(high.multiply(high.divide(-above, below).exp(high), ONE)) + 2
    step, found = int(delta * ONE), [0]
    while found[-1] < ONE:
        p = found[-1]
        rest = max(ONE - p - step, 0)
        found.append(min(p * grow // ONE + step, ONE + (-rest * fall // ONE), ONE))
    return tuple(found)


@cache
def _digits(table: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Bytes of a table; what is certain is not tossed, and has any."""
    return digits_of([*table[:-1], 0])
