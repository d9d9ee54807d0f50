"""Which rule is the first that is right often enough?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.gates.questions.section import (
    Asks,
    JudgedRules,
    Question,
    Tested,
    TestSection,
)
from streamdp.sections.values import Rational
from streamdp.types import Json, Past, Row, TableCounts


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

    def question(self, name: str, tested: Tested) -> Question:
        """The rules in their order."""
        return FirstRule(tested.asked.of_rules(), self.correct, tested.units)


@dataclass(frozen=True, slots=True)
class FirstRule:
    """Which rule is the first, in their order, that is right on enough records?

    Args:
        rules: In the order in which they are tried.
        correct: Share of the records that is enough.
        rows_per_unit: Most records in which neighbours differ.
    """

    rules: JudgedRules
    correct: Fraction
    rows_per_unit: int = 1

    @property
    def configurations(self) -> tuple[Row, ...]:
        """Parameters of each rule."""
        return self.rules.rows()

    def describe(self) -> Json:
        """The label, the share, and how many rules there are, for the ledger."""
        about = {"label": self.rules.label, "correct": str(self.correct)}
        return {"kind": "first", "rules": len(self.configurations), **about}

    def test(self, past: Past, statistic: TableCounts) -> tuple[Fraction, ...]:
        """Return how many records each rule is right about beyond the share. Private.

        Privacy: a record adds 1 - share or -share to the score of each rule, so each moves by one
        at most. Records that neighbours differ in divide it; a substitution counts as two of them.
        """
        errors, records = self.rules.all_errors(statistic)
        need = self.correct * records
        return tuple((records - each - need) / self.rows_per_unit for each in errors)
