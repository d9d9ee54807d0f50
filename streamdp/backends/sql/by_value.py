"""Whole numbers are counted by their value, and their few values are put in cells afterwards.

A cell among many cuts takes some ten comparisons a record. A whole number x needs two where the
cuts lie close together: clipped to [⌈c_1⌉ - 1, ⌈c_m⌉] it stays in its cell, records are counted by
what is left of it, and the cuts are looked up once for each value that there can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streamdp.types import Dimension, IntArray

FARTHEST = 2**31
"""Cuts beyond are compared as doubles."""


@dataclass(frozen=True, slots=True)
class Clip:
    """Public ends of a whole number.

    Args:
        low: Below the first cut.
        high: At the last cut or above.
    """

    low: int
    high: int

    @classmethod
    def of(cls, axis: Dimension) -> Clip | None:
        """Ends that leave every whole number in its cell; None without cuts, or with far ones."""
        cuts = axis.cuts or ()
        if not cuts or max(map(abs, cuts)) > FARTHEST:
            return None
        return cls(math.ceil(cuts[0]) - 1, math.ceil(cuts[-1]))

    @property
    def digits(self) -> int:
        """The values there can be, and one more digit for null."""
        return self.high - self.low + 2

    def sql(self, value: str, whole: str) -> str:
        """The digit of a whole number, as a number of the type `whole`."""
        above = f"CAST(least({value}, {self.high}) AS {whole}) - ({self.low})"
        if self.digits == 3:
            above = "1"
        return (
            f"CASE WHEN {value} > {self.low} THEN {above}"
            f" WHEN {value} <= {self.low} THEN 0 ELSE {self.digits - 1} END"
        )

    def cells(self, axis: Dimension) -> IntArray:
        """Cell of each digit, shape (digits,); that of a null is the size of the axis if none."""
        values = np.arange(self.low, self.high + 1)
        null = axis.size if axis.null_cell is None else axis.null_cell
        return np.append(np.searchsorted(np.array(axis.cuts), values, side="right"), null)


Clips = Mapping[int, Clip]
"""Axes that are counted by value."""
