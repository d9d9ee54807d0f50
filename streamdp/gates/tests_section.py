"""The key `test` of a gate: what a batch is put to."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveRational, Rational


def quantiles_of(release: Section | None) -> tuple[Fraction, ...]:
    """What a release publishes, if it is of quantiles."""
    return getattr(release, "quantiles", ())


class TestSection(Section):
    """What a gate tests.

    `reads` names the kinds whose published values the test compares a batch with; it is None where
    it needs none of them, so that any release will do whose column can be counted.
    """

    reads: ClassVar[frozenset[str] | None] = None

    def problems(self, release: Section) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
        """What does not fit the first release of the gate: keys, what is wrong, what to do."""
        yield from ()


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

    def problems(self, release: Section) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
        """A drift is seen in released quantiles."""
        for index, quantile in enumerate(self.quantiles):
            if quantile not in quantiles_of(release):
                where = ("test", "quantiles", index)
                yield where, "its release does not release this quantile", "name one that it has"

    def reach(self, quantiles: tuple[Fraction, ...]) -> Fraction:
        """The largest score there can be, as a share of all records."""
        ranks = self.ranks or Fraction(0)
        larger = (max(quantile, 1 - quantile) for quantile in self.quantiles or quantiles)
        return max((share - ranks) / (share + ranks) for share in larger)


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

    def reach(self, quantiles: tuple[Fraction, ...]) -> Fraction:
        """The largest score there can be, as a share of all records."""
        share = self.quantile if self.above is not None else 1 - self.quantile
        return share / max(self.quantile, 1 - self.quantile)


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

    def reach(self, quantiles: tuple[Fraction, ...]) -> None:
        """A score has no upper end."""


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

    def reach(self, quantiles: tuple[Fraction, ...]) -> None:
        """Not known here."""


Test = Annotated[DriftTest | ThresholdTest | GrowthTest | CustomTest, Field(discriminator="kind")]


TEST_KINDS = ("drift", "threshold", "growth", "custom")
"""What `kind` of a test may say."""
