"""One step of a forward pass: out_i = ln Σ_{i' ≤ i} e^x_i'·K(r_i - r_i' - D), no subtraction.

K(x) = e^(-c·|x|) + e^-45: the second term keeps every weight within a public range, so that
choices stay cheap and their rounding bounded, whatever the number of records.

`LongPass` takes O(p) for p points. The kernel splits in two exponentials: points with
r' ≤ r_i - D (side A, decaying to the left), and those with r' in (r_i - D, r_i] (side B, decaying
to the right). A is one running sum. B is a window: with ranks cut in blocks of length D it holds
just one edge of a block, so it is a tail of the block before and a head of its own. All sums are
of positive terms, and all exponents are relative to a point nearby.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from streamdp.types import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

CLIP = 45.0
"""-ln of the kernel far from its peak: e^-45 = 3e-20 of utility is what it can lose."""

_RISE = 600.0
"""A running sum that grows by more than e^600 would underflow in its first terms."""


class LongPass:
    """The step over one row of points in O(p); what depends on ranks alone is found once.

    Args:
        ranks: r, non-decreasing, shape (p,).
        wanted: D ≥ 0; 0 only if all ranks are 0.
        sharpness: c > 0.
    """

    def __init__(self, ranks: FloatArray, wanted: float, sharpness: float) -> None:
        self._any = wanted > 0.0
        if not self._any:
            return
        blocks = np.floor(ranks / wanted)
        self._starts = np.flatnonzero(np.diff(blocks, prepend=-1.0))
        self._stops = np.append(self._starts[1:], len(ranks))
        number = np.repeat(np.arange(len(self._starts)), self._stops - self._starts)
        own = self._starts[number]
        adjoining = np.diff(blocks[self._starts], prepend=-2.0) == 1.0
        previous = np.where(adjoining, np.append(0, self._starts[:-1]), self._starts)[number]
        before = np.searchsorted(ranks, ranks - wanted, side="right")
        before = np.clip(before, previous, own)
        reach = ranks - wanted
        self._a, self._a_decay = self._decay(before - 1, before > 0, reach, ranks, sharpness)
        self._b, self._b_decay = self._decay(before, before < own, reach, ranks, -sharpness)
        self._head_decay = np.minimum(sharpness * (ranks - ranks[own] - wanted), 0.0)
        self._offsets = sharpness * (ranks - ranks[own])
        self._jumps = sharpness * np.diff(ranks, prepend=0.0)[self._starts]

    @staticmethod
    def _decay(
        index: IntArray, valid: BoolArray, reach: FloatArray, ranks: FloatArray, sign: float
    ) -> tuple[IntArray, FloatArray]:
        """Where a sum is looked up and what its move to `reach` costs; all if there is none."""
        index = np.where(valid, index, 0)
        decay = np.maximum(sign * (reach - ranks[index]), 0.0)
        return index, np.where(valid, -decay, -np.inf)

    def step(self, log_terms: FloatArray) -> FloatArray:
        """Sums of each block, then A + B + the kernel's floor for each point.

        Args:
            log_terms: x, finite, shape (p,).
        """
        floor = running_log_sum(log_terms) - CLIP
        if not self._any:
            return np.logaddexp(floor + CLIP, floor)
        left, head, tail = (np.empty(len(log_terms)) for _ in range(3))
        rising, falling = log_terms + self._offsets, log_terms - self._offsets
        carry = -np.inf
        for start, stop, jump in zip(
            self._starts.tolist(), self._stops.tolist(), self._jumps.tolist(), strict=True
        ):
            left[start:stop] = running_log_sum(rising[start:stop], carry - jump)
            head[start:stop] = running_log_sum(falling[start:stop])
            tail[start:stop] = running_log_sum(falling[start:stop][::-1])[::-1]
            carry = float(left[stop - 1] - self._offsets[stop - 1])
        left -= self._offsets
        tail += self._offsets
        total = log_add(head + self._head_decay, tail[self._b] + self._b_decay)
        total = log_add(total, left[self._a] + self._a_decay)
        return log_add(total, floor)


def log_add(finite: FloatArray, other: FloatArray) -> FloatArray:
    """ln(e^a + e^b), a finite, b perhaps -inf; a third of the time `logaddexp` takes."""
    smaller = np.exp(-np.abs(finite - other))
    smaller += 1.0
    return np.asarray(np.maximum(finite, other) + np.log(smaller, out=smaller))


def log_kernel(exponents: FloatArray) -> FloatArray:
    """ln K for c·|x|; 1-Lipschitz and falling, so the range of a cost's change is not larger."""
    return log_add(-exponents, np.full((), -CLIP))


def running_log_sum(log_terms: FloatArray, carry: float = -np.inf) -> FloatArray:
    """ln(e^carry + Σ_{i' ≤ i} e^x_i') for each i; every term positive, so nothing cancels."""
    peak = max(float(log_terms.max()), carry)
    if max(float(log_terms[0]), carry) < peak - _RISE:
        return np.logaddexp.accumulate(np.append(carry, log_terms))[1:]
    sums = np.exp(log_terms - peak)
    sums[0] += np.exp(carry - peak)
    np.cumsum(sums, out=sums)
    np.log(sums, out=sums)
    sums += peak
    return sums


def dense_pass(
    log_terms: FloatArray, misses: FloatArray, ordered: BoolArray, sharpness: float
) -> FloatArray:
    """The step over many rows of few points, each pair by itself.

    Args:
        log_terms: x, shape (p, rows).
        misses: r_i - r_i' - D at [i', i, row], shape (p, p, rows).
        ordered: Whether i' may come before i, same shape.
        sharpness: c > 0.

    Returns:
        Shape (p, rows), -inf where no pair is ordered.
    """
    exponents = log_kernel(sharpness * np.abs(misses))
    exponents += log_terms[:, None, :]
    np.putmask(exponents, ~ordered, -np.inf)
    return log_sum(exponents)


def log_sum(log_terms: FloatArray) -> FloatArray:
    """ln Σ e^x along the first axis; -inf for a sum of nothing. Overwrites its argument."""
    peak = log_terms.max(axis=0)
    peak[~np.isfinite(peak)] = 0.0
    log_terms -= peak
    np.exp(log_terms, out=log_terms)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(log_terms.sum(axis=0)) + peak)
