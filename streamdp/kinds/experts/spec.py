"""The release kind `experts`, for the registry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.config.base.expressions import Dialect, expression
from streamdp.config.base.releases import CheckContext, Problem
from streamdp.kinds.experts.forecasts import Forecast, Forecasts
from streamdp.kinds.experts.losses import Actions, Rules
from streamdp.kinds.experts.section import (
    ActionExperts,
    ExpertsSection,
    ForecastExperts,
    RuleExperts,
    quoted_forecast,
)
from streamdp.kinds.rules.errors import RuleErrors
from streamdp.kinds.spec import BuildContext, KindSpec

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import Experts
    from streamdp.kinds.study import Study

YEAR = 365


def build(section: ExpertsSection, context: BuildContext) -> Experts:
    """Experts at the price of one record."""
    from streamdp.kinds.experts.kind import Experts

    made = forecasts(section, context.dialect)
    return Experts(
        losses=losses(section, context.dialect),
        forecasts=made,
        known=() if made is None else (None,) * len(made.named),
        epsilon=context.epsilon_of_record(section),
        expected_rows=section.expected_rows,
        neighbours=context.neighbours,
        drawn=section.action == "drawn",
        where=None if section.where is None else expression(section.where, context.dialect),
    )


def losses(section: ExpertsSection, dialect: Dialect) -> Rules | Actions:
    """What the experts lose, in the engine's dialect."""
    experts, foretold = section.experts, forecasts(section, dialect)
    if foretold is not None:
        return foretold.actions((None,) * len(foretold.named))
    if isinstance(experts, ActionExperts):
        named = experts.losses.items()
        made = tuple((name, expression(sql, dialect)) for name, sql in named)
        return Actions(made, experts.denominator)
    assert isinstance(experts, RuleExperts), "the section has no other form"  # noqa: S101
    grid = experts.rules.grid(dialect)
    if grid is None:
        raise ValueError("experts are a grid of thresholds: the section has checked it")
    return Rules(grid, expression(experts.label, dialect))


def forecasts(section: ExpertsSection, dialect: Dialect) -> Forecasts | None:
    """The forecasts, if the experts are some; their loss in the engine's dialect."""
    experts = section.experts
    if not isinstance(experts, ForecastExperts):
        return None
    named = tuple(
        (name, Forecast(each.job, tuple(each.row.items()), each.column))
        for name, each in experts.forecasts.items()
    )
    loss = expression(quoted_forecast(experts.loss), dialect)
    place = expression(quoted_forecast("{value}"), dialect)
    return Forecasts(named, loss, place, experts.denominator)


def rules(section: ExpertsSection, dialect: Dialect) -> RuleErrors | None:
    """The rules, if the experts are some."""
    made = losses(section, dialect)
    where = None if section.where is None else expression(section.where, dialect)
    return RuleErrors(made.grid, made.label, where) if isinstance(made, Rules) else None


def check(section: ExpertsSection, context: CheckContext) -> Iterator[Problem]:
    """What the engine cannot read."""
    try:
        losses(section, context.dialect)
    except ValueError as error:
        yield Problem(("experts",), str(error), "write what the engine can do")
    if isinstance(section.experts, ForecastExperts):
        yield from _check_forecasts(section, section.experts, context)


def _check_forecasts(
    section: ExpertsSection, experts: ForecastExperts, context: CheckContext
) -> Iterator[Problem]:
    """Each names another release, and columns that it has."""
    if section.by:
        hint = "write a release for each group, with where"
        yield Problem(("by",), "forecasts are judged on a whole batch", hint)
    for name, each in experts.forecasts.items():
        place = ("experts", "forecasts", name)
        there = context.columns.get(each.job)
        if there is None:
            known = ", ".join(sorted(context.columns)) or "none"
            yield Problem((*place, "job"), "there is no other release of this name", known)
            continue
        for column in (each.column, *each.row):
            if column not in there:
                what = f"releases of {each.job} have no column {column!r}"
                yield Problem(place, what, f"they have: {', '.join(sorted(there))}")


class Regret:
    """The error of a released loss, and the regret to expect."""

    def expected(self, kind: Experts) -> Mapping[str, float | None]:
        """Half the widest interval of a loss, and about the average regret after 365 batches."""
        deviation = kind.deviation()
        regret = 2.0 * math.sqrt((0.25 + deviation**2) * math.log(kind.losses.count) / YEAR)
        return {"loss_error_95": float(kind.half_widths().max()), "regret_after_365": regret}

    def epsilon_for(self, kind: Experts, error: float) -> Fraction | None:
        """Price at which the widest interval of a loss has this half width, nearly."""
        ratio = float(kind.half_widths().max()) / error
        return kind.epsilon * Fraction(ratio).limit_denominator(10**6)


def _study() -> Study:
    """What works on production never asks for it."""
    from streamdp.kinds.experts.study import ExpertsStudy

    return ExpertsStudy()


SPEC = KindSpec("experts", ExpertsSection, check, build, Regret(), rules=rules, study=_study)
