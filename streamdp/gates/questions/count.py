"""Is a count beyond a level, or off its last release?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.gates.questions.section import (
    Around,
    Asks,
    Found,
    Question,
    Tables,
    Tested,
    TestedRelease,
    TestSection,
)
from streamdp.sections.expressions import OfOneRecord
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import Json, Past, TableCounts


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
        """Return why the test needs a release to compare records with; None if it does not."""
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

    def problems(self, release: TestedRelease, tables: Tables) -> Iterator[Found]:
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

    def question(self, name: str, tested: Tested) -> Question:
        """The counts of its cells, or of all."""
        near = None
        if self.absolute is not None or self.relative is not None:
            near = Around(self.absolute or Fraction(0), self.relative or Fraction(0))
        cells, levels = tested.asked.cells, (self.above, self.below)
        return Counts(self.measure, cells, self.cells or cells, *levels, near, tested.units)


@dataclass(frozen=True, slots=True)
class Counts:
    """Is a count above a level, below one, or off its last release?

    Args:
        measure: Name in the release; None counts all records.
        cells: Names of all cells of the measure, in the order of the table.
        tested: Those that are looked at; one of them is enough.
        above: Level, in records.
        below: Level, in records.
        around: Tolerance around the released value, in place of a level.
        rows_per_unit: Most records in which neighbours differ.
    """

    measure: str | None
    cells: tuple[str, ...]
    tested: tuple[str, ...]
    above: Fraction | None = None
    below: Fraction | None = None
    around: Around | None = None
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """Counts that are looked at, and the level or the tolerance."""
        about: Json = {"kind": "count", "measure": self.measure, "cells": list(self.tested)}
        for name, level in (("above", self.above), ("below", self.below)):
            about |= {} if level is None else {name: str(level)}
        if self.around is not None:
            about |= {"absolute": str(self.around.absolute), "relative": str(self.around.relative)}
        return about

    def test(self, past: Past, statistic: TableCounts) -> Fraction:
        """Return how many records the farthest count is beyond its level. Private.

        A cell that the last release does not have is compared with 0.

        Privacy: one record more changes one count by one and the others not at all, so each excess
        by at most one, and the largest of them by at most one. Released values are public. Records
        that neighbours differ in divide the score; a substitution counts as two of them.
        """
        (table,) = statistic.marginals
        counts = dict(zip(self.cells, table.reshape(-1).tolist(), strict=True))
        released = {
            str(row.get("cell") or ""): Fraction(row.get("value") or 0)
            for row in past.rows
            if row.get("measure") == self.measure
        }
        excess = (
            self._excess(int(counts[cell]), released.get(cell, Fraction(0))) for cell in self.tested
        )
        return max(excess) / self.rows_per_unit

    def _excess(self, count: int, released: Fraction) -> Fraction:
        if self.above is not None:
            return count - self.above
        if self.below is not None:
            return self.below - count
        assert self.around is not None  # noqa: S101
        reach = self.around.absolute + self.around.relative * abs(released)
        return abs(count - released) - reach
