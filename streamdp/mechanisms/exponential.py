"""One quantile of a region: the exponential mechanism, drawn exactly.

P(o) ∝ μ(o)·exp(-c·min(|q·n - rank(o)|, 45/c)) over the fine points o of the region, where n and
rank count the region's own grains. The clip keeps every weight above e^-45 of its mass; it is
monotone and 1-Lipschitz, so the range of the cost's change is not larger than without it.

References:
    Smith 2011 (exponential mechanism for quantiles); Dong, Durfee & Rogers 2020 (bounded range).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from streamdp.mechanisms.grains import GRAINS, Grains, Region
from streamdp.mechanisms.measure import Measure
from streamdp.privacy.draws import choose
from streamdp.types import Entropy, FloatArray, IntArray

CLIP = 45.0
"""Largest exponent c·cost: e^-45 = 3e-20 of utility is what the clip can lose."""


def draw_quantile(
    grains: Grains,
    region: Region,
    quantile: Fraction,
    sharpness: float,
    measure: Measure,
    entropy: Entropy,
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

    Privacy: add/remove, one record of weight w ≤ 1 in the region: loss of range
    c·w·2·max(q, 1 - q) (`sharpness.single_quantile_range`), pure and bounded-range. Total: any
    counts, none included, take the same path.
    """
    costs = _Exponents(grains, region, quantile, sharpness)
    blocks = _Blocks(grains, region, *costs.window())
    log_weights = np.empty(len(blocks.edges) - 1)
    log_weights[0::2] = measure.points(blocks.edges[0:-1:2], blocks.edges[1::2])
    log_weights[0::2] -= costs.at(blocks.gap_ranks)
    log_weights[1::2] = _cell_log_weights(blocks, costs, measure)
    chosen = choose(log_weights, entropy)
    start, stop = int(blocks.edges[chosen]), int(blocks.edges[chosen + 1])
    if chosen % 2 == 0:
        return measure.draw(start, stop, entropy)
    cell = chosen // 2
    ranks = blocks.cell_ranks[cell] + blocks.counts[cell] * np.arange(stop - start)
    return start + choose(-costs.at(ranks), entropy)


class _Exponents:
    """c·cost of ranks within one region; integers until the last division."""

    def __init__(
        self, grains: Grains, region: Region, quantile: Fraction, sharpness: float
    ) -> None:
        self._base = grains.left_of(region.start)
        size = grains.left_of(region.stop) - self._base
        self._target = quantile.numerator * size
        self._denominator = quantile.denominator
        self.per_grain = sharpness / GRAINS

    def signed(self, ranks: IntArray) -> FloatArray:
        """c·(rank - q·n), ranks in grains of the whole batch."""
        distance = self._denominator * (ranks - self._base) - self._target
        return np.asarray(distance * (self.per_grain / self._denominator), dtype=np.float64)

    def at(self, ranks: IntArray) -> FloatArray:
        """c·cost, clipped."""
        return np.asarray(np.minimum(np.abs(self.signed(ranks)), CLIP))

    def window(self) -> tuple[int, int]:
        """Ranks (whole batch) between which the cost is not clipped."""
        middle = self._base + Fraction(self._target, self._denominator)
        reach = CLIP / self.per_grain
        return math.floor(middle - Fraction(reach)), math.ceil(middle + Fraction(reach))


class _Blocks:
    """The region cut at its near cells: gap, cell, gap, ..., cell, gap.

    A gap has no near record, so one rank; the two outer gaps also hold the far cells, whose cost
    is clipped and so is that of the gap beside them. Gaps may be empty.
    """

    def __init__(self, grains: Grains, region: Region, low: int, high: int) -> None:
        first = int(np.searchsorted(grains.cells, region.start // GRAINS))
        stop = int(np.searchsorted(grains.cells, region.last // GRAINS, side="right"))
        first = max(first, int(np.searchsorted(grains.before[1:], low, side="right")))
        stop = max(first, min(stop, int(np.searchsorted(grains.before[:-1], high))))
        cells = grains.cells[first:stop]
        starts = np.maximum(cells * GRAINS, region.start)
        self.counts: IntArray = grains.counts[first:stop]
        self.cells: IntArray = cells
        self.edges: IntArray = np.empty(2 * len(cells) + 2, dtype=np.int64)
        self.edges[0], self.edges[-1] = region.start, region.last + 1
        self.edges[1:-1:2] = starts
        self.edges[2:-1:2] = np.minimum((cells + 1) * GRAINS, region.last + 1)
        self.gap_ranks: IntArray = grains.before[first : stop + 1]
        levels_outside = starts - cells * GRAINS
        self.cell_ranks: IntArray = grains.before[first:stop] + self.counts * levels_outside


def _cell_log_weights(blocks: _Blocks, costs: _Exponents, measure: Measure) -> FloatArray:
    """ln of μ(cell)/GRAINS·Σ_levels exp(-c·cost) of each near cell, the sum in closed form.

    The exponent is linear over the levels of a cell, so the sum is geometric, save in the few
    cells that hold the target or an end of the clip: those are summed term by term.
    """
    levels = blocks.edges[2::2] - blocks.edges[1:-1:2]
    first = costs.signed(blocks.cell_ranks)
    step = costs.per_grain * blocks.counts
    last = costs.signed(blocks.cell_ranks + blocks.counts * (levels - 1))
    with np.errstate(under="ignore"):
        log_sums = np.log(np.expm1(-step * levels) / np.expm1(-step))
    log_sums += np.where(last <= 0.0, last, -first)
    bent = ((first < 0.0) & (last > 0.0)) | (first < -CLIP) | (last > CLIP)
    for index in np.flatnonzero(bent):
        ranks = blocks.cell_ranks[index] + blocks.counts[index] * np.arange(levels[index])
        log_sums[index] = np.log(np.exp(-costs.at(ranks)).sum())
    masses = measure.cells(blocks.cells, blocks.cells + 1)
    return np.asarray(log_sums + masses - math.log(GRAINS))
