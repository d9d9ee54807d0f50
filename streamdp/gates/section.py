"""The section `gates`, and `gate` of a release: act only when a private test says so."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from streamdp.config.schedules import Schedule
from streamdp.config.section import Section
from streamdp.config.values import PositiveDuration, PositiveRational, Rational


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
"""One name, or a list."""


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

    kind: Literal["drift"]
    absolute: PositiveRational | None = Field(default=None, description="In the column's unit.")
    relative: PositiveRational | None = Field(default=None, description="A share of the value.")
    ranks: PositiveRational | None = Field(default=None, description="A share of all records.")
    quantiles: tuple[Rational, ...] = Field(
        default=(), description="Which of the release's; by default all."
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

    kind: Literal["threshold"]
    quantile: Rational
    above: Rational | None = None
    below: Rational | None = None

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

    kind: Literal["growth"]
    score: Literal["records", "mode"] = Field(
        default="records", description="All records, or those of the fullest cell."
    )
    start: PositiveRational = Field(description="The first level.")
    factor: Rational = Field(description="Each acceptance multiplies the level by it.")

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

    kind: Literal["custom"]
    name: str = Field(min_length=1, description="Of the entry point.")
    options: dict[str, Any] = Field(default={}, description="What it is made with.")
    delta: Rational = Field(default=Fraction(0), description="Delta of one draw.")
    sampled: bool = Field(
        default=True, strict=True, description="Whether it is drawn; else it computes its chance."
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


class GateTerms(Section):
    """When a gate accepts, what a run of it costs, and what follows."""

    test: Test
    epsilon: PositiveRational = Field(
        description="Price of a run: any number of rejections and the acceptance that ends it."
    )
    horizon: int = Field(ge=1, le=10**6, strict=True, description="Tests in a run, at most.")
    test_epsilon: PositiveRational | None = Field(
        default=None,
        description="Of one draw: of custom tests, by default a twentieth of epsilon; with it a"
        " drift test draws the quantiles instead of counting records outside.",
    )
    beta: PositiveRational = Field(
        default=Fraction(1, 20), description="Chance that a run errs, at most."
    )
    gamma: PositiveRational = Field(
        default=Fraction(2), description="Of drawn tests: sampling slack, in (1, 2]; 2 is fastest."
    )
    success: PositiveRational = Field(
        default=Fraction(1, 2),
        description="Of drawn tests: what succeeds so often is accepted.",
    )
    rearm: Literal["automatic", "manual"] = Field(
        default="automatic", description="Who pays for the next run; manual: `streamdp rearm`."
    )
    slot: PositiveDuration = Field(
        default=1, description="How long a test takes to who looks on; longer than any needs."
    )
    hold: Names = Field(default=(), description="Jobs that an acceptance pauses.")
    sinks: Names = Field(default=(), description="Sinks that are told of an acceptance.")

    @model_validator(mode="after")
    def _in_range(self) -> GateTerms:
        if self.beta >= 1:
            raise ValueError("beta is a chance below 1")
        if not 1 < self.gamma <= 2:
            raise ValueError("gamma is above 1 and at most 2")
        if self.success >= 1:
            raise ValueError("success is a chance below 1")
        if self.test_epsilon is not None and not self.is_drawn():
            raise ValueError(f"{self.test.kind} counts, it does not draw: leave test_epsilon out")
        if self.is_drawn() and isinstance(self.test, DriftTest) and self.test.ranks is not None:
            raise ValueError("a drift in ranks is counted, not drawn: leave test_epsilon out")
        if self.epsilon_of_test() > self.epsilon:
            raise ValueError("test_epsilon is far below epsilon: a tenth or a twentieth of it")
        if self.epsilon < Fraction(1, 1000):
            raise ValueError("a gate's epsilon is 0.001 or more")
        return self

    def is_drawn(self) -> bool:
        """Whether the test is a private draw, computed or not, rather than a count."""
        drift = isinstance(self.test, DriftTest) and self.test_epsilon is not None
        return drift or isinstance(self.test, CustomTest)

    def epsilon_of_test(self) -> Fraction:
        """Epsilon of one draw of a custom test."""
        return self.test_epsilon or self.epsilon / 20


class Gate(GateTerms):
    """A gate of its own: over jobs that it lets release, or over a source alone."""

    release: Names = Field(
        default=(), description="Jobs that release a batch only if this gate accepts it."
    )
    source: str | None = Field(default=None, description="By default that of the jobs.")
    column: str | None = Field(default=None, min_length=1)
    resolution: PositiveRational | None = None
    bounds: tuple[Rational, Rational] | None = None
    schedule: Schedule = Schedule(on="batch")

    @model_validator(mode="after")
    def _knows_what_to_ask(self) -> Gate:
        own = {"source", "column", "resolution", "bounds", "schedule"} & self.model_fields_set
        if self.release and own:
            raise ValueError(f"{', '.join(sorted(own))}: a gate over jobs takes it from the first")
        if not self.release:
            if self.test.kind == "drift":
                raise ValueError("drift is from a release: name a job in release")
            wanted = {"source", "column", "resolution", "bounds"} - self.model_fields_set
            if wanted:
                raise ValueError(f"without release it needs {', '.join(sorted(wanted))}")
            if not (self.sinks or self.hold):
                raise ValueError("nothing follows from it: give release, sinks or hold")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        return self
