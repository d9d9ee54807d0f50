"""Exact draws from the operating system's entropy: coins, choices by weight, noise on integers.

Production has no other source of chance. There is no user-space generator, hence no state to copy
by a fork or a resumed snapshot, and no seed that could be stored: a seed is the noise.

Choices by weight are drawn from logarithms of the weights: integers decide, nothing underflows.
Discrete Laplace and discrete Gaussian noise is made of coins of bias e^-x, those of coins of
rational bias, and those of uniform integers: no logarithm, no floating-point number and no
rounding, whatever the scale. Discrete Gaussian noise is discrete Laplace noise that is proposed and
accepted with a coin of bias e^-x, x rational.

References:
    Canonne, Kamath & Steinke 2020, algorithm 1 (coins of bias e^-x), algorithm 2 (discrete Laplace
    noise), algorithm 3 (discrete Gaussian noise), theorem 4 (its privacy) and corollary 9 (its
    variance is at most σ²).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from streamdp.types import BoolArray, Entropy, FloatArray, IntArray


class OperatingSystemEntropy:
    """Random bits from the kernel; raises OSError if it has none to give."""

    def bits(self, count: int) -> int:
        """A uniform integer in [0, 2**count)."""
        size = (count + 7) // 8
        return int.from_bytes(os.urandom(size), "big") >> (8 * size - count)


MANTISSA_BITS = 41
"""A weight is an integer of this many bits times a power of two: relative error 2^-42."""

SPARE_BITS = 64
"""Random bits beyond those of the total: the share of an item is off by 2^-64 at most."""

_LOG2_E = 1.0 / math.log(2.0)
_HALF_BITS = 21
_MOST_SUMMED = 2**21
"""Weights of one bucket whose sum is below 2^63."""
_MOST_LEVELS = 4096
"""Levels of weights that are counted without looking which of them occur."""


def choose(log_weights: FloatArray, entropy: Entropy) -> int:
    """Draw index i with probability exp(w_i) / sum_j exp(w_j).

    Weights become integers m_i·2^(-d_i), m_i of 42 bits and d_i ≥ 0 of any size, so that a weight
    of e^-5000 keeps its share. Weights of one d_i form a bucket; totals are exact integers, one
    uniform integer picks bucket and item.

    Args:
        log_weights: ln of the weights, shape (n,), n < 2^32; -inf stands for weight 0.
        entropy: Asked once.

    Returns:
        An index of positive weight; 0 if there is none.

    Privacy: the relative error of every share is below 2^-40 for weights within e^±1000 of the
    largest (rounding 2^-42, the change of base 2^-43, the spare bits 2^-64), which costs at most
    4·2^-40 of pure privacy loss; `mechanisms.quantile_tree.sharpness` books it.
    """
    peak = float(log_weights.max(initial=-math.inf))
    if peak == -math.inf:
        entropy.bits(SPARE_BITS)
        return 0
    base_two = (log_weights - peak) * _LOG2_E
    positive = None
    if base_two.min() == -math.inf:
        positive = np.flatnonzero(base_two > -math.inf)
        base_two = base_two[positive]
    exponents = np.floor(base_two)
    base_two -= exponents
    base_two += MANTISSA_BITS
    mantissas = np.rint(np.exp2(base_two, out=base_two), out=base_two)
    levels, bucket_of = _buckets(exponents)
    sums = _exact_sums(mantissas, bucket_of, len(levels))
    shifts = [level - levels[-1] for level in levels]
    total = sum(size << shift for size, shift in zip(sums, shifts, strict=True))
    ticket = uniform_below(total, entropy)
    for bucket, (size, shift) in enumerate(zip(sums, shifts, strict=True)):
        if ticket < size << shift:
            members = np.flatnonzero(bucket_of == bucket)
            whole = np.int64 if len(members) < _MOST_SUMMED else object
            running = np.cumsum(mantissas[members].astype(np.int64), dtype=whole)
            item = int(members[np.searchsorted(running, ticket >> shift, side="right")])
            return item if positive is None else int(positive[item])
        ticket -= size << shift
    raise AssertionError("a ticket below the total falls in a bucket")


def _buckets(exponents: FloatArray) -> tuple[list[int], IntArray]:
    """Falling levels and the index of each item's level; without a sort where they are few."""
    lowest = float(exponents.min())
    if lowest > -_MOST_LEVELS:
        return list(range(0, int(lowest) - 1, -1)), (-exponents).astype(np.int64)
    negated, bucket_of = np.unique(-exponents, return_inverse=True)
    return [-int(level) for level in negated], bucket_of


def _exact_sums(mantissas: FloatArray, bucket_of: IntArray, buckets: int) -> list[int]:
    """Sum of each bucket. Halves of 21 bits keep every floating-point sum an exact integer."""
    high = np.floor(mantissas * 0.5**_HALF_BITS)
    low = mantissas - high * 2.0**_HALF_BITS
    sums = np.bincount(bucket_of, high, buckets).astype(np.int64) << _HALF_BITS
    sums += np.bincount(bucket_of, low, buckets).astype(np.int64)
    return list(sums.tolist())


