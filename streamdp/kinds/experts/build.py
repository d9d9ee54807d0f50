"""The release kind `experts`: the experts and their losses of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.experts.forecasts import Forecast, Forecasts
from streamdp.kinds.experts.losses import Actions, RuleLosses
from streamdp.kinds.experts.section import (
    ActionExperts,
    ExpertsSection,
    ForecastExperts,
    HalfspaceExperts,
    RuleExperts,
    quoted_forecast,
)
from streamdp.kinds.rules.rules import RuleErrors
from streamdp.kinds.spec import BuildContext
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import Experts


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
        action=section.action,
        where=None if section.where is None else expression(section.where, context.dialect),
    )


def losses(section: ExpertsSection, dialect: Dialect) -> RuleLosses | Actions:
    """Losses of the experts, in the engine's dialect."""
    experts, foretold = section.experts, forecasts(section, dialect)
    if foretold is not None:
        return foretold.actions((None,) * len(foretold.named))
    if isinstance(experts, ActionExperts):
        named = experts.losses.items()
        made = tuple((name, expression(sql, dialect)) for name, sql in named)
        return Actions(made, experts.denominator)
    grid = section.grid(dialect)
    assert grid is not None, "the section has no other form"  # noqa: S101
    assert isinstance(experts, RuleExperts | HalfspaceExperts), "so it has a label"  # noqa: S101
    return RuleLosses(grid, expression(experts.label, dialect))


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
    return RuleErrors(made.grid, made.label, where) if isinstance(made, RuleLosses) else None
