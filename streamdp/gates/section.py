"""The section `gates`, and `gate` of a release: act only when a private test says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from streamdp.gates.questions.section import AnyTest
from streamdp.privacy.filters import LARGEST_PRICE
from streamdp.sections.schedules import Schedule
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveDuration, PositiveRational, Rational


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
"""One name, or a list."""


ASKED = {"cells": ("column", "resolution", "bounds"), "counts": (), "rules": (), "scores": ()}
"""Keys of a gate that stands alone, by what its test asks."""


class GateTerms(Section):
    """When a gate accepts, what a run of it costs, and what follows."""

    test: AnyTest = Field(
        description="Private test that a batch is put to.",
        examples=[{"kind": "drift", "ranks": 0.15}],
    )
    epsilon: PositiveRational = Field(
        description="Privacy cost of a run of the gate: any number of rejections, and the"
        " acceptance that ends it.",
        examples=[1],
    )
    horizon: int = Field(
        ge=1,
        le=10**6,
        strict=True,
        description="Most tests in a run. A longer run needs a larger change for a sure yes.",
        examples=[365],
    )
    test_epsilon: PositiveRational | None = Field(
        default=None,
        description="Epsilon of one draw of the test. Of custom tests the default is a twentieth"
        " of `epsilon`. With it a drift test draws the quantiles; without it, it counts"
        " records outside the tolerance. Other tests take none.",
    )
    beta: PositiveRational = Field(
        default=Fraction(1, 20),
        description="Largest probability that a run errs: a yes within the tolerance, or a no far"
        " outside it. Default 1/20.",
        examples=["1/20"],
    )
    gamma: PositiveRational = Field(
        default=Fraction(2),
        description="Slack of sampled tests, above 1 and at most 2. A larger slack takes fewer"
        " runs of the test. Default 2.",
    )
    success: PositiveRational = Field(
        default=Fraction(1, 2),
        description="Probability of success from which a custom or drawn test is accepted, below"
        " 1. Default 1/2.",
        examples=["1/2"],
    )
    success_steps: tuple[PositiveRational, ...] = Field(
        default=(),
        description="Probabilities that take the place of `success` one after the other; the last"
        " one stays. Default: none, `success` stays.",
        examples=[["2/3", "3/4"]],
    )
    success_by: Literal["acceptance", "test"] = Field(
        default="acceptance",
        description="What moves on from `success` to the next of `success_steps`: each yes of the"
        " gate (`acceptance`), or each test of a run (`test`), which begins anew with the next run."
        " Default `acceptance`.",
    )
    rearm: Literal["automatic", "manual"] = Field(
        default="automatic",
        description="What starts the next run after an acceptance: the gate itself, which is"
        " charged (`automatic`), or the command `streamdp rearm` (`manual`). Default"
        " `automatic`.",
    )
    slot: PositiveDuration = Field(
        default=1,
        description="Time that every test appears to take, as a duration. It must be longer than"
        " any test needs. Tests of a backlog follow each other at a twentieth of it. Default 1s.",
        examples=["1s"],
    )
    hold: Names = Field(
        default=(),
        description="Name or names of jobs that an acceptance pauses. Default: none.",
        examples=["hourly"],
    )
    sinks: Names = Field(
        default=(),
        description="Name or names of sinks that are told of an acceptance. Default: none.",
        examples=["pager"],
    )

    @model_validator(mode="after")
    def _in_range(self) -> GateTerms:
        if self.beta >= 1:
            raise ValueError("beta is a chance below 1")
        if not 1 < self.gamma <= 2:
            raise ValueError("gamma is above 1 and at most 2")
        if max(self.levels()) >= 1:
            raise ValueError("success and success_steps are chances below 1")
        if self.success_steps and not self.is_drawn():
            raise ValueError("this test counts, it does not draw: leave success_steps out")
        if self.test_epsilon is not None and not self.is_drawn():
            raise ValueError("this test counts, it does not draw: leave test_epsilon out")
        if self.epsilon_of_test() > self.epsilon:
            raise ValueError("test_epsilon is far below epsilon: a tenth or a twentieth of it")
        if self.epsilon < Fraction(1, 1000):
            raise ValueError("a gate's epsilon is 0.001 or more")
        if self.epsilon > LARGEST_PRICE:
            raise ValueError(f"a gate's epsilon is {LARGEST_PRICE} or less")
        return self

    def is_drawn(self) -> bool:
        """Whether the test is a private draw, computed or not, rather than a count."""
        return self.test.draws(priced=self.test_epsilon is not None)

    def levels(self) -> tuple[Fraction, ...]:
        """Probabilities of success that are asked for, in their order."""
        return (self.success, *self.success_steps)

    def epsilon_of_test(self) -> Fraction:
        """Epsilon of one draw of a custom test."""
        return self.test_epsilon or self.epsilon / 20


class Gate(GateTerms):
    """A gate of its own: over jobs that it lets release, or over a source alone."""

    release: Names = Field(
        default=(),
        description="Name or names of the jobs that release a batch only if this gate accepts it."
        " Default: none; the gate stands alone.",
        examples=["air_time"],
    )
    source: str | None = Field(
        default=None,
        description="Name of the source whose batches are tested. With `release` leave it out: it"
        " is the first job's.",
        examples=["flights"],
    )
    column: str | None = Field(
        default=None,
        min_length=1,
        description="Column that is tested. With `release` leave it out: it is the first job's."
        " A test of a count needs none.",
        examples=["air_time"],
    )
    resolution: PositiveRational | None = Field(
        default=None,
        description="Width of a cell of the column, in its unit. Values are rounded to it. With"
        " `release` leave it out: it is the first job's.",
        examples=[1],
    )
    bounds: tuple[Rational, Rational] | None = Field(
        default=None,
        description="Lowest and highest value, in the column's unit. Values outside count as the"
        " bound. With `release` leave it out: it is the first job's.",
        examples=[[0, 1000]],
    )
    schedule: Schedule = Field(
        default=Schedule(on="batch"),
        description="When the gate tests: `cron`, `every` or `on: batch`. With `release` leave it"
        " out: it is the first job's. Default: `on: batch`.",
        examples=[{"every": "1h"}],
    )

    @model_validator(mode="after")
    def _knows_what_to_ask(self) -> Gate:
        own = {"source", "column", "resolution", "bounds", "schedule"} & self.model_fields_set
        if self.release and own:
            raise ValueError(f"{', '.join(sorted(own))}: a gate over jobs takes it from the first")
        if not self.release:
            if (why := self.test.why_not_alone()) is not None:
                raise ValueError(why)
            needless = set(ASKED["cells"]) - set(ASKED[self.test.asks])
            if given := needless & self.model_fields_set:
                raise ValueError(f"{', '.join(sorted(given))}: records are counted, no values")
            wanted = {"source", *ASKED[self.test.asks]} - self.model_fields_set
            if wanted:
                raise ValueError(f"without release it needs {', '.join(sorted(wanted))}")
            if not (self.sinks or self.hold):
                raise ValueError("nothing follows from it: give release, sinks or hold")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        return self
