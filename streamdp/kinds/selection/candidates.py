"""Candidates of a selection, and their integer scores from one answer of the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from streamdp.kinds.rules.rules import RuleGrid, label_dimension
from streamdp.kinds.rules.section import conditions
from streamdp.kinds.selection.scores import (
    Score,
    Total,
    label_of,
    of_cells,
    score_range,
    step_of,
    term_of_record,
)
from streamdp.kinds.selection.section import Listed, SelectionSection
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from streamdp.types import Column, Row, SumQuery, Sums, TableCounts, TableQuery, Term


class Candidates(Protocol):
    """Public candidates, and how a batch scores them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each parameter; of a list, its length."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether candidates that are neighbours along a parameter are alike."""
        ...

    def labels(self) -> tuple[Column, ...]:
        """Columns that name a candidate."""
        ...

    def row(self, number: int) -> Row:
        """A candidate in these columns."""
        ...

    def query(self) -> TableQuery | SumQuery:
        """The one question that all scores follow from."""
        ...

    def scores(self, statistic: TableCounts | Sums) -> list[int]:
        """Score of each candidate. Private."""
        ...


@dataclass(frozen=True)
class ThresholdRules:
    """All rules of a grid of thresholds, scored by cumulated counts of one table.

    Args:
        grid: The rules.
        score: Not a `Total`.
    """

    grid: RuleGrid
    score: Score

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each parameter."""
        return self.grid.shape

    @property
    def ordered(self) -> bool:
        """Thresholds next to each other are alike."""
        return True

    def labels(self) -> tuple[Column, ...]:
        """One column a parameter."""
        return self.grid.columns()

    def row(self, number: int) -> Row:
        """The parameters of a rule."""
        places = np.unravel_index(number, self.shape)
        return {
            each.parameter: float(each.values[int(place)])
            for each, place in zip(self.grid.thresholds, places, strict=True)
        }

    def query(self) -> TableQuery:
        """Records by cell of the thresholds, and by label if the score has one."""
        label = label_of(self.score)
        return self.grid.query(*(() if label is None else (label_dimension(label),)))

    def scores(self, statistic: TableCounts | Sums) -> list[int]:
        """Sums over the cells that each rule matches. Private."""
        assert isinstance(statistic, TableCounts), "the answer to a table query is a table"  # noqa: S101
        cells = of_cells(self.score, statistic.marginals[0])
        return [int(score) for score in self.grid.over_matching(cells)]


@dataclass(frozen=True)
class Conditions:
    """A list of conditions on a record, each scored by a sum of its own in one scan.

    Args:
        names: Each candidate in the columns of `labels`.
        conditions: SQL of each, in the engine's dialect.
        score: What is summed over matching records.
        named: Columns that name a candidate.
    """

    names: tuple[Row, ...]
    conditions: tuple[str, ...]
    score: Score
    named: tuple[Column, ...] = (Column("candidate", "text", "label"),)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of candidates, as one axis."""
        return (len(self.conditions),)

    @property
    def ordered(self) -> bool:
        """False: nothing says which conditions are alike."""
        return False

    def labels(self) -> tuple[Column, ...]:
        """Columns that name a candidate."""
        return self.named

    def row(self, number: int) -> Row:
        """The name of a candidate."""
        return self.names[number]

    def query(self) -> SumQuery:
        """One clipped sum a candidate."""
        parts = (term_of_record(self.score, condition) for condition in self.conditions)
        terms = (Term(f"candidate {n}", grid, sql=sql) for n, (sql, grid) in enumerate(parts))
        return SumQuery(tuple(terms))

    def scores(self, statistic: TableCounts | Sums) -> list[int]:
        """The sums of the answer. Private."""
        assert isinstance(statistic, Sums), "the answer to a question of sums is sums"  # noqa: S101
        return list(statistic.values)


@dataclass(frozen=True, slots=True)
class BestScore:
    """The score of the best candidate, for gates that ask whether it has grown.

    Args:
        candidates: Public.
        score: Theirs.
        where: SQL condition on one record; where it is not true the record does not count.
    """

    candidates: Candidates
    score: Score
    where: str | None = None

    @property
    def one(self) -> Fraction:
        """The most that one record more or less changes the score of a candidate, in its unit."""
        return score_range(self.score, "add-remove") * step_of(self.score)

    def query(self) -> TableQuery | SumQuery:
        """The one question that all scores follow from."""
        return replace(self.candidates.query(), where=self.where)

    def best(self, statistic: TableCounts | Sums) -> Fraction:
        """The largest score of a batch, in its unit. Private."""
        return max(self.candidates.scores(statistic)) * step_of(self.score)


def candidates(section: SelectionSection, score: Score, dialect: Dialect) -> Candidates:
    """The candidates, scored from one table where they are a grid of thresholds."""
    if isinstance(section.among, Listed):
        named = section.among.conditions.items()
        made = tuple(expression(sql, dialect) for _, sql in named)
        return Conditions(tuple({"candidate": name} for name, _ in named), made, score)
    grid = section.among.grid(dialect)
    if grid is not None and not isinstance(score, Total):
        return ThresholdRules(grid, score)
    listed = list(conditions(section.among.sql, section.among.values(), dialect))
    columns = tuple(Column(name, "number", "label") for name, _ in listed[0][0])
    rows = tuple(dict(values) for values, _ in listed)
    return Conditions(rows, tuple(sql for _, sql in listed), score, columns)
