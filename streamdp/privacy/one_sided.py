"""One-sided exponential noise on the integers whose privacy loss is exact, as computed."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from streamdp.privacy.coins import BIAS_BITS, heads
from streamdp.types import Entropy


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
