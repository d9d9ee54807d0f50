"""Numbers of units: how many there are, how many have so many records, and what bounds leave out.

A unit is protected as a whole, so one more changes a number of units by one however many records it
has. What it costs is therefore said of a unit, and not of a record that it may have k of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamdp.kinds.statistics.measures.counts import counted
from streamdp.kinds.statistics.measures.protocol import LEVEL, Allowance, AskedPart, Rows
from streamdp.kinds.statistics.measures.series_filter import WIDTHS
from streamdp.mechanisms.noise import noise_at
from streamdp.types import FloatArray, Json, UnitQuery

SHARES = np.linspace(0.0, 1.0, 1001)
"""Shares of records that an interval is looked for among, shape (1001,)."""


@dataclass(frozen=True, slots=True)
class Units:
    """The number of units, or of those in each group.

    Args:
        name: As configured.
        unit: Its name.
        rows: The most records of a unit that count in other measures, and groups in this one.
        groups: How many public groups there are.
    """

    name: str
    unit: str = "unit"
    rows: int = 1
    groups: int = 1

    of_unit: ClassVar[bool] = True
    counts: ClassVar[bool] = True
    cells: ClassVar[tuple[str, ...]] = ("",)

    @property
    def most(self) -> int:
        """The most groups that a unit counts in."""
        return min(self.rows, self.groups)

    def statistic(self, cell: int) -> str:
        """A count of units, with what is left out where one may be in more groups than count."""
        said = f"count of units ({self.unit})"
        if self.most == self.groups:
            return said
        return f"{said}, each in at most {self.most} group{'s' * (self.most > 1)}"

    def signature(self) -> Json:
        """Return that units are counted."""
        return {"count": "units"}

    def asked(self, state: Json, price: Allowance) -> tuple[AskedPart, ...]:
        """One number a group, with its noise.

        Privacy: one unit more, or other records of one, changes the numbers of at most min(k, G) of
        G groups by one each (`UnitQuery`): where there is one group its number, whatever k is. The
        price is that of the unit.
        """
        noise = noise_at(price.price.of_unit(self.rows), self.most, self.most)
        return (AskedPart(UnitQuery(), noise),)

    def follow(
        self,
        state: Json,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        groups: Sequence[tuple[str, ...]],
        weekday: int | None,
    ) -> tuple[Json, Rows]:
        """Numbers with the reach of their noise, and what all releases say of them."""
        return counted(("",), state, asked[0].noise, noisy[0], groups, weekday)


@dataclass(frozen=True, slots=True)
class UnitSizes:
    """How many units have so many records, and the share of records that each bound leaves out.

    With N_i units in the cell of a_i to b_i records, whose mean in the cell is x_i, a bound of
    k = a_j leaves out

        Σ_(i >= j) N_i·(x_i - k) / Σ_i N_i·x_i

    of the records, those of a unit in the last cell being taken for a_m alone: how many more they
    are no finite number of cells tells, so it is the share among at most a_m records a unit. The
    interval holds for all x_i from a_i to b_i: the share rises with x_i from cell j on, and falls
    with those before. For given x_i it has all s at which Σ_i N_i·((x_i - k)₊ - s·x_i) is within
    the noise of 0 (Fieller 1954).

    Args:
        name: As configured.
        cuts: Increasing whole numbers above 1; the last begins the cell without an end.
        unit: Its name.
        rows: The most records of a unit that count in other measures.
    """

    name: str
    cuts: tuple[int, ...]
    unit: str = "unit"
    rows: int = 1

    of_unit: ClassVar[bool] = True
    counts: ClassVar[bool] = True

    @property
    def starts(self) -> tuple[int, ...]:
        """The fewest records of each cell."""
        return (1, *self.cuts)

    @property
    def cells(self) -> tuple[str, ...]:
        """Numbers of records, then bounds.

        >>> UnitSizes("sizes", (2, 3, 5)).cells
        ('1', '2', '3 to 4', '>= 5', 'rows: 1', 'rows: 2', 'rows: 3')
        """
        ends = [cut - 1 for cut in self.cuts]
        cells = [
            f"{a}" if a == b else f"{a} to {b}" for a, b in zip(self.starts, ends, strict=False)
        ]
        return (*cells, f">= {self.starts[-1]}", *(f"rows: {k}" for k in self.starts[:-1]))

    def statistic(self, cell: int) -> str:
        """A count of units by their records, or a share of records."""
        if cell < len(self.starts):
            return f"count of units ({self.unit}) by records"
        return f"share of records left out, of at most {self.starts[-1]} a {self.unit}"

    def signature(self) -> Json:
        """The cells."""
        return {"count": "units", "cuts": list(self.cuts)}

    def asked(self, state: Json, price: Allowance) -> tuple[AskedPart, ...]:
        """One number a cell, with its noise.

        Privacy: a unit is in one cell, by all of its records: one more changes one number by one,
        and other records of one change two. The price is that of the unit.
        """
        of_unit = Allowance(price.price.of_unit(self.rows), price.neighbours)
        return (AskedPart(UnitQuery(self.cuts), of_unit.noise(1, 2, entries=2)),)

    def follow(
        self,
        state: Json,
        asked: Sequence[AskedPart],
        noisy: Sequence[Sequence[int]],
        groups: Sequence[tuple[str, ...]],
        weekday: int | None,
    ) -> tuple[Json, Rows]:
        """Numbers with the reach of their noise, and shares of records that follow from them."""
        noise, cells = asked[0].noise, self.cells[: len(self.starts)]
        after, rows = counted(cells, state, noise, noisy[0], groups, weekday)
        deviation = np.sqrt(rows.variance)
        raw = self.left_out(rows.value, deviation, noise.reach(LEVEL) / deviation[0])
        learned = (rows.smoothed_upper - rows.smoothed_lower) / (2 * WIDTHS[1])
        smoothed = self.left_out(rows.smoothed, learned, WIDTHS[1])
        return after, Rows(
            np.append(rows.value, raw[0]),
            np.append(rows.lower, raw[1]),
            np.append(rows.upper, raw[2]),
            np.append(rows.smoothed, smoothed[0]),
            np.append(rows.smoothed_lower, smoothed[1]),
            np.append(rows.smoothed_upper, smoothed[2]),
            np.append(rows.variance, np.zeros(len(raw[0]))),
            np.zeros(len(self.cells), dtype=np.bool_),
        )

    def left_out(self, units: FloatArray, deviation: FloatArray, widths: float) -> FloatArray:
        """The share of records that each bound leaves out, with its ends, shape (3, bounds).

        Args:
            units: In each cell, with noise, shape (cells,).
            deviation: Of the noise of each.
            widths: Half width of an interval, in deviations.
        """
        fewest = np.array(self.starts, dtype=np.float64)
        most = np.append(fewest[1:] - 1.0, fewest[-1])
        middle, seen = np.sqrt(fewest * most), np.maximum(units, 0.0)
        total = max(float(seen @ middle), 1.0)
        found = []
        for j, k in enumerate(self.starts[:-1]):
            behind = np.arange(len(fewest)) >= j
            ends = [
                _ratio(np.maximum(x - k, 0.0), x, units, deviation * widths)
                for x in (np.where(behind, fewest, most), np.where(behind, most, fewest))
            ]
            point = float(seen @ np.maximum(middle - k, 0.0)) / total
            found.append((point, min(ends[0][0], point), max(ends[1][1], point)))
        return np.array(found).T


def _ratio(
    above: FloatArray, below: FloatArray, units: FloatArray, reach: FloatArray
) -> tuple[float, float]:
    """The least and the largest share s at which Σ units·(above - s·below) may be 0."""
    factors = above[:, None] - SHARES * below[:, None]
    off = np.abs(units @ factors)
    possible = SHARES[off <= np.sqrt((reach[:, None] ** 2 * factors**2).sum(axis=0))]
    step = float(SHARES[1])
    if not len(possible):
        nearest = float(SHARES[int(off.argmin())])
        return max(nearest - step, 0.0), min(nearest + step, 1.0)
    return max(float(possible[0]) - step, 0.0), min(float(possible[-1]) + step, 1.0)
