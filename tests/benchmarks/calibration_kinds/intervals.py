"""Released intervals with what they are about, and the row that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.types import FloatArray
from tests.benchmarks.report import Row

SURE = 0.99
"""Coverage above which a cell is wider than its level asks for."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Of one column, arrays of shape (releases, series).

    Args:
        truth: What the records say.
        point: What was published of it.
        lower: End of the interval.
        upper: The other end.
        least: Width below which an interval is not asked to be, shape (series,).
    """

    truth: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    least: float = 0.0

    def row(self, about: dict[str, Any], what: str, level: float | None, reason: str) -> Row:
        """Coverage over all, that of the series that has the least, and width.

        `width_ratio` is the median over series of the mean width over the width that would hold
        95 % of the errors. Ends are rounded, so a truth counts as held within a billionth.
        """
        slack = 1e-9 * np.maximum(np.abs(self.truth), 1.0)
        held = (self.lower - slack <= self.truth) & (self.truth <= self.upper + slack)
        errors = np.abs(self.point - self.truth)
        needed = np.maximum(2.0 * np.quantile(errors, 0.95, axis=0), max(self.least, 1e-12))
        ratio = np.median((self.upper - self.lower).mean(axis=0) / needed)
        coverage = float(held.mean())
        return about | {
            "what": what,
            "level": level,
            "coverage": round(coverage, 3),
            "worst_series": round(float(held.mean(axis=0).min()), 3),
            "width_ratio": round(float(ratio), 2),
            "reason": reason if coverage > SURE else None,
        }