def uniform_below(bound: int, entropy: Entropy) -> int:
    """A uniform integer in [0, bound), every share within 2^-64 of its own size.

    Multiplies instead of rejecting: the amount of entropy used does not depend on chance.
    """
    count = bound.bit_length() + SPARE_BITS
    return (entropy.bits(count) * bound) >> count


def exponential_coin(part: int, whole: int, entropy: Entropy) -> bool:
    """Heads with probability e^-x, x = part/whole ≥ 0: one coin of bias e^-1 for each whole one.

    Args:
        part: At least 0.
        whole: Positive.
        entropy: Source of chance; how much is used depends on chance and on x.
    """
    wholes, rest = divmod(part, whole)
    for _ in range(wholes):
        if not _coin_within_one(1, 1, entropy):
            return False
    return not rest or _coin_within_one(rest, whole, entropy)


def _coin_within_one(part: int, whole: int, entropy: Entropy) -> bool:
    """Heads with probability e^-x, x = part/whole in [0, 1].

    The first k at which a coin of bias x/k falls tails is above j with probability x^j/j!, so it
    is odd with probability 1 - x + x²/2! - ... = e^-x.
    """
    number = 1
    while exactly_below(whole * number, entropy) < part:
        number += 1
    return number % 2 == 1


def exactly_below(bound: int, entropy: Entropy) -> int:
    """A uniform integer in [0, bound), by rejection: every share is exact."""
    count = (bound - 1).bit_length()
    while (drawn := entropy.bits(count)) >= bound:
        pass
    return drawn


BIAS_BITS = 128
"""A bias that is a multiple of 2^-128 is met exactly; any other is rounded up to one."""

_CHUNK = 2**22


