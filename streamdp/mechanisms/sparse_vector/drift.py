"""Scores of sensitivity one: the records by which a batch is beyond public tolerances.

A quantile q lies in the cells [low, high] up to a share r of ranks when

    #{x < low} ≤ (q + r)·n   and   #{x ≤ high} ≥ (q - r)·n.

One record more moves #{x < low} - (q + r)·n by something in [-q - r, 1 - q - r], and
(q - r)·n - #{x ≤ high} by something in [q - r - 1, q - r]: both by at most max(q, 1 - q) + r. So
the excess over the tolerance, divided by that, has sensitivity one, and so has the largest of any
number of them. Nothing is drawn and nothing rounded: it is exact.

The probability that a release of a binary tree leaves its tolerances is computed, not sampled. M_t
draws the tree at a small epsilon on public points, all of the same prior mass, and says yes if a
quantile falls outside its interval. Given the two released points that bound a node, its draw
depends on nothing else, so with stay S and leave L of the part below a node,

    S(a, b) = Σ_{o inside} P(o | a, b)·S_left(a, o)·S_right(o, b),
    L(a, b) = Σ_{o outside} P(o | a, b) + Σ_{o inside} P(o | a, b)·(L_left + S_left·L_right),

over bounds a, b inside their own intervals. Every term is positive, nothing cancels: both are
right to a relative 2·m·(2^-41 + p·2^-52). Costs are integers and a rest, and count from the least
of a draw, so that no number that is rounded grows with the batch; then there are one product, an
exponential of at most 745, and sums of p terms. That is to be below 2^-18·epsilon_t, what `Chance`
asks (`least_epsilon`). There is no clip: weights are taken over the largest.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.tree import Node, QuantileTree
from streamdp.mechanisms.sparse_vector.above_threshold import ACCURACY
from streamdp.mechanisms.sparse_vector.thresholding import Chance
from streamdp.types import CellCounts, FloatArray, Grid, IntArray


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The range that a quantile may be in; public.

    Args:
        quantile: q, in (0, 1).
        low: First cell, or None for no bound below.
        high: Last cell, or None for no bound above.
        ranks: r, share of the records the quantile may be off besides.
    """

    quantile: Fraction
    low: int | None
    high: int | None
    ranks: Fraction = Fraction(0)

    @property
    def sensitivity(self) -> Fraction:
        """The most that one record more or less changes the excess."""
        return max(self.quantile, 1 - self.quantile) + self.ranks

    def excess(self, grains: Grains) -> Fraction:
        """Records by which the quantile is outside, negative inside; over the sensitivity."""
        records = int(grains.before[-1])
        sides = []
        if self.low is not None:
            below = grains.left_of(self.low * GRAINS) // GRAINS
            sides.append(below - (self.quantile + self.ranks) * records)
        if self.high is not None:
            up_to = grains.left_of((self.high + 1) * GRAINS) // GRAINS
            sides.append((self.quantile - self.ranks) * records - up_to)
        return max(sides) / self.sensitivity


def excess(
    statistic: CellCounts, tolerances: tuple[Tolerance, ...], rows_per_unit: int = 1
) -> Fraction:
    """Largest excess of several quantiles, a score for `AboveThreshold`. Private.

    Args:
        statistic: The batch. Private.
        tolerances: At least one, each with a bound.
        rows_per_unit: Most records that neighbours differ in.

    Privacy: sensitivity one for neighbours with so many records more or less; two for
    substitutions, which are to be counted as two records.
    """
    grains = Grains.of(statistic)
    return max(tolerance.excess(grains) for tolerance in tolerances) / rows_per_unit


def rows(statistic: CellCounts, level: Fraction, rows_per_unit: int = 1) -> Fraction:
    """Records above a level: the score that asks whether a growing batch has reached it. Private.

    With levels (1 + alpha)^i the number of acceptances is logarithmic in the growth.

    Privacy: sensitivity one for neighbours with so many records more or less.
    """
    return (int(statistic.counts.sum()) - level) / rows_per_unit


