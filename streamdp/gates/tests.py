"""Tests: what a gate asks of each batch.

A question turns a batch into a test. Most are a *score*, an excess of records of sensitivity one
(`sparse_vector.drift`): of quantiles outside their tolerance, of a quantile beyond a level, of a
count above a level. A score is compared with its noise directly, lowered by the margin: below zero
the answer is no, from the margin on it is yes, but with probability beta over a whole run. Other
tests are any private procedure that says yes with some chance, computed or drawn
(`mechanisms.sparse_vector.thresholding`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import Tolerance, best, excess, rows
from streamdp.mechanisms.sparse_vector.drift_chance import DriftChance
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Runs
from streamdp.types import CellCounts, Grid, Json, Past, Row, TableCounts

Test = Fraction | Chance | Runs
"""A score of sensitivity one, or a private procedure's chance of yes, or the procedure."""


class Question(Protocol):
    """The test of a gate, for any batch; all but the statistic is public."""

    def describe(self) -> Json:
        """Public parameters, for the ledger."""
        ...

    def test(self, past: Past, statistic: Any) -> Test:
        """The test of one batch, of what its query counts; total: no exception depends on that.

        Privacy: as a score it has sensitivity one for both relations; as a procedure it is
        (epsilon, delta)-private as the gate's `Terms` say.
        """
        ...


@dataclass(frozen=True, slots=True)
class Around:
    """A tolerance around the last released value.

    Args:
        absolute: In the unit of the column, or in records.
        relative: A share of the released value.
        ranks: A share of all records.
    """

    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)
    ranks: Fraction = Fraction(0)

    def cells(self, value: float, grid: Grid) -> tuple[int, int]:
        """First and last cell within the tolerance in values."""
        exact = Fraction(value)
        reach = self.absolute + self.relative * abs(exact)
        first, last = ((exact + sign * reach) / grid.resolution for sign in (-1, 1))
        low, high = math.ceil(first - Fraction(1, 2)), math.floor(last + Fraction(1, 2))
        return max(low, grid.lower), min(high, grid.upper)


