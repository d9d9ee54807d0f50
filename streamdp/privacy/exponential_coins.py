"""Uniform integers and coins of bias e^-x for rational x, exactly: no logarithm, no rounding.

References:
    Canonne, Kamath & Steinke 2020, algorithm 1.
"""

from __future__ import annotations

from streamdp.types import Entropy


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