def best(statistic: CellCounts, level: Fraction, rows_per_unit: int = 1) -> Fraction:
    """Largest count of a cell above a level: the best score of a selection has grown. Private.

    Privacy: sensitivity one for neighbours with so many records more or less.
    """
    return (int(statistic.counts.max(initial=0)) - level) / rows_per_unit


def total(statistic: CellCounts, grid: Grid, level: Fraction, rows_per_unit: int = 1) -> Fraction:
    """Sum of a column above a level, in records of the largest size that one may have. Private.

    Args:
        statistic: The batch, within the grid. Private.
        grid: Of the column.
        level: In the unit of the column.
        rows_per_unit: Most records that neighbours differ in.

    Privacy: a record more changes the sum by the larger bound at most, which divides it;
    sensitivity one for neighbours with so many records more or less.
    """
    cells = zip(statistic.cells.tolist(), statistic.counts.tolist(), strict=True)
    reach = max(abs(grid.lower), abs(grid.upper), 1)
    summed: int = sum(min(max(cell, grid.lower), grid.upper) * count for cell, count in cells)
    return Fraction(summed - level / grid.resolution) / (reach * rows_per_unit)


Bounds = tuple[int, int]
Law = tuple[FloatArray, FloatArray]
Laws = dict[tuple[int, int], Law]

_FAR = 1e300
"""Stands for the cost of bounds that cross, which no release has."""

_LEAST = 1e-250
"""Probabilities are cut here, for both neighbours alike: weights below e^-700 are rounded away."""

PIECES = 8
"""Points in each tolerance, and in each stretch between two."""


def least_epsilon(quantiles: int, pieces: int = PIECES) -> Fraction:
    """Least epsilon_t at which the chance of so many quantiles is as right as `Chance` asks.

    >>> float(least_epsilon(1)) < 1e-6 < float(least_epsilon(9)) < float(least_epsilon(999)) < 0.01
    True
    """
    points = (2 * quantiles + 1) * pieces
    error = 2 * quantiles * (Fraction(1, 2**41) + points * Fraction(1, 2**52))
    return error / Fraction(ACCURACY)


