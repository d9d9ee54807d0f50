"""The release kind `selection`: candidates and score of a configured release, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.rules.rules import RuleErrors
from streamdp.kinds.rules.section import MOST_CONDITIONS, Rules, conditions
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.selection.candidates import BestScore, candidates
from streamdp.kinds.selection.sample_size import Generalization
from streamdp.kinds.selection.scores import step_of
from streamdp.kinds.selection.section import ErrorsScore, Listed, SelectionSection, SumScore
from streamdp.kinds.spec import BuildContext, KindSpec
from streamdp.privacy.price import Price
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression

if TYPE_CHECKING:
    from streamdp.kinds.selection.kind import Selection
    from streamdp.kinds.study import Study


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


BETA = 0.05


class Shortfall:
    """How far the choice may be from the best, and how many records a small error takes."""

    def expected(self, kind: Selection) -> Mapping[str, float | None]:
        """Return the shortfall in the score's unit, as a share of it, on new ones (PAC)."""
        within, unit, step = kind.shortfall(), kind.unit(), float(step_of(kind.score))
        rows = kind.expected_rows
        new = Generalization(kind.exponent, unit, kind.count, BETA, kind.least_prior)
        return {
            "shortfall_95": within,
            "error_rate_95": None if rows is None else within / (unit * step * rows),
            "error_rate_on_new_records_95": None if rows is None else new.error(rows),
            "records_for_error_0.01": new.records(0.01),
        }

    def price_for(self, kind: Selection, error: float) -> Price:
        """Price at which the score is within `error` of the best with probability 95 %."""
        return Price(kind.epsilon * Fraction(kind.shortfall() / error).limit_denominator(10**6))


def check(section: SelectionSection, context: CheckContext) -> Iterator[Problem]:
    """Yields expressions that the engine cannot read, and sums over too many rules."""
    try:
        section.scored(context.dialect)
        if isinstance(section.among, Rules):
            next(conditions(section.among.sql, section.among.values(), context.dialect))
        else:
            for sql in section.among.conditions.values():
                expression(sql, context.dialect)
    except ValueError as error:
        yield Problem(("among",), str(error), "write what the engine can do")
    if isinstance(section.score, SumScore) and section.count() > MOST_CONDITIONS:
        yield Problem(
            ("score",),
            f"a sum is asked once for each of {section.count()} candidates",
            f"have at most {MOST_CONDITIONS}, or a score that is a count",
        )


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.selection.study import SelectionStudy

    return SelectionStudy()


SPEC = KindSpec(
    "selection",
    SelectionSection,
    check,
    build,
    Shortfall(),
    rules=rules,
    scored=scored,
    study=_study,
    no_periods=lambda _: "a release chooses one candidate, and counts nothing that adds up",
)
