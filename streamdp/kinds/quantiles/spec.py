"""The release kind `quantiles`: mechanism, learner and features of a configured release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.check import check
from streamdp.kinds.quantiles.learners import learner
from streamdp.kinds.quantiles.priors import shapes
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.kinds.spec import BuildContext, KindSpec, PublicData
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import Derived, expression
from streamdp.types import CellQuery, Grid

if TYPE_CHECKING:
    from fractions import Fraction

    from streamdp.kinds.quantiles.kind import Quantiles
    from streamdp.kinds.study import Study
    from streamdp.learning.features import Feature
    from streamdp.mechanisms.quantile_tree.planning.choice import TreeChoice

TREND_ORIGIN = 1_767_225_600
"""2026-01-01: where the feature `trend` is 0."""


def build(section: QuantilesSection, context: BuildContext) -> Quantiles:
    """Quantiles with their mechanism and learner."""
    from dataclasses import replace

    from streamdp.kinds.quantiles.kind import Quantiles
    from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed

    asked = question(section, context.dialect)
    price = context.price_of_record(section)
    epsilon = price.loss_range
    share = epsilon * (1 - section.auxiliary_share())
    form, chosen = _form(section, share), section.mechanism
    restriction = "conditional" if chosen == "auto" else chosen.restriction
    tree = form.tree(section.quantiles, share, asked.grid, context.neighbours)
    learns = learner(section, replace(tree, restriction=restriction), context.public)
    return Quantiles(
        column=asked.column,
        quantiles=section.quantiles,
        epsilon=epsilon,
        measure=price.measure,
        grid=asked.grid,
        learner=learns,
        form=form,
        relation=context.neighbours,
        restriction=restriction,
        shapes=shapes(section) if form.shapes else None,
        expected_rows=section.expected_rows,
        believed_batch=Believed(*section.believed()),
        features=_feature(section, context.public),
        feature_names=_feature_names(section),
        smooth=section.prior.smoothed,
        expression=asked.expression,
        where=asked.where,
        unit_rows=context.rows,
        counted=context.counted,
        unit=section.measured_in,
        groups=context.groups,
    )


def question(section: QuantilesSection, dialect: Dialect) -> CellQuery:
    """Question about each batch, in the dialect of its engine."""
    name = section.column_name()
    return CellQuery(
        name,
        Grid(section.resolution, *section.cells()),
        expression(name, dialect) if isinstance(section.column, Derived) else None,
        None if section.where is None else expression(section.where, dialect),
    )


def _form(section: QuantilesSection, epsilon: Fraction) -> TreeChoice:
    """The form of the tree: the configured one, or that of the public table.

    The table was made for priors that do not learn; learned ones are drawn from by the binary tree.
    The learner `mixture` takes the table's form for its first release by itself (`learners`).
    """
    from streamdp.mechanisms.quantile_tree.planning.choice import (
        CANDIDATES,
        TreeChoice,
        choose_tree,
    )

    chosen = section.mechanism
    if chosen != "auto":
        parts = chosen.parts(len(section.quantiles))
        return TreeChoice(parts, chosen.node, chosen.level_power, chosen.shapes)
    if section.learner() != "none":
        return CANDIDATES["binary"]
    return choose_tree(len(section.quantiles), epsilon, section.expected_rows)


def _feature(section: QuantilesSection, public: PublicData) -> Feature | None:
    """All configured features of a batch in one tuple."""
    from streamdp.learning import features

    known = {
        "weekday": features.weekday,
        "month": features.month,
        "season": features.season,
        "hour": features.hour,
        "trend": features.trend(TREND_ORIGIN),
    }
    chosen = [known[name] for name in section.prior.features]
    if section.prior.holidays:
        chosen.append(features.holidays(frozenset(section.prior.holidays)))
    if section.prior.table:
        table = section.prior.table
        rows = public.numbers(str(table.path), table.format, table.key, table.columns)
        chosen.append(features.table(rows, len(table.columns)))
    return features.together(tuple(chosen)) if chosen else None


def _feature_names(section: QuantilesSection) -> tuple[str, ...]:
    days = ("holidays",) if section.prior.holidays else ()
    columns = section.prior.table.columns if section.prior.table else ()
    return (*section.prior.features, *days, *(f"table.{name}" for name in columns))


def _study() -> Study:
    """Study of the kind, imported by `simulate` alone."""
    from streamdp.kinds.quantiles.study import QuantilesStudy

    return QuantilesStudy()


SPEC = KindSpec(
    "quantiles", QuantilesSection, check, build, RankError(), question, _study, expects_rows=True
)
