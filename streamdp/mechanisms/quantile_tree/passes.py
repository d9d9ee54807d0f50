"""One step of a forward pass: out_i = ln Σ_{i' ≤ i} e^x_i'·K(r_i - r_i' - D), no subtraction.

K(x) = e^(-c·|x|) + e^-45: the second term keeps every weight within a public range, so that
choices stay cheap and their rounding bounded, whatever the number of records.

`LongPass` takes O(p) for p points. The kernel splits in two exponentials: points with
r' ≤ r_i - D (side A, decaying to the left), and those with r' in (r_i - D, r_i] (side B, decaying
to the right). Ranks are cut in blocks, and a side is a part of one block and of the next one. A
block is at most 600/c long, so no exponent in it grows with the batch. Where that is shorter than
a side, what lies beyond the two blocks is 172/c off at least: it is left out, since the kernel's
floor gives it e^127 times as much. Ranks are integers and subtracted as such, so rounding is the
same for any number of records.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import numpy.typing as npt

from streamdp.types import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

CLIP = 45.0
"""-ln of the kernel far from its peak: e^-45 = 3e-20 of utility is what it can lose."""

SHARPEST = 128.0
"""Largest c of a grain; with any larger one all grains but those of the right rank are clipped."""

_LONGEST = 600.0
"""c times the length of the longest block, and ln of the most that a linear sum rises."""


@dataclass(frozen=True, slots=True)
class Gap:
    """D = n·Δ in grains: an integer, and a rest in [0, 1), so that no n rounds it.

    >>> Gap.of(Fraction(10, 3)).ceiling
    4
    """

    whole: int
    rest: float

    @classmethod
    def of(cls, grains: Fraction) -> Self:
        """The gap of so many grains."""
        whole = math.floor(grains)
        return cls(whole, float(grains - whole))

    @property
    def ceiling(self) -> int:
        """The least integer that is not below D."""
        return self.whole + (self.rest > 0.0)

    def off(self, ranks: IntArray) -> FloatArray:
        """|rank - D|."""
        return np.asarray(np.abs((ranks - self.whole) - self.rest))


class _Blocks:
    """Points cut by their rank, and sums over parts of a block.

    Args:
        ranks: r ≥ 0 in grains, non-decreasing, shape (p,).
        length: Ranks a block has.
        sharpness: c of a grain.
    """

    def __init__(self, ranks: IntArray, length: int, sharpness: float) -> None:
        self.length = length
        self.number = ranks // length
        self.first = self.number.searchsorted(self.number)
        self.following = self.number.searchsorted(self.number, side="right")
        self.offsets = (ranks - self.number * length) * sharpness

    def before(self, log_terms: FloatArray) -> FloatArray:
        """ln Σ e^(x' - c·(r - r')) over the points of the block up to each."""
        return running_log_sum(log_terms + self.offsets, self.first) - self.offsets

    def after(self, log_terms: FloatArray) -> FloatArray:
        """ln Σ e^(x' - c·(r' - r)) over the points of the block from each on."""
        falling, block = (log_terms - self.offsets)[::-1], -self.following[::-1]
        return running_log_sum(falling, block - block[0])[::-1] + self.offsets

    def from_start(self, log_terms: FloatArray) -> FloatArray:
        """ln Σ e^(x' - c·(r' - start)) over the points of the block up to each."""
        return running_log_sum(log_terms - self.offsets, self.first)


class LongPass:
    """The step over one row of points in O(p); what depends on ranks alone is found once.

    Args:
        ranks: r ≥ 0 in grains, non-decreasing, shape (p,).
        wanted: D ≥ 0; 0 only if all ranks are 0.
        sharpness: c of a grain, in (0, `SHARPEST`].
    """

    def __init__(self, ranks: IntArray, wanted: Gap, sharpness: float) -> None:
        self._any = wanted.ceiling > 0
        if not self._any:
            return
        self._ranks, self._wanted, self._sharpness = ranks, wanted, sharpness
        half = math.floor(_LONGEST / 2 / sharpness)
        reach = ranks - wanted.ceiling
        begin = ranks.searchsorted(reach, side="right")
        self._left = left = _Blocks(ranks, half, sharpness)
        previous = np.maximum(left.first - 1, 0)
        self._previous = (
            previous,
            self._decay(
                left.number[previous] == left.number - 1,
                np.asarray((ranks - ranks[previous]) * sharpness),
            ),
        )
        self._a = self._seen(begin - 1, begin > 0)
        self._short = sharpness * wanted.ceiling <= _LONGEST
        if self._short:
            self._right = right = _Blocks(ranks, wanted.ceiling, sharpness)
            start = right.number * wanted.ceiling
            self._from_start = -sharpness * wanted.off(ranks - start)
            self._b = self._seen(begin, right.number[begin] < right.number)
            return
        self._right = right = _Blocks(ranks, min(half, (wanted.ceiling - 1) // 2), sharpness)
        number = (reach + 1) // right.length
        following = np.minimum(right.following[begin], len(ranks) - 1)
        both = (right.number[begin] == number) & (right.number[following] == number + 1)
        self._b = self._seen(begin, right.number[begin] <= number + 1)
        self._c = self._seen(following, both)

    def _seen(self, index: IntArray, valid: BoolArray) -> tuple[IntArray, FloatArray]:
        """Places at which sums are looked up, and log weights of the moves: -inf where none is."""
        index = np.where(valid, index, 0)
        off = self._wanted.off(self._ranks - self._ranks[index])
        return index, self._decay(valid, off * self._sharpness)

    @staticmethod
    def _decay(valid: BoolArray, cost: FloatArray) -> FloatArray:
        return np.where(valid, -cost, -np.inf)

    def step(self, log_terms: FloatArray) -> FloatArray:
        """The kernel's floor + A + B for each point.

        Args:
            log_terms: x, finite, shape (p,).
        """
        total = running_log_sum(log_terms) - CLIP
        if not self._any:
            return np.logaddexp(total + CLIP, total)
        left, right = self._left.before(log_terms), self._right.after(log_terms)
        left = log_add(left, _looked_up(left, self._previous))
        total = log_add(total, _looked_up(left, self._a))
        total = log_add(total, _looked_up(right, self._b))
        if self._short:
            return log_add(total, self._right.from_start(log_terms) + self._from_start)
        return log_add(total, _looked_up(right, self._c))


def _looked_up(sums: FloatArray, at: tuple[IntArray, FloatArray]) -> FloatArray:
    index, decay = at
    return np.asarray(sums[index] + decay)


def log_add(finite: FloatArray, other: FloatArray) -> FloatArray:
    """ln(e^a + e^b), a finite, b perhaps -inf; a third of the time `logaddexp` takes."""
    smaller = np.exp(-np.abs(finite - other))
    smaller += 1.0
    return np.asarray(np.maximum(finite, other) + np.log(smaller, out=smaller))


def log_kernel(exponents: FloatArray) -> FloatArray:
    """ln K for c·|x|; 1-Lipschitz and falling, so the range of a cost's change is not larger."""
    return log_add(-exponents, np.full((), -CLIP))


