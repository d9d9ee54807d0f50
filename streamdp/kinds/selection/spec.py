"""The release kind `selection`: what no single key shows to be wrong, what error to expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.rules.section import MOST_CONDITIONS, Rules, conditions
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.selection.build import build, rules, scored
from streamdp.kinds.selection.sample_size import Generalization
from streamdp.kinds.selection.scores import step_of
from streamdp.kinds.selection.section import SelectionSection, SumScore
from streamdp.kinds.spec import KindSpec
from streamdp.privacy.price import Price
from streamdp.sections.expressions import expression

if TYPE_CHECKING:
    from streamdp.kinds.selection.kind import Selection
    from streamdp.kinds.study import Study


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
)
