"""The key `test` of a gate: what a batch is put to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.base.expressions import expression
from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveRational, Rational


def quantiles_of(release: Section | None) -> tuple[Fraction, ...]:
    """The quantiles that a release publishes; none if it is of another kind."""
    return getattr(release, "quantiles", ())


Found = tuple[tuple[str | int, ...], str, str]
"""A problem: keys, what is wrong, what to do."""

Tables = Mapping[str, tuple[str, ...]]
"""Names of tables of counts, each with its cells."""


class TestSection(Section):
    """A test, as the configuration writes it.

    `reads` names the kinds whose published values the test compares a batch with; it is None where
    it needs none of them, so that any release will do whose column can be counted. `asks` says what
    of a batch it is put to: the cells of a column, a table of counts, or rules and a label.
    """

    reads: ClassVar[frozenset[str] | None] = None
    asks: ClassVar[Literal["cells", "counts", "rules"]] = "cells"

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """Problems between the test and the first release of the gate.

        Args:
            release: Its section.
            tables: Names of its tables of counts, and of their cells.
        """
        yield from ()

    def why_not_alone(self) -> str | None:
        """Why a gate without a release cannot put a batch to it; None if it can."""
        return None

    def draws(self, *, priced: bool) -> bool:
        """Whether it is a private draw rather than a count, with or without a `test_epsilon`."""
        return False

    def slack(self) -> tuple[Fraction, bool]:
        """Delta of one draw, and whether its chance of a yes is sampled instead of computed."""
        return Fraction(0), False

    def table(self) -> str:
        """Name of the table of counts of the release that it is put to; "" if it asks for cells."""
        return ""

    def condition(self) -> str | None:
        """SQL condition of the records that a gate without a release counts; None for all."""
        return None

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The largest score that a batch can have, in records; None if nobody can say.

        Args:
            quantiles: Of the release, if it has any.
            rows: That a batch is expected to have; None if nothing is expected.
        """
        return None


class DriftTest(TestSection):
    """Some quantile has left a tolerance around the last release."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"quantiles"})

    kind: Literal["drift"] = Field(
        description="`drift`: a quantile has left the tolerance around the last release."
    )
    absolute: PositiveRational | None = Field(
        default=None, description="Tolerance in the column's unit.", examples=[20]
    )
    relative: PositiveRational | None = Field(
        default=None,
        description="Tolerance as a share of the last released value.",
        examples=["1/10"],
    )
    ranks: PositiveRational | None = Field(
        default=None,
        description="Tolerance in rank, as a share of the records, below 1.",
        examples=[0.15],
    )
    quantiles: tuple[Rational, ...] = Field(
        default=(),
        description="Quantiles that are tested. Default: all of the release.",
        examples=[[0.5, 0.9]],
    )

    @model_validator(mode="after")
    def _one_tolerance(self) -> DriftTest:
        if sum(each is not None for each in (self.absolute, self.relative, self.ranks)) != 1:
            raise ValueError("give one tolerance: absolute, relative or ranks")
        if self.ranks is not None and self.ranks >= 1:
            raise ValueError("a tolerance in ranks is a share below 1")
        return self

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """It is seen in released quantiles."""
        for index, quantile in enumerate(self.quantiles):
            if quantile not in quantiles_of(release):
                where = ("test", "quantiles", index)
                yield where, "its release does not release this quantile", "name one that it has"

    def why_not_alone(self) -> str | None:
        """It compares with a release."""
        return "drift is from a release: name a job in release"

    def draws(self, *, priced: bool) -> bool:
        """With a `test_epsilon`; a drift in ranks is counted all the same."""
        return priced and self.ranks is None

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records all lie beyond."""
        ranks = self.ranks or Fraction(0)
        larger = (max(quantile, 1 - quantile) for quantile in self.quantiles or quantiles)
        share = max((share - ranks) / (share + ranks) for share in larger)
        return None if rows is None else int(share * rows)


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