def running_log_sum(log_terms: FloatArray, block: IntArray | None = None) -> FloatArray:
    """ln Σ e^x_i' over the i' ≤ i of the block of each i; every term positive: nothing cancels.

    Sums are linear, relative to a power of e^600 above the largest term so far. Where that rises,
    or a block begins, a stretch begins that takes over the sum so far, or none. So a sum of p terms
    is off by p·2^-53 of itself and two roundings, however much the terms rise or fall.

    Args:
        log_terms: x, finite, shape (p,).
        block: Non-decreasing numbers, shape (p,); one block if None.
    """
    lowest = float(log_terms.min())
    if float(log_terms.max()) - lowest < _LONGEST:
        return _within_one_scale(log_terms, lowest + _LONGEST, block)
    steps = ((log_terms - lowest) / _LONGEST).astype(np.int64)
    count = int(steps.max()) + 1
    if block is not None:
        steps += block * count
    steps = np.maximum.accumulate(steps)
    starts = np.flatnonzero(np.diff(steps, prepend=-1))
    tops = lowest + (steps % count + 1) * _LONGEST
    sums = np.exp(log_terms - tops)
    edges = [*starts.tolist(), len(sums)]
    for start, stop in itertools.pairwise(edges):
        if start and steps[start] // count == steps[start - 1] // count:
            sums[start] += sums[start - 1] * math.exp(tops[start - 1] - tops[start])
        np.cumsum(sums[start:stop], out=sums[start:stop])
    return np.asarray(np.log(sums, out=sums) + tops)


def _within_one_scale(log_terms: FloatArray, top: float, block: IntArray | None) -> FloatArray:
    """The same where no term is e^600 times another."""
    sums = np.exp(log_terms - top)
    cuts = [] if block is None else (np.flatnonzero(block[1:] != block[:-1]) + 1).tolist()
    for start, stop in itertools.pairwise([0, *cuts, len(sums)]):
        np.cumsum(sums[start:stop], out=sums[start:stop])
    return np.asarray(np.log(sums, out=sums) + top)


def dense_pass(log_terms: FloatArray, kernel: FloatArray, ordered: BoolArray) -> FloatArray:
    """The step over many rows of few points, each pair by itself.

    Args:
        log_terms: x, shape (p, rows).
        kernel: ln K(r_i - r_i' - D) at [i', i, row], shape (p, p, rows); overwritten.
        ordered: Whether i' may come before i, same shape.

    Returns:
        Shape (p, rows), -inf where no pair is ordered.
    """
    kernel += log_terms[:, None, :]
    np.putmask(kernel, ~ordered, -np.inf)
    return kernel[0] if len(kernel) == 1 else log_sum(kernel)


def log_sum(log_terms: FloatArray) -> FloatArray:
    """ln Σ e^x along the first axis; -inf for a sum of nothing. Overwrites its argument."""
    peak = log_terms.max(axis=0)
    peak[~np.isfinite(peak)] = 0.0
    log_terms -= peak
    np.exp(log_terms, out=log_terms)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(log_terms.sum(axis=0)) + peak)
