"""Integer scores of candidates, and by how much one record changes them.

What a mechanism pays for is the range of the change over the candidates: the largest change of a
candidate minus the smallest, between neighbours.

| score | add/remove | substitute |
|---|---|---|
| count of matching records | 1 | 2 |
| fewest errors against a label | 1 | 2 |
| excess of a label over a rate a/b, times b | max(a, b - a) | 2·max(a, b - a) |
| sum of a number clipped to [l, u] | max(-l, u) | 2·max(-l, u) |

Proof. A record adds v_c to the score of candidate c: 0 where c does not match it, and the same v
where it does. So the changes are 0 or v, and their range is |v|: 1 for a count; 1 for errors, whose
score is Σ_matching (label - not label), the errors up to a term that all candidates share; b - a or
a for the excess Σ_matching (b·label - a); and for a sum at most the larger of |l| and |u|.
Substituting a record removes one and adds another: at most twice the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np

from streamdp.types import Grid, IntArray, Neighbours


@dataclass(frozen=True, slots=True)
class CountScore:
    """How many records match."""

    def of_record(self) -> tuple[int, int]:
        """Least and most that a matching record adds."""
        return 1, 1


@dataclass(frozen=True, slots=True)
class Errors:
    """Agreement of a rule with a label: the candidate of the best score makes the fewest errors.

    Args:
        label: SQL condition in the engine's dialect; records where it is null do not count.
    """

    label: str

    def of_record(self) -> tuple[int, int]:
        """Least and most that a matching record adds."""
        return -1, 1


@dataclass(frozen=True, slots=True)
class Excess:
    """Count of matching records with a label beyond what a rate lets expect.

    Args:
        label: SQL condition in the engine's dialect; records where it is null do not count.
        rate: In (0, 1); the score is in units of one over its denominator.
    """

    label: str
    rate: Fraction

    def of_record(self) -> tuple[int, int]:
        """Least and most that a matching record adds."""
        return -self.rate.numerator, self.rate.denominator - self.rate.numerator


@dataclass(frozen=True, slots=True)
class Total:
    """Sum of a number over matching records, each clipped to public bounds.

    Args:
        sql: SQL of the number, in the engine's dialect.
        grid: Its cells; the score is in units of the resolution.
    """

    sql: str
    grid: Grid

    def of_record(self) -> tuple[int, int]:
        """Least and most that a matching record adds."""
        return self.grid.lower, self.grid.upper


Score = CountScore | Errors | Excess | Total


def step_of(score: Score) -> Fraction:
    """Size of one integer of the score: in records, or in the unit of a sum."""
    match score:
        case Excess(_, rate):
            return Fraction(1, rate.denominator)
        case Total(_, grid):
            return grid.resolution
        case _:
            return Fraction(1)


def score_range(score: Score, neighbours: Neighbours) -> int:
    """Range of the change of all scores between neighbours."""
    low, high = score.of_record()
    one = max(-low, high)
    return 2 * one if neighbours == "substitute" else one


def label_of(score: Score) -> str | None:
    """The condition that a record is judged by, if the score has one."""
    match score:
        case Errors(label) | Excess(label, _):
            return label
        case CountScore() | Total():
            return None
        case _:
            assert_never(score)


def of_cells(score: Score, counts: IntArray) -> IntArray:
    """Amount that a record of each cell adds to the score of a candidate that matches it.

    Args:
        score: Not a `Total`, which is no function of counts.
        counts: Records by cell; with a label, records without it first and those with it second.
    """
    match score:
        case CountScore():
            return counts
        case Errors():
            return np.asarray(counts[1] - counts[0])
        case Excess(_, rate):
            return np.asarray(rate.denominator * counts[1] - rate.numerator * counts.sum(axis=0))
        case Total():
            raise TypeError("a sum is not a function of counts")
        case _:
            assert_never(score)


def term_of_record(score: Score, condition: str) -> tuple[str, Grid]:
    """SQL of what a record adds to the score of one candidate, and the grid that clips it.

    Args:
        score: What is summed over matching records.
        condition: Of the candidate, in the engine's dialect.
    """
    low, high = score.of_record()
    grid = Grid(Fraction(1), min(low, 0), max(high, 0))
    match score:
        case CountScore():
            return f"CASE WHEN {condition} THEN 1 ELSE 0 END", grid
        case Errors(label) | Excess(label, _):
            sql = f"CASE WHEN ({condition}) AND ({label}) THEN {high}"
            return f"{sql} WHEN ({condition}) AND NOT ({label}) THEN {low} ELSE 0 END", grid
        case Total(value, cells):
            wide = Grid(cells.resolution, min(low, 0), max(high, 0))
            there = f"({condition}) AND ({value}) IS NOT NULL"
            return f"CASE WHEN {there} THEN {_clipped(value, cells)} ELSE 0 END", wide
        case _:
            assert_never(score)


def _clipped(value: str, grid: Grid) -> str:
    """The value within its bounds, so that 0 stays what records that do not match add."""
    low, high = grid.value(grid.lower), grid.value(grid.upper)
    return f"LEAST(GREATEST({value}, {low!r}), {high!r})"
