"""Finding of keys at a price in rho and delta: numbers of units with Gaussian noise above a border.

A key of n units is found if n + Z ≥ at_least + t, Z of the discrete Gaussian law, σ² = k/(2ρ), and
P(Z ≥ t) ≤ δ/k. Only whether it is above is asked, so that is a coin whose bias is a tail of that
law: all coins are tossed at once, to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from streamdp.mechanisms.gaussian_noise import GaussianNoise
from streamdp.privacy.coins import BIAS_BITS, digits_of, toss_each
from streamdp.privacy.events import approximate, parallel, zero_concentrated
from streamdp.types import BoolArray, Entropy, IntArray, Json

LARGEST_VARIANCE = 10**7
"""σ² up to which the error of `_tails` is bounded, and a table has some 10^5 chances at most."""

_MARGIN_BITS = 60
"""log2 of more than the error of a tail in `_tails`, in its last digits."""


@dataclass(frozen=True, slots=True)
class GaussianThreshold:
    """Coins for keys, and noise for the counts of those that are known.

    Args:
        rho: Price of a unit, for all of its keys.
        delta: Chance with which it may lose more.
        numbers: Of how many keys the number of units differs between neighbours, by one each.
        at_least: A key of fewer units is never found.

    Privacy: neighbours' numbers are √numbers apart at most, so noisy numbers and noisy counts lose
    ρ together. A key of `at_least` - 1 units is never found and one of `at_least` with a chance of
    at most δ/numbers: except with chance δ, neither is (`mechanisms/PRIVACY.md`, 7.10).
    """

    rho: Fraction
    delta: Fraction
    numbers: int
    at_least: int

    def __post_init__(self) -> None:
        if self.noise.squared > LARGEST_VARIANCE:
            raise ValueError(
                f"rho {self.rho} over {self.numbers} keys is noise with a variance above 1e7: give"
                " more rho, or bound units to fewer keys"
            )
        if not Fraction(self.numbers, 10**18) <= self.delta < 1:
            raise ValueError("delta is below 1, and at least 1e-18 for each key of a unit")

    @property
    def noise(self) -> GaussianNoise:
        """The noise for counts of known keys, and of the numbers that are compared."""
        return GaussianNoise(self.rho, self.numbers, self.numbers)

    @property
    def distance(self) -> int:
        """t: how far above `at_least` a noisy number must be."""
        return _distance(self.noise.squared, self.delta / self.numbers)

    @property
    def half(self) -> int:
        """The least number of units of which a key is found with a chance of one half or more."""
        return self.at_least + self.distance

    def event(self) -> Json:
        """The event of all coins and counts, for a whole unit."""
        known = zero_concentrated(self.rho)
        return parallel([known, approximate(known, self.delta)], parts="known or not")

    def chance(self, units: int, bits: int = BIAS_BITS) -> int:
        """Chance that a key of so many units is found, rounded down to units of 2^-bits."""
        if units < self.at_least:
            return 0
        return tail(self.noise.squared, self.at_least + self.distance - units, bits)

    def found(self, units: IntArray, entropy: Entropy) -> BoolArray:
        """Which keys are found.

        Args:
            units: How many units hold each key that is not known.
            entropy: Source of chance.

        Privacy: each key is found as if n + Z were compared with the border, Z exactly of its law:
        the bytes of a chance are its own to the last, and where all of them were drawn the next
        ones decide. A key of fewer than `at_least` units is never found, so one that is left out of
        the numbers has the law of one that is in them.
        """
        table = _digits(self.noise.squared, self.distance)
        steps = np.clip(units - (self.at_least - 1), 0, len(table) - 1)
        fell, undecided = toss_each(table, steps, entropy)
        for index in undecided:
            number = int(units[index])
            fell[index] = number >= self.at_least and self._further(number, entropy)
        return fell

    def _further(self, units: int, entropy: Entropy) -> bool:
        """Decide a coin by the digits behind those that were all drawn."""
        bits, low = BIAS_BITS, (1 << BIAS_BITS) - 1
        while True:
            bits += BIAS_BITS
            wanted, drawn = self.chance(units, bits) & low, entropy.bits(BIAS_BITS)
            if drawn != wanted:
                return drawn < wanted


@cache
def _distance(squared: Fraction, delta: Fraction) -> int:
    """The least t whose bound on P(Z ≥ t) is at most delta."""
    high = 1
    while _tail_bound(squared, high) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _tail_bound(squared, middle) <= delta else (middle, high)
    return high


def _tail_bound(squared: Fraction, reach: int) -> Fraction:
    """A bound on P(Z ≥ reach), for reach ≥ 1, rounded up.

    e^(-(r + j)²/2σ²) ≤ e^(-r²/2σ²)·e^(-rj/σ²) for j ≥ 0 bounds the weights beyond by a geometric
    sum; all weights together are at least 1, the one of 0, and by Poisson's summation at least
    √(2πσ²).
    """
    numbers = Context(prec=50, rounding=ROUND_CEILING)
    first, ratio = (
        numbers.exp(numbers.divide(-part.numerator, part.denominator))
        for part in (Fraction(reach**2) / (2 * squared), Fraction(reach) / squared)
    )
    # √(2πσ²) from below: 3.14159 for π, and floor of the root
    total = max(Fraction(1), _root(2 * Fraction("3.14159") * squared))
    slack = 1 + Fraction(1, 10**30)
    return Fraction(first) / (1 - Fraction(ratio)) / total * slack


def _root(number: Fraction) -> Fraction:
    """A square root, rounded down to a multiple of 10^-6."""
    return Fraction(math.isqrt(number.numerator * 10**12 // number.denominator), 10**6)


def tail(squared: Fraction, reach: int, bits: int = BIAS_BITS) -> int:
    """P(Z ≥ reach) in units of 2^-bits, rounded down; right to the last digit."""
    found = _tails(squared, bits)
    if reach >= 1:
        return found[reach - 1] if reach <= len(found) else 0
    # P(Z ≥ r) = 1 - P(Z ≥ 1 - r), and `_try_tails` shows that no tail is a multiple of 2^-bits
    return (1 << bits) - 1 - (found[-reach] if -reach < len(found) else 0)


@cache
def _digits(squared: Fraction, distance: int) -> npt.NDArray[np.uint8]:
    """Bytes of the chances for 0, 1, ... units above `at_least` - 1; the last for all beyond."""
    last = distance + len(_tails(squared, BIAS_BITS)) + 1
    return digits_of([0, *(tail(squared, distance + 1 - step) for step in range(1, last + 1))])


@cache
def _tails(squared: Fraction, bits: int) -> tuple[int, ...]:
    """P(Z ≥ 1), P(Z ≥ 2), ... in units of 2^-bits, rounded down, up to the last that is not 0.

    Weights w(z) = e^(-z²/2σ²) follow from each other as integers of some digits more: w(z + 1) is
    w(z)·r(z), and r(z + 1) is r(z)·e^(-1/σ²). A step adds at most four units of the last digit to
    the error of r and that of r to the error of w; so with less than 2^17 steps a w is off by less
    than 2^36 units, their sum by less than 2^53, what is beyond the last by σ²/z < 2^24 more, and a
    quotient of sums by less than 2^55. Where that could change a digit that is kept, more are
    taken.
    """
    spare = 96
    while True:
        found = _try_tails(squared, bits, spare)
        if found is not None:
            return found
        spare *= 2


def _try_tails(squared: Fraction, bits: int, spare: int) -> tuple[int, ...] | None:
    """The tails by so many spare digits; None where they do not suffice."""
    places = bits + spare
    ratio = _exponential(Fraction(-1, 2) / squared, places)
    shrink = ratio * ratio >> places
    weights, weight = list[int](), ratio
    while weight:
        weights.append(weight)
        ratio = ratio * shrink >> places
        weight = weight * ratio >> places
    sums, total = list[int](), 0
    for weight in reversed(weights):
        total += weight
        sums.append(total)
    whole = (1 << places) + 2 * total
    found, margin = list[int](), 1 << _MARGIN_BITS
    for each in reversed(sums):
        quotient = (each << places) // whole
        low, high = max(quotient - margin, 0) >> spare, (quotient + margin) >> spare
        if low != high:
            return None
        if not low:
            break
        found.append(low)
    return tuple(found)


def _exponential(power: Fraction, places: int) -> int:
    """e^power in units of 2^-places, off by less than one of them."""
    numbers = Context(prec=places // 3 + 20)
    found: Decimal = numbers.exp(numbers.divide(power.numerator, power.denominator))
    return int(numbers.multiply(found, 1 << places))