class GrowthTest(TestSection):
    """A score has grown by a factor since the last acceptance."""

    kind: Literal["growth"] = Field(
        description="`growth`: a count has grown by a factor since the last acceptance."
    )
    score: Literal["records", "mode"] = Field(
        default="records",
        description="What is counted: all records (`records`), or those of the fullest cell"
        " (`mode`). Default `records`.",
    )
    start: PositiveRational = Field(
        description="First level of the count, in records.", examples=[1000]
    )
    factor: Rational = Field(
        description="Factor by which the level grows at each acceptance, above 1.", examples=[2]
    )

    @field_validator("factor")
    @classmethod
    def _grows(cls, value: Fraction) -> Fraction:
        if value <= 1:
            raise ValueError("the factor must be above 1")
        return value


class CountTest(TestSection):
    """A count is beyond a level, or has left a tolerance around its last release."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"statistics"})
    asks: ClassVar[Literal["cells", "counts", "rules"]] = "counts"

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
    where: str | None = Field(
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

    @field_validator("where")
    @classmethod
    def _of_one_record(cls, value: str | None) -> str | None:
        if value is not None:
            expression(value)
        return value

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
        """That of the measure."""
        return self.measure or ""

    def condition(self) -> str | None:
        """As configured."""
        return self.where

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """Below a level, of an empty batch; above one there is no end."""
        return None if self.below is None else int(self.below)

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """It names a measure that counts, and cells that it has."""
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


class ErrorTest(TestSection):
    """The rule of the last release errs too often."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"selection", "experts"})
    asks: ClassVar[Literal["cells", "counts", "rules"]] = "rules"

    kind: Literal["error"] = Field(
        description="`error`: the rule that the last release chose errs on too many records."
    )
    above: Rational | None = Field(
        default=None,
        description="Accept when the rule errs on more than this share of the records, between 0"
        " and 1.",
        examples=[0.15],
    )
    more: Rational | None = Field(
        default=None,
        description="Accept when the rule errs more often than its released average loss, by more"
        " than this share of the records. For releases of experts.",
        examples=[0.05],
    )

    @model_validator(mode="after")
    def _one_share(self) -> ErrorTest:
        share = self.above if self.above is not None else self.more
        if share is None or (self.above is not None and self.more is not None):
            raise ValueError("give one of above and more")
        if not 0 < share < 1:
            raise ValueError("a share of the records is between 0 and 1")
        return self

    def why_not_alone(self) -> str | None:
        """It tests what a release chose."""
        return "error is of a release: name a job of rules in release"

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """A selection releases no loss."""
        if self.more is not None and getattr(release, "kind", "") == "selection":
            yield ("test", "more"), "a selection releases no average loss", "give above"

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records are all errors."""
        share = self.above if self.above is not None else self.more or 0
        return None if rows is None else int((1 - share) * rows)


class CustomTest(TestSection):
    """A test that another package offers as an entry point of `streamdp.tests`."""

    kind: Literal["custom"] = Field(
        description="`custom`: a test of another package, from the entry point group"
        " `streamdp.tests`."
    )
    name: str = Field(min_length=1, description="Name of the entry point.", examples=["my_test"])
    options: dict[str, Any] = Field(
        default={}, description="Arguments that the test is made with. Default: none."
    )
    delta: Rational = Field(
        default=Fraction(0), description="Delta of one run of the test, below 1. Default 0."
    )
    sampled: bool = Field(
        default=True,
        strict=True,
        description="Whether the test is run many times (true), or computes its probability of"
        " success (false). Default true.",
    )

    @field_validator("delta")
    @classmethod
    def _is_a_chance(cls, value: Fraction) -> Fraction:
        if not 0 <= value < 1:
            raise ValueError("delta is a chance below 1")
        return value

    def draws(self, *, priced: bool) -> bool:
        """Whatever its price."""
        return True

    def slack(self) -> tuple[Fraction, bool]:
        """As configured."""
        return self.delta, self.sampled


Test = Annotated[
    DriftTest | ThresholdTest | GrowthTest | CountTest | ErrorTest | CustomTest,
    Field(discriminator="kind"),
]


TEST_KINDS = ("drift", "threshold", "growth", "count", "error", "custom")
"""The values of `kind` of a test."""
