"""Coins of exact bias, tossed many at a time: how many fall heads, or which."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from streamdp.types import BoolArray, Entropy, IntArray

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
