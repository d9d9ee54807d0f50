"""Scores of sensitivity one: the records by which a batch is beyond public tolerances.

A quantile q lies in the cells [low, high] up to a share r of ranks when

    #{x < low} ≤ (q + r)·n   and   #{x ≤ high} ≥ (q - r)·n.

One record more moves #{x < low} - (q + r)·n by something in [-q - r, 1 - q - r], and
(q - r)·n - #{x ≤ high} by something in [q - r - 1, q - r]: both by at most max(q, 1 - q) + r. So
the excess over the tolerance, divided by that, has sensitivity one, and so has the largest of any
number of them. Nothing is drawn and nothing rounded: it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.types import CellCounts, Grid


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
