"""The release kind `experts`: problems that no single key shows."""

from __future__ import annotations

from collections.abc import Iterator

from streamdp.config.base.releases import CheckContext, Problem
from streamdp.kinds.experts.build import losses
from streamdp.kinds.experts.section import MOST_EXPERTS, ExpertsSection, ForecastExperts


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
