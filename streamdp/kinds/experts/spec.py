"""The release kind `experts`: what no single key shows to be wrong, and what error to expect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.kinds.experts.build import build, losses, rules
from streamdp.kinds.experts.section import MOST_EXPERTS, ExpertsSection, ForecastExperts
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.spec import KindSpec
from streamdp.privacy.price import Price

if TYPE_CHECKING:
    from streamdp.kinds.experts.kind import Experts
    from streamdp.kinds.study import Study


def check(section: ExpertsSection, context: CheckContext) -> Iterator[Problem]:
    """Yields expressions that the engine cannot read, and forecasts of unknown releases."""
    try:
        losses(section, context.dialect)
    except ValueError as error:
        yield Problem(("experts",), str(error), "write what the engine can do")
    if isinstance(section.experts, ForecastExperts):
        yield from _check_forecasts(section, section.experts, context)


def _check_forecasts(
    section: ExpertsSection, experts: ForecastExperts, context: CheckContext
) -> Iterator[Problem]:
    """Yields too many forecasts, and those that name no other release or no column of it."""
    losses = len(section.groups) * len(experts.forecasts)
    if losses > MOST_EXPERTS:
        what = f"{len(section.groups)} groups of {len(experts.forecasts)} forecasts are too many"
        yield Problem(("groups",), what, f"there are at most {MOST_EXPERTS} in all")
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


YEAR = 365


class Regret:
    """The error of a released loss, and the regret to expect."""

    def expected(self, kind: Experts) -> Mapping[str, float | None]:
        """Half the widest interval of a loss, and about the average regret after 365 batches."""
        deviation = kind.deviation()
        regret = 2.0 * math.sqrt((0.25 + deviation**2) * math.log(kind.losses.count) / YEAR)
        return {"loss_error_95": float(kind.half_widths().max()), "regret_after_365": regret}

    def price_for(self, kind: Experts, error: float) -> Price:
        """Price at which the widest interval of a loss has this half width, nearly."""
        ratio = float(kind.half_widths().max()) / error
        return Price(kind.epsilon * Fraction(ratio).limit_denominator(10**6))


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.experts.study import ExpertsStudy

    return ExpertsStudy()


SPEC = KindSpec(
    "experts",
    ExpertsSection,
    check,
    build,
    Regret(),
    rules=rules,
    study=_study,
    no_periods=lambda _: "weights of experts are those of a batch, and do not add up",
)
