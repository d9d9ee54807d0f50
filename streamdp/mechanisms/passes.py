"""One step of a forward pass: out_i = ln Σ_{i' ≤ i} exp(x_i' - c·|r_i - r_i' - D|), no subtraction.

`long_pass` takes O(p) for p points. The kernel splits in two exponentials: points with
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

_RISE = 600.0
"""A running sum that grows by more than e^600 would underflow in its first terms."""


def long_pass(
    log_terms: FloatArray, ranks: FloatArray, wanted: float, sharpness: float
) -> FloatArray:
    """The step over one row of points in O(p).

    Args:
        log_terms: x, finite, shape (p,).
        ranks: r, non-decreasing, shape (p,).
        wanted: D ≥ 0.
        sharpness: c > 0.
    """
    if wanted <= 0.0:
        return running_log_sum(log_terms)
    blocks = np.floor(ranks / wanted)
    starts = np.flatnonzero(np.diff(blocks, prepend=-1.0))
    stops = np.append(starts[1:], len(ranks))
    before = np.searchsorted(ranks, ranks - wanted, side="right")
    return _Windows(log_terms, ranks, wanted, sharpness).combine(starts, stops, blocks, before)


class _Windows:
    """Running sums of one step. `left`, `head` and `tail` are relative to their own point."""

    def __init__(
        self, log_terms: FloatArray, ranks: FloatArray, wanted: float, sharpness: float
    ) -> None:
        self.terms, self.ranks, self.wanted = log_terms, ranks, wanted
        self.sharpness = sharpness
        self.left = np.empty(len(ranks))
        self.head = np.empty(len(ranks))
        self.tail = np.empty(len(ranks))

    def combine(
        self, starts: IntArray, stops: IntArray, blocks: FloatArray, before: IntArray
    ) -> FloatArray:
        """Sums of each block, then A + B for each point."""
        carry = -np.inf
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            carry = self._block(start, stop, carry)
        own = np.repeat(starts, stops - starts)
        previous = np.where(blocks[np.maximum(own - 1, 0)] == blocks - 1.0, _of(starts, own), own)
        before = np.clip(before, previous, own)
        reach = self.ranks - self.wanted
        side_a = self._at(self.left, before - 1, reach, 1.0, before > 0)
        side_b = self._at(self.tail, before, reach, -1.0, before < own)
        gap = self.sharpness * (self.ranks - self.ranks[own] - self.wanted)
        return np.logaddexp(np.logaddexp(side_a, side_b), self.head + np.minimum(gap, 0.0))

    def _block(self, start: int, stop: int, carry: float) -> float:
        ranks, terms = self.ranks[start:stop], self.terms[start:stop]
        offsets = self.sharpness * (ranks - ranks[0])
        if start:
            carry -= self.sharpness * float(ranks[0] - self.ranks[start - 1])
        self.left[start:stop] = running_log_sum(terms + offsets, carry) - offsets
        self.head[start:stop] = running_log_sum(terms - offsets)
        self.tail[start:stop] = running_log_sum((terms - offsets)[::-1])[::-1] + offsets
        return float(self.left[stop - 1])

    def _at(
        self, sums: FloatArray, index: IntArray, reach: FloatArray, sign: float, valid: BoolArray
    ) -> FloatArray:
        """Sums at another point, moved to `reach`; nothing where there is none."""
        index = np.where(valid, index, 0)
        distance = sign * (reach - self.ranks[index])
        moved = sums[index] - self.sharpness * np.maximum(distance, 0.0)
        return np.where(valid, moved, -np.inf)


def _of(starts: IntArray, own: IntArray) -> IntArray:
    """Start of the block before the one that starts at `own`."""
    index = np.searchsorted(starts, own)
    return np.asarray(starts[np.maximum(index - 1, 0)])


def running_log_sum(log_terms: FloatArray, carry: float = -np.inf) -> FloatArray:
    """ln(e^carry + Σ_{i' ≤ i} e^x_i') for each i; every term positive, so nothing cancels."""
    peak = max(float(log_terms.max()), carry)
    if max(float(log_terms[0]), carry) < peak - _RISE:
        return np.logaddexp.accumulate(np.append(carry, log_terms))[1:]
    sums = np.exp(log_terms - peak)
    sums[0] += np.exp(carry - peak)
    np.cumsum(sums, out=sums)
    return np.asarray(np.log(sums) + peak)


def dense_pass(
    log_terms: FloatArray, misses: FloatArray, ordered: BoolArray, sharpness: float
) -> FloatArray:
    """The step over many rows of few points, each pair by itself.

    Args:
        log_terms: x, shape (rows, p).
        misses: r_i - r_i' - D at [row, i', i], shape (rows, p, p).
        ordered: Whether i' may come before i, same shape.
        sharpness: c > 0.

    Returns:
        Shape (rows, p), -inf where no pair is ordered.
    """
    exponents = log_terms[:, :, None] - sharpness * np.abs(misses)
    return log_sum(np.where(ordered, exponents, -np.inf), axis=1)


def log_sum(log_terms: FloatArray, axis: int = -1) -> FloatArray:
    """ln Σ e^x along an axis; -inf for a sum of nothing."""
    peak = log_terms.max(axis=axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(np.exp(log_terms - peak).sum(axis=axis, keepdims=True)) + peak
    return np.asarray(np.squeeze(logs, axis=axis))
