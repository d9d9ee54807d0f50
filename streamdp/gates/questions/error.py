"""Does the rule of the last release err on too many records?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from streamdp.gates.questions.section import (
    Asks,
    Found,
    JudgedRules,
    Question,
    Tables,
    Tested,
    TestedRelease,
    TestSection,
)
from streamdp.sections.values import Rational
from streamdp.types import Json, Past, Row, TableCounts


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

    def problems(self, release: TestedRelease, tables: Tables) -> Iterator[Found]:
        """Problem: `more` with a selection, which releases no average loss."""
        if self.more is not None and getattr(release, "kind", "") == "selection":
            yield ("test", "more"), "a selection releases no average loss", "give above"

    def most(self, quantiles: tuple[Fraction, ...], rows: int | None) -> int | None:
        """The score of a batch whose records are all errors."""
        share = self.above if self.above is not None else self.more or 0
        return None if rows is None else int((1 - share) * rows)

    def question(self, name: str, tested: Tested) -> Question:
        """The errors of the rule that is named."""
        return RuleError(tested.asked.of_rules(), self.above, self.more, tested.units)


@dataclass(frozen=True, slots=True)
class RuleError:
    """Does the rule of the last release err on too many records?

    Args:
        rules: Among which the release names one.
        above: Share of the records that may be errors; None if it is `more`.
        more: By how much the share may exceed the average loss that was released with the rule.
        rows_per_unit: Most records in which neighbours differ.
    """

    rules: JudgedRules
    above: Fraction | None
    more: Fraction | None
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """The label, and the share of errors that is too many, for the ledger."""
        levels = {"above": self.above, "more": self.more}
        said = {name: str(level) for name, level in levels.items() if level is not None}
        return {"kind": "error", "label": self.rules.label, **said}

    def test(self, past: Past, statistic: TableCounts) -> Fraction:
        """Return how many errors the rule has beyond the share. Private.

        Without a rule among the last release all records are errors.

        Privacy: a record adds 1 - share or -share to the errors minus share times the records, with
        a public share in [0, 1], so the score moves by one at most. Records that neighbours differ
        in divide it; a substitution counts as two of them.
        """
        row = self.rules.named(past.rows)
        number = None if row is None else self.rules.number(row)
        if row is None or number is None:
            return Fraction(self.rules.errors(statistic, 0)[1], self.rows_per_unit)
        errors, records = self.rules.errors(statistic, number)
        return (errors - self._share(row) * records) / self.rows_per_unit

    def _share(self, row: Row) -> Fraction:
        if self.above is not None:
            return self.above
        released = Fraction(row.get("average_loss") or 0) + (self.more or 0)
        return min(max(released, Fraction(0)), Fraction(1))
