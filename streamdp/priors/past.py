"""Exact past values: where many records are equal, a quantile is often the very value it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamdp.types import FloatArray, Json


@dataclass(frozen=True, slots=True)
class PastValues:
    """All mass on a few points, in proportion to how often each was released.

    Counts are summed as integers, so a stretch weighs exactly what its parts weigh.

    Args:
        values: Released, in any order, at least one; repeated as often as they were.
    """

    values: tuple[float, ...]

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """ln of the share of the values in each [lower, upper); -inf where there are none."""
        known = np.sort(np.array(self.values))
        inside = known.searchsorted(upper, side="left") - known.searchsorted(lower, side="left")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(inside, 0)) - np.log(len(known)))

    def describe(self) -> Json:
        """Its values."""
        return {"family": "past-values", "values": list(self.values)}
