"""Exact draws from weights given by their logarithms: integers decide, nothing underflows."""

from __future__ import annotations

import math

import numpy as np

from streamdp.types import Entropy, FloatArray, IntArray

MANTISSA_BITS = 41
"""A weight is an integer of this many bits times a power of two: relative error 2^-42."""

SPARE_BITS = 64
"""Random bits beyond those of the total: the share of an item is off by 2^-64 at most."""

_LOG2_E = 1.0 / math.log(2.0)
_HALF_BITS = 21
_MOST_LEVELS = 4096
"""Levels of weights that are counted without looking which of them occur."""


def choose(log_weights: FloatArray, entropy: Entropy) -> int:
    """Draw index i with probability exp(w_i) / sum_j exp(w_j).

    Weights become integers m_i·2^(-d_i), m_i of 42 bits and d_i ≥ 0 of any size, so that a weight
    of e^-5000 keeps its share. Weights of one d_i form a bucket; totals are exact integers, one
    uniform integer picks bucket and item.

    Args:
        log_weights: ln of the weights, shape (n,), n < 2^21; -inf stands for weight 0.
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
            running = np.cumsum(mantissas[members].astype(np.int64))
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
