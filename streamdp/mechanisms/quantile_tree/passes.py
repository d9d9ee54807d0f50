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
        self.start = ranks // length
        self.start *= length
        self.offsets = np.asarray((ranks - self.start) * sharpness, dtype=np.float64)
        cuts = np.flatnonzero(self.start[1:] != self.start[:-1]) + 1
        self.edges: IntArray = np.concatenate(([0], cuts, [len(ranks)]))
        self._pieces = [slice(*each) for each in itertools.pairwise(self.edges.tolist())]

    def running(self, terms: FloatArray) -> FloatArray:
        """Sums over the points of the block up to each; overwrites its argument."""
        for piece in self._pieces:
            np.add.accumulate(terms[piece], out=terms[piece])
        return terms

    def remaining(self, terms: FloatArray) -> FloatArray:
        """Sums over the points of the block from each on; overwrites its argument."""
        for piece in self._pieces:
            np.add.accumulate(terms[piece][::-1], out=terms[piece][::-1])
        return terms


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
        self._sharpness, self._after_reach = sharpness, wanted.ceiling - wanted.whole - wanted.rest
        half = math.floor(_BLOCK / sharpness)
        self._short = wanted.ceiling <= half
        self._reach = reach = ranks - wanted.ceiling
        begin = ranks.searchsorted(reach, side="right")
        self._left = _Blocks(ranks, half, sharpness)
        self._rising = np.exp(self._left.offsets)
        self._a = self._side_a(begin - 1, half)
        length = wanted.ceiling if self._short else max(1, min(half, wanted.ceiling // 2))
        self._right = _Blocks(ranks, length, sharpness)
        self._falling = np.exp(-self._right.offsets)
        self._b = self._side_b(ranks, begin, length)
        if self._short:
            self._from_start = math.exp(-sharpness * (wanted.whole + wanted.rest)) / self._falling

    def _side_a(self, last: IntArray, length: int) -> list[tuple[IntArray, FloatArray]]:
        """Sums up to the last point of the side, and of the block before."""
        start, edges = self._left.start, self._left.edges
        seen = [self._seen(start, last, last >= 0, -1.0)]
        if len(edges) > 2:
            before = np.repeat(edges[:-1], np.diff(edges))[last] - 1
            valid = (last >= 0) & (before >= 0) & (start[before] == start[last] - length)
            seen.append(self._seen(start, before, valid, -1.0))
        return seen

    def _side_b(
        self, ranks: IntArray, begin: IntArray, length: int
    ) -> list[tuple[IntArray, FloatArray]]:
        """Sums from the first point of the side on, and if that block is short, of the next one."""
        start, edges = self._right.start, self._right.edges
        if self._short:
            return [self._seen(start, begin, start.take(begin) < start, 1.0)]
        first = (self._reach + 1) // length * length
        two = first + 2 * length <= ranks  # else points to the right may share the second's end
        after = np.repeat(edges[1:], np.diff(edges))[begin]
        after = np.minimum(after, len(start) - 1)
        both = two & (start[begin] == first) & (start[after] == first + length)
        near = start[begin] <= first + length * two
        return [self._seen(start, begin, near, 1.0), self._seen(start, after, both, 1.0)]

    def _seen(
        self, start: IntArray, index: IntArray, valid: BoolArray, sign: float
    ) -> tuple[IntArray, FloatArray]:
        """Where sums of blocks are looked up, and their weights e^±c·(r - D - start), 0 if invalid.

        Sums of side A are relative to the start of their block, those of B to its mirror image.
        """
        steps = self._reach - start.take(index)
        steps *= valid
        far = steps + self._after_reach
        far *= self._sharpness
        np.minimum(far, _LARGEST, out=far)
        far *= sign
        weights = np.exp(far, out=far)
        weights *= valid
        return index * valid, weights

    def step(self, log_terms: FloatArray) -> FloatArray:
        """ln of the kernel's floor + A + B for each point.

        Args:
            log_terms: x, finite, shape (p,).
        """
        found = np.empty_like(log_terms)
        for stretch, unit in _stretches(log_terms):
            terms = log_terms - unit
            np.minimum(terms, _LARGEST, out=terms)
            sums = self._sums(np.exp(terms, out=terms))
            found[stretch] = np.log(sums[stretch]) + unit
        return found

    def _sums(self, terms: FloatArray) -> FloatArray:
        """Running sums of linear terms, which are overwritten."""
        total = np.add.accumulate(terms)
        if not self._any:
            return total + math.exp(-CLIP) * total
        total *= math.exp(-CLIP)
        _add(total, self._left.running(terms * self._rising), self._a)
        terms *= self._falling
        if self._short:
            within = self._right.running(terms.copy())
            within *= self._from_start
            total += within
        _add(total, self._right.remaining(terms), self._b)
        return total


def _add(total: FloatArray, sums: FloatArray, seen: list[tuple[IntArray, FloatArray]]) -> None:
    for index, weights in seen:
        looked_up = sums.take(index)
        looked_up *= weights
        total += looked_up


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


def log_kernel(exponents: FloatArray) -> FloatArray:
    """ln K for c·|x|; 1-Lipschitz and falling, so the range of a cost's change is not larger."""
    smaller = np.exp(-np.abs(CLIP - exponents))
    smaller += 1.0
    return np.asarray(np.maximum(-exponents, -CLIP) + np.log(smaller, out=smaller))
