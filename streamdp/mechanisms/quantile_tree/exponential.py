"""One quantile of a region: the exponential mechanism, drawn exactly.

P(o) ∝ μ(o)·exp(-c·min(cost(o), 45/c)) over the fine points o of the region. The cost is the
distance of q·n from the ranks of o, from that of its first grain to that behind its last, where n
and ranks count the region's own grains. So one point at least costs nothing, however many records
are equal: by first ranks alone, where more than 64·90/c are, every level is clipped and μ decides.
The clip keeps every weight above e^-45 of its mass; it is monotone and 1-Lipschitz, so the range
of the cost's change is not larger than without it.

μ is the base measure: a prior over values, seen on the grid of cells.

References:
    Smith 2011 (exponential mechanism for quantiles); Dong, Durfee & Rogers 2020 (bounded range).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.privacy.draws import choose, uniform_below
from streamdp.types import Entropy, FloatArray, Grid, IntArray, Prior

FAN = 256
"""Parts a stretch is cut into at each step of a draw from the prior alone."""

FLOOR = -600.0
"""ln of the weight of a uniform prior that is mixed into every prior: no point of the grid is
impossible, and no mass is so small that rounding its logarithm would show."""

_FAINT = -550.0
"""Masses below e^-550 get the floor added; above, it is less than their rounding."""


@dataclass(frozen=True, slots=True)
class BaseMeasure:
    """Prior mass of stretches of cells.

    A cell v has the prior's mass of [(v - 1/2)·resolution, (v + 1/2)·resolution); its fine points
    share it evenly. The edges are one fixed function of v, so the measure is additive to the
    accuracy of `log_mass`, however a stretch is cut.
    """

    prior: Prior
    grid: Grid

    def between(self, edges: IntArray) -> FloatArray:
        """ln mass of the cells [edges[i], edges[i + 1]), -inf where there are none.

        Args:
            edges: Non-decreasing cells, shape (n + 1,).
        """
        values = np.asarray((edges - 0.5) * float(self.grid.resolution), dtype=np.float64)
        masses = np.array(self.prior.log_mass(values[:-1], values[1:]))
        faint = np.flatnonzero(masses < _FAINT)
        faint = faint[edges[faint + 1] > edges[faint]]
        if len(faint):
            shares = (edges[faint + 1] - edges[faint]) / (self.grid.upper + 1 - self.grid.lower)
            masses[faint] = np.logaddexp(masses[faint], FLOOR + np.log(shares))
        return masses

    def draw(self, first: int, stop: int, entropy: Entropy) -> int:
        """A cell of [first, stop) with probability proportional to its mass.

        Cutting by masses of parts, never by inverting a distribution function: the relative error
        of a cell's probability is that of the few choices that lead to it.
        """
        while stop - first > 1:
            parts = min(FAN, stop - first)
            edges = first + (stop - first) * np.arange(parts + 1) // parts
            part = choose(self.between(edges), entropy)
            first, stop = int(edges[part]), int(edges[part + 1])
        return first


def log_share(part: int, whole: int) -> float:
    """ln(part/whole), -inf for nothing."""
    return math.log(part / whole) if part > 0 else -math.inf


CLIP = 45.0
"""Largest exponent c·cost: e^-45 = 3e-20 of utility is what the clip can lose."""

Restriction = Literal["conditional", "edge"]
"""Treatment of the prior's mass outside a region: dropped, or put on the region's two ends."""


def draw_quantile(
    grains: Grains,
    region: Region,
    quantile: Fraction,
    sharpness: float,
    measure: BaseMeasure,
    entropy: Entropy,
    restriction: Restriction = "conditional",
) -> int:
    """Draw a fine point of the region near its own quantile.

    Only cells whose rank is within 45/c of the target have weights of their own; the rest are two
    tails of constant weight. So the work depends on 1/c, not on the number of records.

    Args:
        grains: The batch. Private.
        region: Stretch whose own grains are ranked.
        quantile: Target q in (0, 1), exact.
        sharpness: c.
        measure: μ, fixed before the data was touched; positive on the region.
        entropy: Source of chance.
        restriction: `edge` adds the mass of μ left of the region to its first point, and that
            right of it to its last (Khodak et al. 2023, Theorem 3.2).

    Privacy: add/remove, one record of weight w ≤ 1 in the region: loss of range
    c·w·2·max(q, 1 - q) (`sharpness.addition_range`), pure and bounded-range; substitute: weight
    w goes and w' comes: `sharpness.substitution_range`. Total: any counts, none included, take
    the same path.
    """
    near, costs, log_weights = _weighed(grains, region, quantile, sharpness, measure, restriction)
    chosen = choose(log_weights, entropy)
    if chosen >= 2 * len(near.cells) - 1:
        return region.start if chosen % 2 else region.last
    index, is_gap = divmod(chosen, 2)
    if is_gap:
        cell = measure.draw(int(near.cells[index]) + 1, int(near.cells[index + 1]), entropy)
        return cell * GRAINS + uniform_below(GRAINS, entropy)
    level = choose(-costs.at(*near.ranks_within(index)), entropy)
    return int(near.cells[index]) * GRAINS + near.first_level(index) + level


def log_inner_product(
    grains: Grains,
    region: Region,
    quantile: Fraction,
    sharpness: float,
    measure: BaseMeasure,
    restriction: Restriction = "conditional",
) -> float:
    """Return ln Ψ of a draw: Ψ = ∫ exp(-c·cost(o)) dμ(o), with μ as the region restricts it.

    The draw costs more than t with a probability of at most exp(-c·t)/Ψ, for t below 45/c.

    Args:
        grains: The batch. Private.
        region: Stretch whose own grains are ranked.
        quantile: Target q in (0, 1), exact.
        sharpness: c.
        measure: μ.
        restriction: Treatment of μ outside the region.

    Privacy: a function of the records that nothing protects. It is for batches that are simulated.

    References:
        Khodak et al. 2023, section 2 (Ψ).
    """
    near, _, log_weights = _weighed(grains, region, quantile, sharpness, measure, restriction)
    masses = measure.between(near.edges)
    for index in {0, len(near.cells) - 1}:
        masses[2 * index] += log_share(len(near.ranks_within(index)[0]), GRAINS)
    if restriction == "edge":
        masses = np.append(masses, _outside(near, measure))
    return float(np.logaddexp.reduce(log_weights) - np.logaddexp.reduce(masses))


def _weighed(
    grains: Grains,
    region: Region,
    quantile: Fraction,
    sharpness: float,
    measure: BaseMeasure,
    restriction: Restriction,
) -> tuple[_Near, _Exponents, FloatArray]:
    """Return the parts of a region, the exponents of ranks, and ln of the weight of each part."""
    costs = _Exponents(grains, region, quantile, sharpness)
    near = _Near(grains, region, *costs.window())
    log_weights = measure.between(near.edges)
    log_weights[0::2] += _log_level_sums(near, costs)
    log_weights[1::2] -= costs.at(near.gap_ranks)
    if restriction == "edge":
        ends = costs.at(near.end_ranks, near.end_counts)
        log_weights = np.append(log_weights, _outside(near, measure) - ends)
    return near, costs, log_weights


class _Exponents:
    """c·cost of ranks within one region; integers until the last product."""

    def __init__(
        self, grains: Grains, region: Region, quantile: Fraction, sharpness: float
    ) -> None:
        base = grains.left_of(region.start)
        size = grains.left_of(region.stop) - base
        whole, rest = divmod(quantile.numerator * size, quantile.denominator)
        self._middle = base + whole
        self._rest = rest / quantile.denominator
        self.per_grain = sharpness / GRAINS

    def signed(self, ranks: IntArray) -> FloatArray:
        """c·(rank - q·n), ranks in grains of the whole batch."""
        return np.asarray(((ranks - self._middle) - self._rest) * self.per_grain)

    def at(self, ranks: IntArray, counts: IntArray | int = 0) -> FloatArray:
        """c·cost of points, clipped.

        Args:
            ranks: Grains of the whole batch left of each.
            counts: Grains on each.
        """
        beyond = np.maximum(self.signed(ranks), -self.signed(ranks + counts))
        return np.asarray(np.minimum(np.maximum(beyond, 0.0), CLIP))

    def window(self) -> tuple[int, int]:
        """Ranks (records of the whole batch) between which the cost is not clipped."""
        reach = math.ceil(min(CLIP / self.per_grain, 2.0**60)) + 1
        return (self._middle - reach) // GRAINS, -(-(self._middle + reach) // GRAINS)


class _Near:
    """The region cut at its first cell, its near cells and its last: cell, gap, ..., gap, cell.

    A gap has no near record, so one rank; the two outer gaps also hold the far cells, whose cost
    is clipped and so is that of the gap beside them. Gaps may be empty. The first and the last
    cell may be cut by the region, and may hold no record.
    """

    def __init__(self, grains: Grains, region: Region, low: int, high: int) -> None:
        first, last = region.start // GRAINS, region.last // GRAINS
        left = int(grains.cells.searchsorted(first))
        right = int(grains.cells.searchsorted(last, side="right"))
        begin = left + int(left < right and grains.cells[left] == first)
        end = right - int(right > begin and grains.cells[right - 1] == last)
        begin = max(begin, int(grains.before[1:].searchsorted(low, side="right")))
        end = max(begin, min(end, int(grains.before[:-1].searchsorted(high))))
        ends = [first] if first == last else [first, last]
        self.cells: IntArray = np.array([first, *ends[1:]], dtype=np.int64)
        if len(ends) > 1:
            self.cells = np.concatenate(([first], grains.cells[begin:end], [last]))
        self._region = region
        self._grains = grains
        ends_of = region.start, region.last
        ranks = [[grains.left_of(end + past) for end in ends_of] for past in (0, 1)]
        self.end_ranks: IntArray = np.array(ranks[0], dtype=np.int64)
        self.end_counts: IntArray = np.array(ranks[1], dtype=np.int64) - self.end_ranks
        self.edges: IntArray = np.empty(2 * len(self.cells), dtype=np.int64)
        self.edges[0::2] = self.cells
        self.edges[1::2] = self.cells + 1
        self.inner_counts: IntArray = grains.counts[begin:end]
        self.inner_ranks: IntArray = grains.before[begin:end] * GRAINS
        self.gap_ranks: IntArray = grains.before[begin : end + 1] * GRAINS
        if len(ends) == 1:
            self.gap_ranks = self.gap_ranks[:0]
            self.inner_counts, self.inner_ranks = self.inner_counts[:0], self.inner_ranks[:0]

    def first_level(self, index: int) -> int:
        """First level of a cell that lies in the region."""
        return self._region.start % GRAINS if index == 0 else 0

    def ranks_within(self, index: int) -> tuple[IntArray, int]:
        """Ranks of the levels of a cell that lie in the region, and the grains on each level."""
        start = int(self.cells[index]) * GRAINS + self.first_level(index)
        stop = min(int(self.cells[index] + 1) * GRAINS, self._region.last + 1)
        rank = self._grains.left_of(start)
        step = self._grains.left_of(start + 1) - rank
        return rank + step * np.arange(stop - start), step


def _log_level_sums(near: _Near, costs: _Exponents) -> FloatArray:
    """ln of Σ_levels exp(-c·cost)/GRAINS of each near cell, the sum in closed form.

    The exponent is linear over the levels of a cell, so the sum is geometric, save in the few
    cells that hold the target, or an end of the clip, or of the region: those are summed term by
    term.
    """
    result = np.empty(len(near.cells))
    counts = near.inner_counts
    first = costs.signed(near.inner_ranks)
    step = costs.per_grain * counts
    last = first + step * GRAINS
    with np.errstate(under="ignore"):
        sums = np.log(np.expm1(-step * GRAINS) / np.expm1(-step))
    result[1 : 1 + len(counts)] = sums + np.where(last <= 0.0, last, -first)
    bent = ((first < 0.0) & (last > 0.0)) | (first + step < -CLIP) | (last - step > CLIP)
    for index in (0, len(near.cells) - 1, *(np.flatnonzero(bent) + 1).tolist()):
        result[index] = math.log(np.exp(-costs.at(*near.ranks_within(index))).sum())
    return np.asarray(result - math.log(GRAINS))


def _outside(near: _Near, measure: BaseMeasure) -> FloatArray:
    """ln mass of μ left and right of the region, the cut cells in proportion."""
    first, last = int(near.cells[0]), int(near.cells[-1])
    edges = np.array([measure.grid.lower, first, first + 1, last, last + 1])
    masses = measure.between(np.append(np.maximum.accumulate(edges), measure.grid.upper + 1))
    levels_right = GRAINS - near.first_level(len(near.cells) - 1) * (first == last)
    levels_right -= len(near.ranks_within(len(near.cells) - 1)[0])
    of_last = masses[1] if first == last else masses[3]
    left = np.logaddexp(masses[0], masses[1] + log_share(near.first_level(0), GRAINS))
    right = np.logaddexp(masses[4], of_last + log_share(levels_right, GRAINS))
    return np.array([left, right])
