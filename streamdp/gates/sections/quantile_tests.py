"""Tests of quantiles in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import PositiveRational, Rational
from streamdp.gates.sections.base import Found, Tables, TestSection, quantiles_of


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
        """Problems: quantiles that the release does not publish."""
        for index, quantile in enumerate(self.quantiles):
            if quantile not in quantiles_of(release):
                where = ("test", "quantiles", index)
                yield where, "its release does not release this quantile", "name one that it has"

    def why_not_alone(self) -> str | None:
        """A reason, always: drift is measured from a release."""
        return "drift is from a release: name a job in release"

    def draws(self, *, priced: bool) -> bool:
        """Whether it has a `test_epsilon`; a drift in ranks is always counted."""
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
