"""Tests of counts: has one grown, is one beyond a level, or off its last release?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, assert_never

from streamdp.gates.questions.question import Around
from streamdp.mechanisms.sparse_vector.drift import Tolerance, best, excess, rows, total
from streamdp.types import Grid, Json, Past, TableCounts


class Scored(Protocol):
    """Candidates whose best score a gate may follow."""

    @property
    def one(self) -> Fraction:
        """The most that one record more or less changes a score."""
        ...

    def best(self, statistic: Any) -> Fraction:
        """The best score of a batch. Private."""
        ...


@dataclass(frozen=True, slots=True)
class Growth:
    """Has a score grown by a factor? Levels are start, start·factor, ...: one step an acceptance.

    However the score moves, there are at most log(score/start)/log(factor) + 1 acceptances until
    the next level is out of reach. That is continual observation: the answer of a batch mechanism
    over growing data, renewed whenever the best score has grown by a factor.

    Args:
        score: All records, those in the fullest cell, a quantile or the sum of the column, or the
            best score of candidates.
        start: First level.
        factor: Above one.
        rows_per_unit: Most records in which neighbours differ.
        grid: Of the column, for its quantile or sum.
        quantile: The one that is tested.
        scored: The candidates.
    """

    score: Literal["records", "mode", "quantile", "sum", "best"]
    start: Fraction
    factor: Fraction
    rows_per_unit: int = 1
    grid: Grid | None = None
    quantile: Fraction | None = None
    scored: Scored | None = None

    def describe(self) -> Json:
        """The score, and the levels that it is compared with, for the ledger."""
        about = {"score": self.score, "start": str(self.start), "factor": str(self.factor)}
        quantile = {} if self.quantile is None else {"quantile": str(self.quantile)}
        return {"kind": "growth", **about, **quantile}

    def test(self, past: Past, statistic: Any) -> Fraction:
        """The excess of the score over its level. Private.

        Privacy: sensitivity one. Records and the fullest cell change by one; the records by which a
        quantile is above a level are `Tolerance.excess`; a sum of numbers within the bounds changes
        by the larger of them, and the best of several scores by the most that one of them does,
        which each divides its excess. Records that neighbours differ in divide it too; a
        substitution counts as two of them. The level follows from earlier answers.
        """
        level = self.start * self.factor**past.accepted
        match self.score:
            case "records":
                return rows(statistic, level, self.rows_per_unit)
            case "mode":
                return best(statistic, level, self.rows_per_unit)
            case "quantile":
                assert self.grid is not None and self.quantile is not None  # noqa: S101, PT018
                high = min(math.floor(level / self.grid.resolution), self.grid.upper)
                above = Tolerance(self.quantile, None, max(high, self.grid.lower - 1))
                return excess(statistic, (above,), self.rows_per_unit)
            case "sum":
                assert self.grid is not None  # noqa: S101
                return total(statistic, self.grid, level, self.rows_per_unit)
            case "best":
                assert self.scored is not None  # noqa: S101
                beyond = self.scored.best(statistic) - level
                return beyond / (self.scored.one * self.rows_per_unit)
            case _:
                assert_never(self.score)


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
