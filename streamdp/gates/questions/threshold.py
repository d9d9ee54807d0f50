"""Is a quantile beyond a level?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from streamdp.gates.questions.section import (
    Question,
    Tested,
    TestSection,
)
from streamdp.mechanisms.sparse_vector.drift import Tolerance, excess
from streamdp.sections.values import Rational
from streamdp.types import CellCounts, Json, Past


class ThresholdTest(TestSection):
    """A quantile is beyond a level."""

    kind: Literal["threshold"] = Field(
        description="`threshold`: a quantile is above or below a level."
    )
    quantile: Rational = Field(
        description="Quantile that is tested, between 0 and 1.", examples=[0.9]
    )
    above: Rational | None = Field(
        default=None,
        description="Accept when the quantile is above this level, in the column's unit.",
        examples=[60],
    )
    below: Rational | None = Field(
        default=None,
        description="Accept when the quantile is below this level, in the column's unit.",
        examples=[10],
    )

    @model_validator(mode="after")
    def _one_side(self) -> ThresholdTest:
        if not 0 < self.quantile < 1:
            raise ValueError("the quantile is not between 0 and 1")
        if (self.above is None) == (self.below is None):
            raise ValueError("give one of above and below")
        return self

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records all lie beyond."""
        share = self.quantile if self.above is not None else 1 - self.quantile
        share /= max(self.quantile, 1 - self.quantile)
        return None if rows is None else int(share * rows)

    def question(self, name: str, tested: Tested) -> Question:
        """The level, in cells of the column."""
        low, high = (
            None if level is None else round(level / tested.asked.grid.resolution)
            for level in (self.below, self.above)
        )
        return Threshold(Tolerance(self.quantile, low, high), tested.units)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Is a quantile above a level, or below it?

    Args:
        tolerance: What is not beyond.
        rows_per_unit: Most records in which neighbours differ.
    """

    tolerance: Tolerance
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """Quantile and level, for the ledger."""
        about = asdict(self.tolerance) | {"quantile": str(self.tolerance.quantile)}
        return {"kind": "threshold", **about, "ranks": str(self.tolerance.ranks)}

    def test(self, past: Past, statistic: CellCounts) -> Fraction:
        """The number of records beyond the level, above the number that may be there. Private."""
        return excess(statistic, (self.tolerance,), self.rows_per_unit)
