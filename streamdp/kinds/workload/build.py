"""Axes, items and mechanism of a configured release of a workload, and the check of its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamdp.kinds.axes import condition
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.workload.fitting.distribution import MOST_CELLS, elimination_size
from streamdp.kinds.workload.section import MOST_ANSWERS, MOST_ITEMS, WorkloadSection
from streamdp.privacy.price import Price
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from streamdp.types import Dimension, Neighbours

if TYPE_CHECKING:
    from streamdp.kinds.spec import BuildContext
    from streamdp.kinds.workload.fitting.distribution import Workload
    from streamdp.kinds.workload.kind import WorkloadRelease
    from streamdp.kinds.workload.weights import PrivateWeights


def build(section: WorkloadSection, context: BuildContext) -> WorkloadRelease:
    """A workload with its mechanism, at the price of one record."""
    from streamdp.kinds.workload.kind import WorkloadRelease

    axes = dimensions(section, context.dialect, context.zone)
    names, _ = items(section, axes)
    weights = mechanism(section, context.price_of_record(section), context.neighbours)
    where = None if section.where is None else expression(section.where, context.dialect)
    learns = section.learner != "none"
    published = section.raw, section.publish, learns, context.counted
    return WorkloadRelease(axes, names, weights, where, *published)


def mechanism(section: WorkloadSection, price: Price, neighbours: Neighbours) -> PrivateWeights:
    """How a section is drawn, at a price of one record."""
    from streamdp.kinds.workload.weights import PrivateWeights

    _, workload = items(section, dimensions(section))
    return PrivateWeights(
        workload,
        price.amount,
        section.expected_rows,
        neighbours,
        section.choose,
        None if section.measured == "auto" else min(section.measured, len(workload.items)),
        section.tolerated(),
        price.measure,
    )


def dimensions(
    section: WorkloadSection, dialect: Dialect = "duckdb", zone: str = "UTC"
) -> tuple[Dimension, ...]:
    """The axes, in the words of an engine; clocks of a zone show parts of a time."""
    made = []
    for name, each in section.dimensions.items():
        sql = each.source_sql(name)
        made.append(each.dimension(name, None if sql is None else expression(sql, dialect), zone))
    return tuple(made)


def items(
    section: WorkloadSection, axes: tuple[Dimension, ...]
) -> tuple[tuple[str, ...], Workload]:
    """The items and what they are called.

    Raises:
        ValueError: A predicate is no condition over the axes.
    """
    from streamdp.kinds.workload.fitting.distribution import Workload

    unlisted = tuple(each.size - each.listed for each in axes)
    bare = Workload(tuple(each.size for each in axes), (), unlisted)
    names, found = [], []
    for marginal in section.axes_of_marginals():
        names.append(", ".join(axes[axis].name for axis in marginal))
        found.append(bare.item(marginal))
    for name, text in section.predicates.items():
        names.append(name)
        found.append(bare.item(*condition(text, axes)))
    return tuple(names), Workload(bare.sizes, tuple(found), unlisted)


def check(section: WorkloadSection, context: CheckContext) -> Iterator[Problem]:
    """All that does not hang together."""
    for name, each in section.dimensions.items():
        sql = each.source_sql(name)
        found = None if sql is None else context.problem_of(sql, ("dimensions", name))
        yield from () if found is None else (found,)
    wrong = list(_predicates(section)) or list(_size(section))
    yield from wrong or _tests(section, context)


def _tests(section: WorkloadSection, context: CheckContext) -> Iterator[Problem]:
    """Refuse a tolerance that the tests cannot tell from nothing."""
    if section.choose != "online":
        return
    if section.price.measure == "rho":
        yield Problem(
            ("rho",),
            "tests are paid in epsilon: choose: online has no price in rho",
            "give epsilon; caps in rho admit it",
        )
        return
    least = min([section.expected_rows, *section.group_rows.values()])
    smallest = section.model_copy(update={"expected_rows": least})
    price = section.price.of_record(context.rows)
    try:
        margin = math.ceil(mechanism(smallest, price, context.neighbours).gate().margin)
    except ValueError as error:
        yield Problem(("epsilon",), f"its tests: {error}", "give more, or measured: 1")
        return
    if margin > smallest.tolerated():
        yield Problem(
            ("tolerance",),
            f"it is {smallest.tolerated()} of {least} records, and the tests have a margin of"
            f" {margin}: they would say yes of counts that are right",
            f"give {margin / least:.2g} or more, a larger epsilon, or fewer measured",
        )


def _predicates(section: WorkloadSection) -> Iterator[Problem]:
    axes = dimensions(section)
    for name, text in section.predicates.items():
        try:
            _, cells = condition(text, axes)
        except ValueError as error:
            yield Problem(("predicates", name), str(error), "or leave it out")
            continue
        if cells.min() == cells.max():
            yield Problem(
                ("predicates", name),
                "it holds always or never: there is nothing to count",
                "drop it",
            )


def _size(section: WorkloadSection) -> Iterator[Problem]:
    """Refuse what would take too long, with its size."""
    place = ("marginals",)
    if section.answers() > MOST_ANSWERS:
        yield Problem(
            place,
            f"they have {section.answers()} answers, more than {MOST_ANSWERS}",
            "list fewer sets of axes, or make the axes coarser",
        )
        return
    names, workload = items(section, dimensions(section))
    if len(names) > MOST_ITEMS:
        yield Problem(place, f"there are {len(names)}, more than {MOST_ITEMS}", "list fewer")
    elif workload.cells > MOST_CELLS:
        if section.publish != "answers":
            yield Problem(
                ("publish",),
                f"records of a domain of {workload.cells} cells, more than {MOST_CELLS}, are not"
                " drawn",
                "publish answers, or make the axes coarser",
            )
        largest = max(elimination_size(workload, item.axes) for item in workload.items)
        if largest > MOST_CELLS:
            yield Problem(
                place,
                f"the domain has {workload.cells} cells, and the sets of axes tie together tables"
                f" of {largest}, more than {MOST_CELLS}",
                "list sets that share fewer axes, or make the axes coarser",
            )
