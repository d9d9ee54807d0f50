"""Public rows: a type of their own, so that no records can stand in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """Values of a column in rows that anyone may see; at least one row.

    Args:
        values: Distinct, increasing, multiples of the resolution, shape (d,).
        counts: Rows of each value, positive, shape (d,).
        resolution: Width of a cell.
    """

    values: FloatArray
    counts: IntArray
    resolution: float

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Values at some shares of the rows, same shape."""
        total = np.cumsum(self.counts)
        places = np.searchsorted(total, shares * float(total[-1]))
        return np.asarray(self.values[np.minimum(places, len(total) - 1)])
