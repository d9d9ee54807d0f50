"""Tests of counts in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.base.expressions import OfOneRecord
from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveRational, Rational
from streamdp.gates.sections.base import Asks, Found, Tables, TestSection


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

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """Problem: the sum of a column without bounds, of which one record may change all."""
        if self.score == "sum" and getattr(release, "bounds", None) is None:
            yield ("test", "score"), "one record may change the sum by any amount", "give it bounds"

    def why_not_alone(self) -> str | None:
        """Without a release there are no candidates."""
        if self.score == "best":
            return "the best is of a selection: name its job in release"
        return None

    @field_validator("factor")
    @classmethod
    def _grows(cls, value: Fraction) -> Fraction:
        if value <= 1:
            raise ValueError("the factor must be above 1")
        return value


class CountTest(TestSection):
    """A count is beyond a level, or has left a tolerance around its last release."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"statistics"})

    kind: Literal["count"] = Field(
        description="`count`: a count of a release of statistics is beyond a level, or has left"
        " the tolerance around its last release. A gate that stands alone counts records."
    )
    measure: str | None = Field(
        default=None,
        description="Name of the count or histogram that is tested. Not in a gate that stands"
        " alone.",
        examples=["by_carrier"],
    )
    cells: tuple[str, ...] = Field(
        default=(),
        description="Cells of the histogram that are tested: one of them is enough. Default: all.",
        examples=[["AA", "UA"]],
    )
    where: OfOneRecord | None = Field(
        default=None,
        description="SQL condition on one record, in a gate that stands alone: only records for"
        " which it is true count. Default: all count.",
        examples=["delay > 60"],
    )
    above: Rational | None = Field(
        default=None, description="Accept when a count is above this level.", examples=[500]
    )
    below: Rational | None = Field(
        default=None, description="Accept when a count is below this level.", examples=[100]
    )
    absolute: PositiveRational | None = Field(
        default=None,
        description="Accept when a count differs from its last release by more records than this.",
        examples=[50],
    )
    relative: PositiveRational | None = Field(
        default=None,
        description="Accept when a count differs from its last release by more than this share of"
        " the released value.",
        examples=["1/4"],
    )

    @property
    def asks(self) -> Asks:
        """A table of counts."""
        return "counts"

    @model_validator(mode="after")
    def _one_of_them(self) -> CountTest:
        levels = (self.above, self.below, self.absolute, self.relative)
        if sum(each is not None for each in levels) != 1:
            raise ValueError("give one of above, below, absolute and relative")
        if any(level is not None and level < 0 for level in (self.above, self.below)):
            raise ValueError("a count is never below 0: the level is 0 or more")
        return self

    def why_not_alone(self) -> str | None:
        """Without a release there are records alone, and nothing to compare them with."""
        if self.absolute is not None or self.relative is not None:
            return "absolute and relative are from a release: name a job in release"
        if self.measure is not None or self.cells:
            return "measure and cells are of a release: name a job in release"
        return None

    def table(self) -> str:
        """Name of the measure that is tested."""
        return self.measure or ""

    def condition(self) -> str | None:
        """The `where` of the test."""
        return self.where

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of an empty batch below a level; None above one, since there is no most."""
        return None if self.below is None else int(self.below)

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """Problems: a measure that does not count, or cells that it lacks."""
        if self.where is not None:
            hint = "take it out: the measure says what it counts"
            yield ("test", "where"), "the condition is that of the release", hint
        if self.measure is None or self.measure not in tables:
            there = ", ".join(tables) or "none"
            what = "its release has no count or histogram of this name"
            yield ("test", "measure"), what, f"there are: {there}"
            return
        for index, cell in enumerate(self.cells):
            if cell not in tables[self.measure]:
                some = ", ".join(tables[self.measure][:9])
                what = f"{self.measure} has no cell {cell!r}"
                yield ("test", "cells", index), what, f"there are: {some}"