@dataclass(frozen=True, slots=True)
class DriftChance:
    """A drift test of known success probability.

    Args:
        tree: What M_t draws: binary, independent, conditional; its epsilon is epsilon_t.
        tolerances: Cells [low, high] for each target, within the grid, neither end decreasing.
        pieces: Points in each tolerance, and in each stretch between two.

    Raises:
        ValueError: Another kind of tree, too little epsilon, or tolerances that are none.
    """

    tree: QuantileTree
    tolerances: tuple[Bounds, ...]
    pieces: int = PIECES

    def __post_init__(self) -> None:
        tree = self.tree
        if (tree.branching, tree.node, tree.restriction) != (2, "independent", "conditional"):
            raise ValueError("the tree must be binary with conditional independent draws")
        if len(self.tolerances) != len(tree.quantiles):
            raise ValueError("each quantile needs a tolerance")
        if tree.epsilon < least_epsilon(len(tree.quantiles), self.pieces):
            raise ValueError("the tree must have more epsilon, or fewer quantiles")
        for low, high in self.tolerances:
            if not tree.grid.lower <= low <= high <= tree.grid.upper:
                raise ValueError("a tolerance must be a stretch of the grid")

    def chance(self, statistic: CellCounts) -> Chance:
        """Success: some quantile of the release is outside its tolerance.

        Privacy: the chance itself is private; a draw with it is (epsilon_t, 0)-private, by the
        argument of `QuantileTree.draw` with a prior of equal mass on public points.
        """
        points = self.points()
        grains = Grains.of(statistic)
        ranks = np.append(grains.left_of_each(points), int(grains.before[-1]) * GRAINS)
        behind = grains.left_of_each(points + 1)
        inside = [
            np.flatnonzero((points >= low * GRAINS) & (points < (high + 1) * GRAINS))
            for low, high in self.tolerances
        ]
        laws: Laws = {}
        for node in reversed(self.tree.nodes()):
            laws[node.left, node.right] = self._law(node, ranks, behind, inside, laws)
        stay, leave = laws[-1, len(self.tolerances)]
        return Chance(max(float(leave[0, 0]), _LEAST), max(float(stay[0, 0]), _LEAST))

    def points(self) -> IntArray:
        """Public fine points: the ends of tolerances, and even steps between them."""
        return _points(self)

    def _law(
        self, node: Node, ranks: IntArray, behind: IntArray, inside: list[IntArray], laws: Laws
    ) -> Law:
        """S and L of a node, for each left bound (first axis) and right bound (second)."""
        (target,) = node.targets
        bounded = node.right < len(inside)
        left = inside[node.left] if node.left >= 0 else np.array([0])
        right = inside[node.right] if bounded else np.array([len(ranks) - 2])
        stops = ranks[right] if bounded else ranks[-1:]
        weights = self._weights(node, (ranks[:-1], behind), (left, right), stops)
        reachable = (inside[target] >= left[0]) & (inside[target] <= right[-1])
        chosen = inside[target][reachable] - left[0]
        within = weights[:, :, chosen]
        outside = np.delete(weights, chosen, axis=2).sum(axis=2)
        certain = np.ones((1, 1)), np.zeros((1, 1))
        stay_left, leave_left = laws.get((node.left, target), certain)
        stay_right, leave_right = laws.get((target, node.right), certain)
        if stay_left.size > 1:
            stay_left, leave_left = stay_left[:, reachable], leave_left[:, reachable]
        if stay_right.size > 1:
            stay_right, leave_right = stay_right[reachable], leave_right[reachable]
        before = within * stay_left[:, None, :]
        stay = (before * stay_right.T).sum(axis=2)
        leave = (within * leave_left[:, None, :] + before * leave_right.T).sum(axis=2) + outside
        total = np.maximum(weights.sum(axis=2), 1.0)
        return stay / total, leave / total

    def _weights(
        self,
        node: Node,
        ranks: tuple[IntArray, IntArray],
        bounds: tuple[IntArray, IntArray],
        stops: IntArray,
    ) -> FloatArray:
        """exp(-c·cost) of points from the first left bound on; at most 1, out of bounds 0.

        Args:
            node: Of the tree.
            ranks: Grains left of each point, and behind its last one.
            bounds: Left and right bounds of the node's region, as indices of points.
            stops: Grains left of the right bounds.
        """
        (quantile,) = node.quantiles
        left, right = bounds
        sharpness = float(self.tree.levels()[node.level].sharpness(node.quantiles)) / GRAINS
        candidates = np.arange(left[0], right[-1] + 1)
        starts = ranks[0][left][:, None]
        # Python's integers: a quantile of many digits times many grains is beyond 64 bits.
        products = (stops[None, :] - starts).astype(object) * quantile.numerator
        middle = (starts + (products // quantile.denominator).astype(np.int64))[:, :, None]
        rest = (products % quantile.denominator / quantile.denominator).astype(float)[:, :, None]
        first, last = (each[candidates] - middle for each in ranks)
        whole = np.where(first > 0, first, np.maximum(-last, 0))
        rest = np.where(first > 0, -rest, np.where(last > 0, 0.0, rest))
        allowed = (candidates >= left[:, None, None]) & (candidates <= right[None, :, None])
        most = np.iinfo(np.int64).max
        whole = whole - np.where(allowed, whole, most).min(axis=2, keepdims=True)
        exponents = np.where(allowed, (whole + rest) * sharpness, np.inf)
        return np.asarray(
            np.exp(np.minimum(exponents.min(axis=2, keepdims=True), _FAR) - exponents)
        )


@functools.lru_cache(maxsize=64)
def _points(test: DriftChance) -> IntArray:
    grid = test.tree.grid
    ends = {grid.lower * GRAINS, (grid.upper + 1) * GRAINS}
    ends |= {low * GRAINS for low, _ in test.tolerances}
    ends |= {(high + 1) * GRAINS for _, high in test.tolerances}
    edges = np.array(sorted(ends))
    steps = np.arange(test.pieces)
    cuts = edges[:-1, None] + np.diff(edges)[:, None] * steps // test.pieces
    return np.unique(cuts)
