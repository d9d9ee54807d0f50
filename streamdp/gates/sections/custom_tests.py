"""Tests of other packages in the configuration."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

from pydantic import Field, field_validator

from streamdp.config.base.values import Rational
from streamdp.gates.sections.base import TestSection


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
        """True: a test of a package is a private draw whatever it costs."""
        return True

    def slack(self) -> tuple[Fraction, bool]:
        """`delta` and `sampled` of the section."""
        return self.delta, self.sampled
