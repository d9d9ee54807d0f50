"""Keys are found in the data at a price, without one unit deciding it.

At a price in epsilon and delta a coin is tossed for each key that is not known yet. The chance to
find a key of n units is the largest there is for every n at once, given that it moves by (ε, δ) at
most from n to n + 1:

    p(0) = 0,   p(n + 1) = min(e^ε·p(n) + δ, 1 - e^-ε·(1 - p(n) - δ), 1).

At a price in rho and delta a key of n units is found if n + Z ≥ at_least + t, Z of the discrete
Gaussian law, σ² = k/(2ρ), and P(Z ≥ t) ≤ δ/k. Only whether it is above is asked, so that is a coin
whose bias is a tail of that law: all coins are tossed at once, to the bit.

References:
    Desfontaines, Voss, Gipson & Mandayam 2022, Differentially private partition selection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from streamdp.mechanisms.noise import AdditiveNoise, GaussianNoise
from streamdp.privacy.draws import BIAS_BITS, digits_of, toss_each
from streamdp.privacy.events import approximate, parallel, pure, zero_concentrated
from streamdp.privacy.price import Price
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
        table = _border_digits(self.noise.squared, self.distance)
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
def _border_digits(squared: Fraction, distance: int) -> npt.NDArray[np.uint8]:
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


Selection = TruncatedGeometric | GaussianThreshold


def selection_at(
    price: Price, delta: Fraction, keys: int, at_least: int, *, substitute: bool = False
) -> Selection:
    """Coins for keys, and noise for the counts of known ones, at a price for a whole unit.

    At a price in epsilon the truncated geometric law is the best there is. At one in rho Gaussian
    noise finds keys of a third of the units that it would.

    Args:
        price: Of all keys of a unit.
        delta: Likewise.
        keys: The most keys of one unit that count.
        at_least: A key of fewer units is never found.
        substitute: Whether a neighbour may have other keys in the place of a unit's: twice as many
            numbers differ, and each costs half.

    Raises:
        ValueError: Price or delta are too small for so many keys.
    """
    numbers = 2 * keys if substitute else keys
    if price.measure == "rho":
        return GaussianThreshold(price.amount, delta, numbers, at_least)
    return TruncatedGeometric(price.amount, delta, numbers, at_least)
