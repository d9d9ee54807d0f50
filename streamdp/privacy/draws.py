"""Exact draws from weights given by their logarithms: integers decide, nothing underflows."""

from __future__ import annotations

import math

import numpy as np

from streamdp.types import Entropy, FloatArray

MANTISSA_BITS = 41
"""A weight is an integer of this many bits times a power of two: relative error 2^-42."""

SPARE_BITS = 64
"""Random bits beyond those of the total: the share of an item is off by 2^-64 at most."""

_LOG2_E = 1.0 / math.log(2.0)


def choose(log_weights: FloatArray, entropy: Entropy) -> int:
    """Draw index i with probability exp(w_i) / sum_j exp(w_j).

    Weights become integers m_i·2^(e_i), m_i of 42 bits and e_i of any size, so that a weight of
    e^-5000 keeps its share. The total is an exact integer, one uniform integer picks the item.

    Args:
        log_weights: ln of the weights, shape (n,), n < 2^21; -inf stands for weight 0.
        entropy: Asked once.

    Returns:
        An index of positive weight; 0 if there is none.

    Privacy: the relative error of every share is below 2^-40 for |w| < 1,000 (rounding 2^-42,
    the change of base 2^-43, the spare bits 2^-64), which costs at most 4·2^-40 of pure privacy
    loss; `mechanisms.sharpness` books it.
    """
    base_two = log_weights * _LOG2_E
    peak = float(base_two.max(initial=-math.inf))
    if peak == -math.inf:
        entropy.bits(SPARE_BITS)
        return 0
    shifted = base_two - peak
    positive = np.flatnonzero(shifted > -math.inf)
    shifted = shifted[positive]
    exponents = np.floor(shifted)
    mantissas = np.rint(np.exp2(shifted - exponents + MANTISSA_BITS)).astype(np.int64)
    levels, bucket_of = np.unique(exponents, return_inverse=True)
    lowest = int(levels[0])
    order = np.argsort(bucket_of, kind="stable")
    running = np.cumsum(mantissas[order])
    ends = np.cumsum(np.bincount(bucket_of))
    starts = np.concatenate(([0], ends[:-1]))
    before = np.where(starts > 0, running[starts - 1], 0)
    sums = [int(running[end - 1] - left) for end, left in zip(ends, before, strict=True)]
    shifts = [int(level) - lowest for level in levels]
    total = sum(size << shift for size, shift in zip(sums, shifts, strict=True))
    ticket = uniform_below(total, entropy)
    for bucket in range(len(sums) - 1, -1, -1):
        width = sums[bucket] << shifts[bucket]
        if ticket < width:
            inner = int(before[bucket]) + (ticket >> shifts[bucket])
            return int(positive[order[np.searchsorted(running, inner, side="right")]])
        ticket -= width
    raise AssertionError("a ticket below the total falls in a bucket")


def uniform_below(bound: int, entropy: Entropy) -> int:
    """A uniform integer in [0, bound), every share within 2^-64 of its own size.

    Multiplies instead of rejecting: the amount of entropy used does not depend on chance.
    """
    count = bound.bit_length() + SPARE_BITS
    return (entropy.bits(count) * bound) >> count