def heads(coins: int, bias: Fraction, entropy: Entropy) -> int:
    """How many of so many independent coins fall heads: binomial, exactly.

    A coin compares uniform bytes with the bytes of its bias and is decided by the first that
    differs. Coins are alike, so counting the undecided is enough: 1.004 bytes a coin.

    Args:
        coins: At least 0.
        bias: Probability of heads; rounded up to a multiple of 2^-128.
        entropy: Source of chance; how much is used depends on chance and the arguments alone.
    """
    threshold = math.ceil(bias * 2**BIAS_BITS)
    if threshold >= 2**BIAS_BITS:
        return coins
    digits = max(threshold, 0).to_bytes(BIAS_BITS // 8, "big")
    if coins == 1:
        return _toss(digits, entropy)
    found, undecided = 0, coins
    for byte in digits:
        if not undecided:
            break
        below = equal = 0
        for drawn in _bytes(undecided, entropy):
            below += int(np.count_nonzero(drawn < byte))
            equal += int(np.count_nonzero(drawn == byte))
        found, undecided = found + below, equal
    return found


def digits_of(biases: Sequence[int]) -> npt.NDArray[np.uint8]:
    """The bytes of biases, in units of 2^-128 and below one, the highest first: a row for each."""
    size = BIAS_BITS // 8
    text = b"".join(bias.to_bytes(size, "big") for bias in biases)
    return np.frombuffer(text, dtype=np.uint8).reshape(-1, size)


def toss_each(
    digits: npt.NDArray[np.uint8], which: IntArray, entropy: Entropy
) -> tuple[BoolArray, IntArray]:
    """Toss a coin of its own bias for each index: which fell heads, and which are undecided.

    All coins are tossed at once, 1.004 bytes a coin, as in `heads`. A coin is undecided if all its
    uniform bytes are those of its bias: tails, if that is all there is of the bias.

    Args:
        digits: Bytes of each bias (`digits_of`).
        which: The row of each coin.
        entropy: Source of chance.
    """
    fell = np.zeros(len(which), dtype=np.bool_)
    undecided = np.arange(len(which))
    for place in range(digits.shape[1]):
        if not len(undecided):
            break
        drawn = np.concatenate(list(_bytes(len(undecided), entropy)))
        wanted = digits[which[undecided], place]
        fell[undecided] = drawn < wanted
        undecided = undecided[drawn == wanted]
    return fell, undecided


def _toss(digits: bytes, entropy: Entropy) -> int:
    """Toss one coin without arrays: noise takes some twenty of them."""
    for byte in digits:
        drawn = entropy.bits(8)
        if drawn != byte:
            return int(drawn < byte)
    return 0


def _bytes(count: int, entropy: Entropy) -> Iterator[npt.NDArray[np.uint8]]:
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        yield np.frombuffer(entropy.bits(8 * size).to_bytes(size, "little"), dtype=np.uint8)


def one_sided(step_bits: int, loss: Fraction, entropy: Entropy) -> int:
    """An integer x ≥ 0 with P(x) ≤ e^loss · P(x + 2^step_bits) for every x.

    x = 2^step_bits·H + U, H and U independent. H counts heads before the first tail of a coin of
    bias b = `continuation(loss)`, so P(H + 1) = b·P(H) exactly, and b ≥ e^-loss. The law of U on
    0 ... 2^step_bits - 1 cancels, so its floating-point numbers touch accuracy alone: its binary
    digits are independent, those of a geometric variable, and x is geometric of mean about
    2^step_bits/loss.

    Args:
        step_bits: log2 of the step.
        loss: Exact, positive.
        entropy: Source of chance.

    Privacy: whoever shifts a comparison by one step pays at most `loss`, with no rounding left.
    """
    bias, whole = continuation(loss), 0
    while heads(1, bias, entropy):
        whole += 1
    rest = 0
    for digit, odd in enumerate(_digits(step_bits, loss)):
        rest += heads(1, odd, entropy) << digit
    return (whole << step_bits) + rest


@cache
def _digits(step_bits: int, loss: Fraction) -> tuple[Fraction, ...]:
    """Probability of 1 of each binary digit of U, the lowest first."""
    odds = (math.exp(-float(loss) * 2.0 ** (digit - step_bits)) for digit in range(step_bits))
    return tuple(Fraction(each / (1.0 + each)) for each in odds)


@cache
def continuation(loss: Fraction) -> Fraction:
    """A bias of at least e^-loss that `heads` meets exactly; above it by a relative 2^-39.

    The exponential is off by a few 2^-53, and `float(loss)` by 2^-53 of loss < 2^7; beyond that
    the bias is 2^-128 > e^-loss.
    """
    above = Fraction(math.exp(-float(loss))) * (1 + Fraction(1, 2**40))
    return Fraction(max(1, math.ceil(above * 2**BIAS_BITS)), 2**BIAS_BITS)


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """An integer z with P(z) in proportion to e^(-|z|/scale).

    With scale = t/s, u uniform on 0 ... t - 1 and kept with chance e^(-u/t), and v heads of bias
    e^-1 in a row, u + t·v is geometric of ratio e^(-1/t), and its s-th part, rounded down, of
    ratio e^(-s/t). A sign makes it two-sided; a negative zero is drawn again.

    Args:
        scale: Positive, exact.
        entropy: Source of chance; how much is used depends on chance and the scale alone.

    Privacy: P(a + z = x) ≤ e^(|a - b|/scale)·P(b + z = x) for all integers a, b, x.
    """
    whole, parts = scale.numerator, scale.denominator
    while True:
        rest = exactly_below(whole, entropy)
        if not exponential_coin(rest, whole, entropy):
            continue
        turns = 0
        while exponential_coin(1, 1, entropy):
            turns += 1
        size = (rest + whole * turns) // parts
        negative = entropy.bits(1)
        if size or not negative:
            return -size if negative else size


def discrete_laplace_variance(scale: Fraction) -> float:
    """Variance of the noise of a scale: 2q/(1 - q)², q = e^(-1/scale)."""
    log_ratio = -1.0 / float(scale)
    return 2.0 * math.exp(log_ratio) / math.expm1(log_ratio) ** 2


_SAME = 50
"""σ² beyond which the variance is σ² to the last bit of a floating-point number."""


def discrete_gaussian(squared: Fraction, entropy: Entropy) -> int:
    """An integer z with P(z) in proportion to e^(-z²/(2σ²)).

    With t = floor(σ) + 1, z is proposed in proportion to e^(-|z|/t) and accepted with chance
    e^(-(|z| - σ²/t)²/(2σ²)): the product is e^(-z²/(2σ²)) times a constant.

    Args:
        squared: σ², positive, exact; not its root.
        entropy: Source of chance; how much is used depends on chance and σ² alone.

    Privacy: vectors of integers with independent noise are Δ²/(2σ²)-zCDP, Δ the largest Euclidean
    distance between those of neighbours.
    """
    top, bottom = squared.numerator, squared.denominator
    step = math.isqrt(top // bottom) + 1
    whole = 2 * top * bottom * step**2
    while True:
        proposed = discrete_laplace(Fraction(step), entropy)
        part = (abs(proposed) * step * bottom - top) ** 2
        if exponential_coin(part, whole, entropy):
            return proposed


def discrete_gaussian_variance(squared: Fraction) -> float:
    """Variance of the noise of a σ²: Σ z²·e^(-z²/(2σ²)) / Σ e^(-z²/(2σ²)), at most σ²."""
    sigma2 = float(squared)
    if sigma2 > _SAME:
        return sigma2
    weights = {z: math.exp(-z * z / (2.0 * sigma2)) for z in range(1, 400)}
    second = 2.0 * sum(z * z * weight for z, weight in weights.items())
    return min(second / (1.0 + 2.0 * sum(weights.values())), sigma2)