@dataclass(frozen=True, slots=True)
class Drift:
    """Has some quantile left the tolerance around the last release?

    Args:
        grid: Of the release.
        around: The tolerance.
        quantiles: Those that are looked at; the release has them.
        rows_per_unit: Most records in which neighbours differ.
        epsilon: If given, the test is not the count of records outside but a draw of all these
            quantiles at so much, which says yes if one is outside; its chance is computed.
    """

    grid: Grid
    around: Around
    quantiles: tuple[Fraction, ...]
    rows_per_unit: int = 1
    epsilon: Fraction | None = None

    def describe(self) -> Json:
        """The tolerance."""
        about = {name: str(value) for name, value in asdict(self.around).items()}
        drawn = None if self.epsilon is None else str(self.epsilon)
        quantiles = [str(quantile) for quantile in self.quantiles]
        return {"kind": "drift", "quantiles": quantiles, "test_epsilon": drawn, **about}

    def test(self, past: Past, statistic: CellCounts) -> Test:
        """The largest excess of records, or the chance that a draw is outside.

        A quantile that the last release does not have has left every tolerance.
        """
        released = _values(past.rows)
        if any(float(quantile) not in released for quantile in self.quantiles):
            return rows(statistic, Fraction(0), self.rows_per_unit)
        values = [released[float(quantile)] for quantile in self.quantiles]
        cells = [self.around.cells(value, self.grid) for value in values]
        if self.epsilon is not None:
            tree = QuantileTree(self.quantiles, self.epsilon, self.grid)
            return DriftChance(tree, tuple(cells)).chance(statistic)
        tolerances = tuple(
            Tolerance(quantile, low, high, self.around.ranks)
            for quantile, (low, high) in zip(self.quantiles, cells, strict=True)
        )
        return excess(statistic, tolerances, self.rows_per_unit)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Is a quantile above a level, or below it?

    Args:
        tolerance: What is not beyond.
        rows_per_unit: Most records in which neighbours differ.
    """

    tolerance: Tolerance
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """The level."""
        about = asdict(self.tolerance) | {"quantile": str(self.tolerance.quantile)}
        return {"kind": "threshold", **about, "ranks": str(self.tolerance.ranks)}

    def test(self, past: Past, statistic: CellCounts) -> Fraction:
        """How many records are beyond, more than may be."""
        return excess(statistic, (self.tolerance,), self.rows_per_unit)


@dataclass(frozen=True, slots=True)
class Growth:
    """Has a score grown by a factor? Levels are start, start·factor, ...: one step an acceptance.

    However the score moves, there are at most log(score/start)/log(factor) + 1 acceptances until
    the next level is out of reach. That is continual observation: the answer of a batch mechanism
    over growing data, renewed whenever the best score has grown by a factor.

    Args:
        score: All records, or those in the fullest cell.
        start: First level.
        factor: Above one.
        rows_per_unit: Most records in which neighbours differ.
    """

    score: Literal["records", "mode"]
    start: Fraction
    factor: Fraction
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """The ladder."""
        about = {"score": self.score, "start": str(self.start), "factor": str(self.factor)}
        return {"kind": "growth", **about}

    def test(self, past: Past, statistic: CellCounts) -> Fraction:
        """The excess of the score over its level."""
        level = self.start * self.factor**past.accepted
        score = rows if self.score == "records" else best
        return score(statistic, level, self.rows_per_unit)


@dataclass(frozen=True, slots=True)
class Counts:
    """Is a count above a level, below one, or off its last release?

    Args:
        measure: Name in the release; None counts all records.
        cells: Names of all cells of the measure, in the order of the table.
        tested: Those that are looked at; one of them is enough.
        above: Level, in records.
        below: Level, in records.
        around: Tolerance around the released value, in place of a level.
        rows_per_unit: Most records in which neighbours differ.
    """

    measure: str | None
    cells: tuple[str, ...]
    tested: tuple[str, ...]
    above: Fraction | None = None
    below: Fraction | None = None
    around: Around | None = None
    rows_per_unit: int = 1

    def describe(self) -> Json:
        """Counts that are looked at, and the level or the tolerance."""
        about: Json = {"kind": "count", "measure": self.measure, "cells": list(self.tested)}
        for name, level in (("above", self.above), ("below", self.below)):
            about |= {} if level is None else {name: str(level)}
        if self.around is not None:
            about |= {"absolute": str(self.around.absolute), "relative": str(self.around.relative)}
        return about

    def test(self, past: Past, statistic: TableCounts) -> Fraction:
        """By how many records the farthest count is beyond. Private.

        A cell that the last release does not have is compared with 0.

        Privacy: one record more changes one count by one and the others not at all, so each excess
        by at most one, and the largest of them by at most one. Released values are public. Records
        that neighbours differ in divide the score; a substitution counts as two of them.
        """
        (table,) = statistic.marginals
        counts = dict(zip(self.cells, table.reshape(-1).tolist(), strict=True))
        released = {
            str(row.get("cell") or ""): Fraction(row.get("value") or 0)
            for row in past.rows
            if row.get("measure") == self.measure
        }
        excess = (
            self._excess(int(counts[cell]), released.get(cell, Fraction(0))) for cell in self.tested
        )
        return max(excess) / self.rows_per_unit

    def _excess(self, count: int, released: Fraction) -> Fraction:
        if self.above is not None:
            return count - self.above
        if self.below is not None:
            return self.below - count
        assert self.around is not None  # noqa: S101
        reach = self.around.absolute + self.around.relative * abs(released)
        return abs(count - released) - reach


class Rules(Protocol):
    """Rules of which a release names one, and a label that they err about."""

    @property
    def label(self) -> str:
        """SQL condition."""
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
        """The share."""
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


def _values(rows: Sequence[Row]) -> dict[float, float]:
    """Released values by their quantile as it is published: a number of its own for each."""
    return {
        float(row["quantile"] or 0): float(row.get("value") or 0)
        for row in rows
        if "quantile" in row
    }
