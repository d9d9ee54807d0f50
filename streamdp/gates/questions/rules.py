"""Test of rules: does the rule of the last release err on too many records?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from streamdp.types import Json, Past, Row, TableCounts


class Rules(Protocol):
    """Rules of which a release names one, and a label that they err about."""

    @property
    def label(self) -> str:
        """SQL condition of the label."""
        ...

    def named(self, rows: Sequence[Row]) -> Row | None:
        """The row of a release that names its rule."""
        ...

    def number(self, row: Row) -> int | None:
        """Place of a rule among all; None if it is none of them."""
        ...

    def errors(self, statistic: TableCounts, number: int) -> tuple[int, int]:
        """How many records a rule is wrong about, and how many there are. Private."""
        ...

    def all_errors(self, statistic: TableCounts) -> tuple[Sequence[int], int]:
        """How many records each rule is wrong about, and how many there are. Private."""
        ...

    def rows(self) -> tuple[Row, ...]:
        """Parameters of each rule, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class RuleError:
    """Does the rule of the last release err on too many records?

    Args:
        rules: Among which the release names one.
        above: Share of the records that may be errors; None if it is `more`.
        more: By how much the share may exceed the average loss that was released with the rule.
        rows_per_unit: Most records in which neighbours differ.
    """

    rules: Rules
    above: Fraction | None
    more: Fraction | None
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """The label, and the share of errors that is too many, for the ledger."""
        levels = {"above": self.above, "more": self.more}
        said = {name: str(level) for name, level in levels.items() if level is not None}
        return {"kind": "error", "label": self.rules.label, **said}

    def test(self, past: Past, statistic: TableCounts) -> Fraction:
        """By how many errors the rule is beyond the share. Private.

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


@dataclass(frozen=True, slots=True)
class FirstRule:
    """Which rule is the first, in their order, that is right on enough records?

    Args:
        rules: In the order in which they are tried.
        correct: Share of the records that is enough.
        rows_per_unit: Most records in which neighbours differ.
    """

    rules: Rules
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
        """By how many records each rule is right beyond the share. Private.

        Privacy: a record adds 1 - share or -share to the score of each rule, so each moves by one
        at most. Records that neighbours differ in divide it; a substitution counts as two of them.
        """
        errors, records = self.rules.all_errors(statistic)
        need = self.correct * records
        return tuple((records - each - need) / self.rows_per_unit for each in errors)
