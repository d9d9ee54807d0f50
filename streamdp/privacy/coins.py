"""Coins of exact bias, tossed many at a time: only how many fall heads is asked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from streamdp.types import Entropy

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
