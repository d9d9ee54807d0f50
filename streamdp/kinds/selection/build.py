"""The release kind `selection`: the candidates and their score of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.rules.rules import RuleErrors
from streamdp.kinds.rules.section import conditions
from streamdp.kinds.selection.candidates import BestScore, Candidates, Conditions, ThresholdRules
from streamdp.kinds.selection.scores import Score, Total
from streamdp.kinds.selection.section import ErrorsScore, Listed, SelectionSection
from streamdp.kinds.spec import BuildContext
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from streamdp.types import Column

if TYPE_CHECKING:
    from streamdp.kinds.selection.kind import Selection


def build(section: SelectionSection, context: BuildContext) -> Selection:
    """A selection at the price of one record."""
    from streamdp.kinds.selection.kind import Selection

    score = section.scored(context.dialect)
    return Selection(
        candidates=candidates(section, score, context.dialect),
        score=score,
        epsilon=context.epsilon_of_record(section),
        neighbours=context.neighbours,
        choice=section.mechanism,
        top=section.top,
        learned=section.learner == "choices",
        guess=section.guessed(),
        where=None if section.where is None else expression(section.where, context.dialect),
        expected_rows=section.expected_rows,
    )


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


def scored(section: SelectionSection, dialect: Dialect) -> BestScore:
    """The candidates with their scores, for gates that follow the best one."""
    score = section.scored(dialect)
    where = None if section.where is None else expression(section.where, dialect)
    return BestScore(candidates(section, score, dialect), score, where)


def rules(section: SelectionSection, dialect: Dialect) -> RuleErrors | None:
    """The rules, if they are thresholds that are judged by their errors."""
    if isinstance(section.among, Listed) or not isinstance(section.score, ErrorsScore):
        return None
    grid, label = section.among.grid(dialect), expression(section.score.errors, dialect)
    where = None if section.where is None else expression(section.where, dialect)
    return None if grid is None else RuleErrors(grid, label, where)
