"""The release kind `workload`: axes, items and mechanism of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.axes import condition
from streamdp.kinds.workload.section import WorkloadSection
from streamdp.privacy.price import Price
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from streamdp.types import Dimension, Neighbours

if TYPE_CHECKING:
    from streamdp.kinds.spec import BuildContext
    from streamdp.kinds.workload.drawing.weights import PrivateWeights
    from streamdp.kinds.workload.fitting.marginals import Workload
    from streamdp.kinds.workload.kind import WorkloadRelease


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
    from streamdp.kinds.workload.drawing.weights import PrivateWeights

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
    from streamdp.kinds.workload.fitting.marginals import Workload

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
