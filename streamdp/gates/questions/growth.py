"""Has a score grown by a factor since the last acceptance?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, assert_never

from pydantic import Field, field_validator, model_validator

from streamdp.gates.questions.section import (
    Asks,
    Found,
    Question,
    Scored,
    Tables,
    Tested,
    TestedRelease,
    TestSection,
)
from streamdp.mechanisms.sparse_vector.drift import Tolerance, best, excess, rows, total
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import Grid, Json, Past


class GrowthTest(TestSection):
    """A score has grown by a factor since the last acceptance."""

    kind: Literal["growth"] = Field(
        description="`growth`: a score has grown by a factor since the last acceptance."
    )
    score: Literal["records", "mode", "quantile", "sum", "best"] = Field(
        default="records",
        description="What has grown: the number of all records (`records`), of those in the"
        " fullest cell (`mode`), a `quantile` or the `sum` of the column, or the score of the best"
        " candidate of a selection (`best`). Default `records`.",
    )
    quantile: Rational | None = Field(
        default=None,
        description="Quantile that is tested, between 0 and 1. For `score: quantile` alone.",
        examples=[0.9],
    )
    start: PositiveRational = Field(
        description="First level: in records, in the unit of the column, or in that of the"
        " selection's score.",
        examples=[1000],
    )
    factor: Rational = Field(
        description="Factor by which the level grows at each acceptance, above 1.", examples=[2]
    )

    @property
    def asks(self) -> Asks:
        """The cells of a column, or the scores of a selection's candidates."""
        return "scores" if self.score == "best" else "cells"

    @model_validator(mode="after")
    def _has_its_quantile(self) -> GrowthTest:
        if (self.score == "quantile") != (self.quantile is not None):
            raise ValueError("score: quantile takes a quantile, other scores take none")
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise ValueError("the quantile is not between 0 and 1")
        return self

    def problems(self, release: TestedRelease, tables: Tables) -> Iterator[Found]:
        """Problem: the sum of a column without bounds, of which one record may change all."""
        if self.score == "sum" and getattr(release, "bounds", None) is None:
            yield ("test", "score"), "one record may change the sum by any amount", "give it bounds"

    def why_not_alone(self) -> str | None:
        """Return why the test needs a release that names candidates; None if it does not."""
        if self.score == "best":
            return "the best is of a selection: name its job in release"
        return None

    @field_validator("factor")
    @classmethod
    def _grows(cls, value: Fraction) -> Fraction:
        if value <= 1:
            raise ValueError("the factor must be above 1")
        return value

    def question(self, name: str, tested: Tested) -> Question:
        """The growth of the score, over cells or candidates."""
        asked = tested.asked
        levels = (self.score, self.start, self.factor)
        return Growth(*levels, tested.units, asked.grid, self.quantile, asked.scored)


@dataclass(frozen=True, slots=True)
class Growth:
    """Has a score grown by a factor? Levels are start, start·factor, ...: one step an acceptance.

    However the score moves, there are at most log(score/start)/log(factor) + 1 acceptances until
    the next level is out of reach. That is continual observation: the answer of a batch mechanism
    over growing data, renewed whenever the best score has grown by a factor.

    Args:
        score: All records, those in the fullest cell, a quantile or the sum of the column, or the
            best score of candidates.
        start: First level.
        factor: Above one.
        rows_per_unit: Most records in which neighbours differ.
        grid: Of the column, for its quantile or sum.
        quantile: The one that is tested.
        scored: The candidates.
    """

    score: Literal["records", "mode", "quantile", "sum", "best"]
    start: Fraction
    factor: Fraction
    rows_per_unit: int = 1
    grid: Grid | None = None
    quantile: Fraction | None = None
    scored: Scored | None = None

    def describe(self) -> Json:
        """The score, and the levels that it is compared with, for the ledger."""
        about = {"score": self.score, "start": str(self.start), "factor": str(self.factor)}
        quantile = {} if self.quantile is None else {"quantile": str(self.quantile)}
        return {"kind": "growth", **about, **quantile}

    def test(self, past: Past, statistic: Any) -> Fraction:
        """The excess of the score over its level. Private.

        Privacy: sensitivity one. Records and the fullest cell change by one; the records by which a
        quantile is above a level are `Tolerance.excess`; a sum of numbers within the bounds changes
        by the larger of them, and the best of several scores by the most that one of them does,
        which each divides its excess. Records that neighbours differ in divide it too; a
        substitution counts as two of them. The level follows from earlier answers.
        """
        level = self.start * self.factor**past.accepted
        match self.score:
            case "records":
                return rows(statistic, level, self.rows_per_unit)
            case "mode":
                return best(statistic, level, self.rows_per_unit)
            case "quantile":
                assert self.grid is not None and self.quantile is not None  # noqa: S101, PT018
                high = min(math.floor(level / self.grid.resolution), self.grid.upper)
                above = Tolerance(self.quantile, None, max(high, self.grid.lower - 1))
                return excess(statistic, (above,), self.rows_per_unit)
            case "sum":
                assert self.grid is not None  # noqa: S101
                return total(statistic, self.grid, level, self.rows_per_unit)
            case "best":
                assert self.scored is not None  # noqa: S101
                beyond = self.scored.best(statistic) - level
                return beyond / (self.scored.one * self.rows_per_unit)
            case _:
                assert_never(self.score)
