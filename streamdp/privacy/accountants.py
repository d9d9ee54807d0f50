"""Conversions between measures of loss, each rounded to the safe side on exact numbers.

An ε-DP mechanism is ε·tanh(ε/2)-zCDP. A ρ-zCDP mechanism is (ε, δ)-DP for every α > 1 with

    ε = αρ + ln(1 − 1/α) + (ln(1/δ) − ln α)/(α − 1)

(Canonne, Kamath & Steinke 2020, Proposition 12, with the Rényi loss αρ of order α). Any α is a
proof, so a search in floating-point numbers may choose it; the bound itself is evaluated with 50
digits, whose logarithms are correctly rounded.

Losses between streams that are several steps apart are those of `mechanisms/PRIVACY.md`, the claim.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import Measure

_EXACT = Context(prec=50)
_UP = Context(prec=50, rounding=ROUND_CEILING)
_SLACK = Decimal("1e-20")
"""More than all roundings of one evaluation together, in nano units."""

_FLAT = 100
"""Epsilon from which on 1 − tanh(ε/2) is below 1e-43."""

_FINE = 10**30
"""Denominator of a ρ that is rounded up."""


def epsilon_of_rho(rho_nano: int, delta: Fraction) -> int:
    """Nano units of ε such that ρ-zCDP implies (ε, δ)-DP.

    >>> epsilon_of_rho(500_000_000, Fraction(1, 10**6))
    5221534445

    Args:
        rho_nano: Zero-concentrated loss, in nano units.
        delta: Above 0, below 1.
    """
    if rho_nano == 0:
        return 0
    alpha = Decimal(_best_order(rho_nano / NANO, math.log(1 / delta)))
    one = Decimal(1)
    numbers = _EXACT
    log_delta = numbers.subtract(
        numbers.ln(Decimal(delta.denominator)), numbers.ln(Decimal(delta.numerator))
    )
    rest = numbers.divide(numbers.subtract(log_delta, numbers.ln(alpha)), alpha - one)
    shrink = numbers.ln(numbers.divide(alpha - one, alpha))
    epsilon = numbers.add(numbers.multiply(alpha, Decimal(rho_nano)), (shrink + rest) * NANO)
    return max(int((epsilon + _SLACK).to_integral_value(ROUND_CEILING)), 0)


@functools.lru_cache(maxsize=256)
def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """Least ρ that ε-DP implies, ε·tanh(ε/2), rounded up: below ε²/2, and below ε.

    Whatever is ε-DP is a function of randomised response, which loses, with v = ε²(α − 1/2)²,

        (α − 1)·D_α = ln cosh √v − ln cosh(ε/2).

    ln cosh √v is concave in v, so it lies below its tangent at α = 1, which is α(α − 1) times
    ε·tanh(ε/2) (PRIVACY.md, 3.9). That is also the loss as α falls to 1, so less would be too
    little. In e^ε it is ε(e^ε − 1)/(e^ε + 1), which rises: an upper bound of e^ε bounds it.

    >>> float(rho_of_epsilon(Fraction(1)))
    0.46211715726000974
    """
    if epsilon >= _FLAT:
        return epsilon
    exponent = _UP.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    power = Fraction(_UP.next_plus(_UP.exp(exponent)))
    rounded = math.ceil(epsilon * (power - 1) / (power + 1) * _FINE)
    return min(Fraction(rounded, _FINE), epsilon**2 / 2)


def rho_for(epsilon: Fraction, delta: Fraction) -> int:
    """Most nano units of ρ that imply (ε, δ)-DP by `epsilon_of_rho`, hence a cap in ρ."""
    most = math.floor(epsilon * NANO)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if epsilon_of_rho(middle, delta) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _best_order(rho: float, log_delta: float) -> float:
    """The α that gives the smallest ε, nearly: a search over ln(α − 1), in which ε has one dip."""

    def epsilon(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        rest = (log_delta - math.log(order)) / (order - 1.0)
        return order * rho + math.log1p(-1.0 / order) + rest

    middle = math.log(max(math.sqrt(log_delta / rho), 1e-6))
    low, high = middle - 6.0, middle + 6.0
    for _ in range(80):
        third = (high - low) / 3.0
        if epsilon(low + third) < epsilon(high - third):
            high -= third
        else:
            low += third
    return 1.0 + math.exp((low + high) / 2.0)


def loss_of_steps(batches: Iterable[tuple[int, int]], measure: Measure) -> int:
    """The most that is lost between two streams: Σ steps·ε, or Σ steps²·ρ.

    Steps in one batch follow each other on the same draws, which is group privacy. Draws on
    different batches lose their own, which is composition.

    Args:
        batches: Of each batch that differs, how many steps, and what one step may lose there.
        measure: Of these losses.

    >>> loss_of_steps([(1, 5), (1, 5)], "rho"), loss_of_steps([(2, 5)], "rho")
    (10, 20)
    >>> loss_of_steps([(1, 5), (1, 5)], "epsilon"), loss_of_steps([(2, 5)], "epsilon")
    (10, 10)
    """
    power = 2 if measure == "rho" else 1
    return sum(steps**power * loss for steps, loss in batches)
