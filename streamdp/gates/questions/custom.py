"""Tests of other packages."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, field_validator

from streamdp.errors import ConfigurationError
from streamdp.gates.questions.section import Question, Test, Tested, Tests, TestSection
from streamdp.sections.values import Rational
from streamdp.types import Json, Past, Row

ENTRY_POINTS = "streamdp.tests"
"""Group of entry points of custom tests: `factory(grid, epsilon, **options)` makes a `Question`."""


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
        default=Fraction(0),
        description="Delta of one run of the test for one record, below 1. Default 0.",
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
        """True: a test of a package is a private draw whatever it costs."""
        return True

    def slack(self) -> tuple[Fraction, bool]:
        """`delta` and `sampled` of the section."""
        return self.delta, self.sampled

    def question(self, name: str, tested: Tested) -> Question:
        """The test that the package makes.

        Raises:
            ConfigurationError: There is none of that name, or it refuses its options.
        """
        place = f"gates.{name}.test"
        found = {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
        if self.name not in found:
            there = ", ".join(sorted(found)) or "none"
            raise ConfigurationError(
                f"no installed package offers a test {self.name!r}",
                where=f"{place}.name",
                hint=f"entry points of {ENTRY_POINTS}: {there}",
            )
        grid, epsilon = tested.asked.grid, tested.epsilon_of_test
        options: dict[str, Any] = self.options
        try:
            question: Question = found[self.name].load()(grid, epsilon, **options)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigurationError(f"the test cannot be made: {error}", where=place) from None
        return question if tested.units == 1 else OfUnits(question, tested.units)


@dataclass(frozen=True, slots=True)
class OfUnits:
    """A test whose package knows of one record more or less, for neighbours of several.

    Args:
        of: The test.
        units: Most records in which neighbours differ.
    """

    of: Question
    units: int

    @property
    def configurations(self) -> tuple[Row, ...]:
        """Rows of a test of several configurations."""
        return getattr(self.of, "configurations", ())

    def describe(self) -> Json:
        """Public parameters of the test."""
        return self.of.describe()

    def test(self, past: Past, statistic: Any) -> Tests:
        """The test of a batch. Private.

        Privacy: a score that one record moves by one is divided by the records of a unit; of
        procedures the gate's `Terms` have the price of all of them.
        """
        tests = self.of.test(past, statistic)
        if isinstance(tests, tuple):
            return tuple(self._of_unit(each) for each in tests)
        return self._of_unit(tests)

    def _of_unit(self, test: Test) -> Test:
        return test / self.units if isinstance(test, Fraction) else test
