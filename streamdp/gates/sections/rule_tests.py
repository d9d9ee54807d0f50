"""Test of a released rule in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.config.base.section import Section
from streamdp.config.base.values import Rational
from streamdp.gates.sections.base import Asks, Found, Tables, TestSection


class ErrorTest(TestSection):
    """The rule of the last release errs too often."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"selection", "experts"})

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

    @property
    def asks(self) -> Asks:
        """Rules and a label."""
        return "rules"

    @model_validator(mode="after")
    def _one_share(self) -> ErrorTest:
        share = self.above if self.above is not None else self.more
        if share is None or (self.above is not None and self.more is not None):
            raise ValueError("give one of above and more")
        if not 0 < share < 1:
            raise ValueError("a share of the records is between 0 and 1")
        return self

    def why_not_alone(self) -> str | None:
        """A reason, always: the rule that is tested comes from a release."""
        return "error is of a release: name a job of rules in release"

    def problems(self, release: Section, tables: Tables) -> Iterator[Found]:
        """Problem: `more` with a selection, which releases no average loss."""
        if self.more is not None and getattr(release, "kind", "") == "selection":
            yield ("test", "more"), "a selection releases no average loss", "give above"

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records are all errors."""
        share = self.above if self.above is not None else self.more or 0
        return None if rows is None else int((1 - share) * rows)


class FirstTest(TestSection):
    """Some rule, in their order, is right often enough: the first of several configurations."""

    reads: ClassVar[frozenset[str] | None] = frozenset({"selection", "experts"})

    kind: Literal["first"] = Field(
        description="`first`: the first of the release's rules, in their order, that is right on"
        " enough of the records. The answer names it."
    )
    correct: Rational = Field(
        description="Share of the records that the rule must be right on, between 0 and 1.",
        examples=[0.9],
    )

    @property
    def asks(self) -> Asks:
        """Rules and a label."""
        return "rules"

    @model_validator(mode="after")
    def _a_share(self) -> FirstTest:
        if not 0 < self.correct < 1:
            raise ValueError("a share of the records is between 0 and 1")
        return self

    def why_not_alone(self) -> str | None:
        """A reason, always: the rules are those of a release."""
        return "first is of a release: name a job of rules in release"

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch that a rule is right on wholly."""
        return None if rows is None else int((1 - self.correct) * rows)
