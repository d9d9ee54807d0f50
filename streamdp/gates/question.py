"""Tests: what a gate asks of each batch.

A question turns a batch into a test. Most are a *score*, an excess of records of sensitivity one
(`sparse_vector.drift`): of quantiles outside their tolerance, of a quantile beyond a level, of a
count above a level. A score is compared with its noise directly, lowered by the margin: below zero
the answer is no, from the margin on it is yes, but with probability beta over a whole run. Other
tests are any private procedure that says yes with some chance, computed or drawn
(`mechanisms.sparse_vector.thresholding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from streamdp.mechanisms.sparse_vector.thresholding import Chance, Runs
from streamdp.types import Grid, Json, Past

Test = Fraction | Chance | Runs
"""A score of sensitivity one, or a private procedure's chance of yes, or the procedure."""

Tests = Test | tuple[Test, ...]
"""One test, or one for each of several configurations: the first that is accepted ends the run."""


class Question(Protocol):
    """The test of a gate, for any batch; all but the statistic is public."""

    def describe(self) -> Json:
        """Public parameters, for the ledger."""
        ...

    def test(self, past: Past, statistic: Any) -> Tests:
        """The test of one batch, of what its query counts; total: no exception depends on that.

        A question of several configurations names them in an attribute `configurations`, a tuple
        of rows, and returns as many tests, in that order.

        Privacy: as a score it has sensitivity one for both relations; as a procedure it is
        (epsilon, delta)-private as the gate's `Terms` say.
        """
        ...


@dataclass(frozen=True, slots=True)
class Around:
    """A tolerance around the last released value.

    Args:
        absolute: In the unit of the column, or in records.
        relative: A share of the released value.
        ranks: A share of all records.
    """

    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)
    ranks: Fraction = Fraction(0)

    def cells(self, value: float, grid: Grid) -> tuple[int, int]:
        """First and last cell within the tolerance in values."""
        exact = Fraction(value)
        reach = self.absolute + self.relative * abs(exact)
        first, last = ((exact + sign * reach) / grid.resolution for sign in (-1, 1))
        low, high = math.ceil(first - Fraction(1, 2)), math.floor(last + Fraction(1, 2))
        return max(low, grid.lower), min(high, grid.upper)
