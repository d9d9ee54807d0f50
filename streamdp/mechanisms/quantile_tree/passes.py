"""One step of a forward pass: out_i = ln Σ_{i' ≤ i} e^x_i'·K(r_i - r_i' - D), no subtraction.

K(x) = e^(-c·|x|) + e^-45: the second term keeps every weight within a public range, so that
choices stay cheap and their rounding bounded, whatever the number of records.

`LongPass` takes O(p) for p points, and one exponential and one logarithm of each a step. The kernel
splits in two exponentials: points with r' ≤ r_i - D (side A, decaying to the left), and those with
r' in (r_i - D, r_i] (side B, decaying to the right). Ranks are cut in blocks, and a side is a part
of one block and of the next one. A block is at most 250/c long, so no exponent in it grows with the
batch. Where that is shorter than a side, what lies beyond the two blocks is 125/c off at least: it
is left out, since the kernel's floor gives it e^80 times as much. Ranks are integers and subtracted
as such, so rounding is the same for any number of records.

Sums are linear, in units of e^u with u 260 above the least of the running maxima of x in a stretch
of points; within a stretch these rise by 700 at most. A term that is 198 below the running maximum
at a point may vanish there: the floor gives that maximum e^153 times as much. Every term is
positive, so a sum of p of them is off by p·2^-53 of itself, however much they rise or fall.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
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

_BLOCK = 250.0
"""c times the length of the longest block."""

_STRETCH = 700.0
"""ln of the most that the running maximum of terms rises while they are summed in one unit."""

_LARGEST = 440.0
"""ln of the largest term in that unit: e^690 is what 2^18 of them have in a block."""


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
    """Points cut by their rank.

    Args:
        ranks: r ≥ 0 in grains, non-decreasing, shape (p,).
        length: Ranks a block has.
        sharpness: c of a grain.
    """

    def __init__(self, ranks: IntArray, length: int, sharpness: float) -> None:
        self.number = ranks // length
        self.start = self.number * length
        self.offsets = np.asarray((ranks - self.start) * sharpness, dtype=np.float64)
        cuts = np.flatnonzero(self.number[1:] != self.number[:-1]) + 1
        edges = np.concatenate(([0], cuts, [len(ranks)]))
        sizes = np.diff(edges)
        self.first, self.following = np.repeat(edges[:-1], sizes), np.repeat(edges[1:], sizes)
        self._pieces = [slice(*each) for each in itertools.pairwise(edges.tolist())]

    def running(self, terms: FloatArray) -> FloatArray:
        """Sums over the points of the block up to each."""
        sums = np.empty_like(terms)
        for piece in self._pieces:
            np.add.accumulate(terms[piece], out=sums[piece])
        return sums

    def remaining(self, terms: FloatArray) -> FloatArray:
        """Sums over the points of the block from each on."""
        sums = np.empty_like(terms)
        for piece in self._pieces:
            np.add.accumulate(terms[piece][::-1], out=sums[piece][::-1])
        return sums


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
        half = math.floor(_BLOCK / sharpness)
        reach = ranks - wanted.ceiling
        begin = ranks.searchsorted(reach, side="right")
        self._left = left = _Blocks(ranks, half, sharpness)
        last = begin - 1
        before = left.first[last] - 1
        adjacent = (begin > 0) & (before >= 0) & (left.number[before] == left.number[last] - 1)
        self._rising = np.exp(left.offsets)
        self._a = self._seen([(last, begin > 0), (before, adjacent)], -left.offsets)
        self._short = wanted.ceiling <= half
        length = wanted.ceiling if self._short else max(1, min(half, wanted.ceiling // 2))
        self._right = right = _Blocks(ranks, length, sharpness)
        self._falling = np.exp(-right.offsets)
        if self._short:
            self._from_start = np.exp(-sharpness * wanted.off(ranks - right.start))
            seen = [(begin, right.number[begin] < right.number)]
        else:
            number = (reach + 1) // length
            following = np.minimum(right.following[begin], len(ranks) - 1)
            both = (right.number[begin] == number) & (right.number[following] == number + 1)
            seen = [(begin, right.number[begin] <= number + 1), (following, both)]
        self._b = self._seen(seen, right.offsets)

    def _seen(
        self, places: list[tuple[IntArray, BoolArray]], offsets: FloatArray
    ) -> list[tuple[IntArray, FloatArray]]:
        """Places at which sums of blocks are looked up, and their weights: 0 where none is."""
        found = []
        for each, valid in places:
            if valid.any():
                index = each * valid
                off = self._wanted.off(self._ranks - self._ranks.take(index))
                costs = np.minimum(off * self._sharpness, _LARGEST)
                found.append((index, np.exp(offsets.take(index) - costs) * valid))
        return found

    def step(self, log_terms: FloatArray) -> FloatArray:
        """ln of the kernel's floor + A + B for each point.

        Args:
            log_terms: x, finite, shape (p,).
        """
        found = np.empty_like(log_terms)
        for stretch, unit in _stretches(log_terms):
            sums = self._sums(np.exp(np.minimum(log_terms - unit, _LARGEST)))
            found[stretch] = np.log(sums[stretch]) + unit
        return found

    def _sums(self, terms: FloatArray) -> FloatArray:
        total = np.add.accumulate(terms)
        if not self._any:
            return total + math.exp(-CLIP) * total
        total *= math.exp(-CLIP)
        left = self._left.running(terms * self._rising)
        for index, weights in self._a:
            total += left.take(index) * weights
        falling = terms * self._falling
        if self._short:
            total += self._right.running(falling) * self._from_start
        right = self._right.remaining(falling)
        for index, weights in self._b:
            total += right.take(index) * weights
        return total


def _stretches(log_terms: FloatArray) -> Iterator[tuple[slice, float]]:
    """Points whose running maxima are close together, and ln of their unit."""
    first, count = float(log_terms[0]), len(log_terms)
    if float(log_terms.max()) <= first + _STRETCH:
        yield slice(0, count), first + _STRETCH - _LARGEST
        return
    peaks, start = np.maximum.accumulate(log_terms), 0
    while start < count:
        top = float(peaks[start]) + _STRETCH
        stop = int(peaks.searchsorted(top, side="right"))
        yield slice(start, stop), top - _LARGEST
        start = stop


def log_add(finite: FloatArray, other: FloatArray) -> FloatArray:
    """ln(e^a + e^b), a finite, b perhaps -inf; a third of the time `logaddexp` takes."""
    smaller = np.exp(-np.abs(finite - other))
    smaller += 1.0
    return np.asarray(np.maximum(finite, other) + np.log(smaller, out=smaller))


def log_kernel(exponents: FloatArray) -> FloatArray:
    """ln K for c·|x|; 1-Lipschitz and falling, so the range of a cost's change is not larger."""
    return log_add(-exponents, np.full((), -CLIP))


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
