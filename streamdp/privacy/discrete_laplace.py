"""Two-sided noise on the integers of the discrete Laplace law, exactly as it is written.

Coins of bias e^-x are made of coins of rational bias, and those of uniform integers: there is no
logarithm, no floating-point number and no rounding, whatever the scale.

References:
    Canonne, Kamath & Steinke 2020, algorithms 1 and 2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from streamdp.privacy.exponential_coins import exactly_below, exponential_coin
from streamdp.types import Entropy


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
