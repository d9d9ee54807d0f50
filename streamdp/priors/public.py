"""Public rows, and the prior that is their law: a histogram of few and full pieces.

Public rows are a type of their own, so that no records can stand in their place.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, IntArray, Json

PIECES = 256
"""Most pieces of a table of public rows."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicSample:
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


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """Even density within each piece; nothing beyond the first and the last edge.

    Whole pieces are summed as integers and parts of pieces apart from them, so a stretch weighs
    what its parts weigh to the last digits, which a difference of two distribution functions
    would not.

    Args:
        edges: Increasing, shape (k + 1,).
        counts: Positive, with a sum below 2^53, shape (k,).
    """

    edges: FloatArray
    counts: IntArray

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the share of the rows in each interval, rows of a piece being spread evenly."""
        ends, last = self.edges, len(self.counts) - 1
        low, high = (np.clip(each, ends[0], ends[-1]) for each in (lower, upper))
        first = np.clip(np.searchsorted(ends, low, side="right") - 1, 0, last)
        final = np.clip(np.searchsorted(ends, high, side="left") - 1, 0, last)
        before = np.concatenate(([0], np.cumsum(self.counts)))
        density = self.counts / np.diff(ends)
        apart = (
            density[first] * (ends[first + 1] - low)
            + (before[final] - before[np.minimum(first + 1, last)])
            + density[final] * (high - ends[final])
        )
        mass = np.where(first < final, apart, density[first] * np.maximum(high - low, 0.0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(high > low, mass, 0.0)) - np.log(before[-1]))

    def describe(self) -> Json:
        """How many pieces, and their digest."""
        digest = hashlib.sha256(np.ascontiguousarray(self.edges, dtype="<f8").tobytes())
        digest.update(np.ascontiguousarray(self.counts, dtype="<i8").tobytes())
        return {
            "family": "tabulated",
            "pieces": len(self.counts),
            "sha256": digest.hexdigest(),
        }


def tabulated(public: PublicSample) -> Tabulated:
    """Pieces of about equally many public rows; what no row fills belongs to the piece before."""
    total = np.cumsum(public.counts)
    wanted = np.arange(1, PIECES + 1) * int(total[-1]) / PIECES
    ends = np.unique(np.searchsorted(total, wanted - 0.5, side="left"))
    lower = np.concatenate((public.values[:1], public.values[ends[:-1] + 1]))
    edges = np.append(lower, public.values[-1] + public.resolution) - public.resolution / 2.0
    return Tabulated(edges, np.diff(np.concatenate(([0], total[ends]))))
