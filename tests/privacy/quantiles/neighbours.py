"""Small batches, their neighbours, and priors that are nearly certain of one cell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from streamdp.types import CellCounts, FloatArray, Grid, Json

Records = tuple[int, ...]
"""Sorted cells, one for each record of a batch."""


def unit_grid(cells: int) -> Grid:
    """Cells 0 ... cells - 1 of width one."""
    return Grid(Fraction(1), 0, cells - 1)


def counts_of(records: Records) -> CellCounts:
    """What production reads of a batch."""
    cells, counts = np.unique(np.asarray(records, dtype=np.int64), return_counts=True)
    return CellCounts(cells, counts)


def pairs(relation: str, cells: int, most: int) -> Iterator[tuple[Records, Records]]:
    """All neighbours of up to `most` records on `cells` cells, each unordered pair once."""
    for size in range(most):
        for rest in combinations_with_replacement(range(cells), size):
            for cell in range(cells):
                more = tuple(sorted((*rest, cell)))
                if relation == "add-remove":
                    yield rest, more
                    continue
                for other in range(cell + 1, cells):
                    yield more, tuple(sorted((*rest, other)))


@dataclass(frozen=True)
class Steps:
    """A prior of given mass on each unit cell 0, 1, ...; nothing outside."""

    masses: tuple[float, ...]

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the mass of each interval."""
        left = np.arange(len(self.masses)) - 0.5
        below = np.minimum(np.asarray(upper)[..., None], left + 1.0)
        above = np.maximum(np.asarray(lower)[..., None], left)
        with np.errstate(divide="ignore"):
            mass: FloatArray = np.log(np.maximum(below - above, 0.0) @ np.asarray(self.masses))
        return mass

    def describe(self) -> Json:
        """Its masses."""
        return {"family": "steps", "masses": list(self.masses)}


def level(cells: int) -> Steps:
    """The same mass everywhere."""
    return Steps((1.0,) * cells)


def nearly_sure(cell: int, cells: int, rest: float = 1e-13) -> Steps:
    """Nearly all mass on one cell: where the supremum over priors is reached."""
    return Steps(tuple(1.0 if each == cell else rest for each in range(cells)))


def log_ratio(mine: Fraction, other: Fraction) -> float:
    """|ln(mine/other)|, infinite if one of them is impossible."""
    if mine == other:
        return 0.0
    if not mine or not other:
        return math.inf
    return abs(math.log(mine / other))
