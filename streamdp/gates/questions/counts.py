"""Tests of counts: has one grown, is one beyond a level, or off its last release?"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from streamdp.gates.questions.question import Around
from streamdp.mechanisms.sparse_vector.drift import best, rows
from streamdp.types import CellCounts, Json, Past, TableCounts


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
        """The score, and the levels that it is compared with, for the ledger."""
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
