"""The release kind `quantiles`: mechanism, learner and features of a release, and its checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from streamdp.files import file_format, overlap
from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.learners import LEARNERS, learner
from streamdp.kinds.quantiles.priors import shapes
from streamdp.kinds.quantiles.section import Family, MixtureOf, QuantilesSection
from streamdp.kinds.section import CheckContext, Problem
from streamdp.kinds.spec import BuildContext, KindSpec, PublicData
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import Derived, expression
from streamdp.types import CellQuery, Grid

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import Quantiles
    from streamdp.kinds.study import Study
    from streamdp.learning.features import Feature
    from streamdp.mechanisms.quantile_tree.planning.choice import TreeChoice

LEAST_EPSILON = Fraction(1, 10**6)
"""Least epsilon of one record in one draw."""


def check(section: QuantilesSection, context: CheckContext) -> Iterator[Problem]:
    """Return the keys that contradict each other."""
    if isinstance(section.column, Derived):
        found = context.problem_of(section.column.sql, ("column",))
        yield from () if found is None else (found,)
    yield from _within_bounds(section)
    yield from _shares(section, context.rows)
    yield from _prior(section)
    yield from _public(section, context)


def _within_bounds(section: QuantilesSection) -> Iterator[Problem]:
    """Refuse a guess that lies elsewhere, and a resolution that leaves one value to publish."""
    if section.bounds is None:
        return
    low, high = section.bounds
    if round(low / section.resolution) == round(high / section.resolution):
        hint = "write the unit that results are rounded to, such as 1 or 1/100"
        yield Problem(
            ("resolution",), "within the bounds one value alone is a multiple of it", hint
        )
    if section.guess is not None and not low <= section.guess.location <= high:
        hint = "is it in the unit of the column? a guess may be rough, but lies within the bounds"
        yield Problem(("guess", "location"), "this lies outside of the bounds", hint)


def _shares(section: QuantilesSection, rows: int) -> Iterator[Problem]:
    """Refuse shares of epsilon, for quantiles or a gradient, that are too little for one record."""
    share = section.auxiliary_share()
    if share and section.price.measure == "rho":
        yield Problem(
            ("rho",),
            "a gradient is bought with epsilon: prior.private_gradient has no price in rho",
            "give epsilon; caps in rho admit it",
        )
        return
    bought = section.price.amount * share
    if share and min(section.price.amount - bought, bought) < LEAST_EPSILON * rows:
        yield Problem(
            ("epsilon",),
            f"each of a unit's {rows} records would get less than {float(LEAST_EPSILON):f}",
            "raise it, or lower privacy.unit.rows or prior.private_gradient",
        )


def _public(section: QuantilesSection, context: CheckContext) -> Iterator[Problem]:
    """Refuse public rows from a source: a prior of its own records would have no price."""
    for key, named in (("public", section.prior.public), ("table", section.prior.table)):
        if named is None:
            continue
        place = ("prior", key, "path")
        for name, path in context.paths.items():
            if overlap(os.path.realpath(named.path), os.path.realpath(path)):
                yield Problem(
                    place,
                    f"source {name!r} reads this file: its records are not public",
                    "name a table that anyone may see",
                )
        format = named.format or file_format(str(named.path))
        if format is None:
            yield Problem(
                place,
                "the format cannot be told from this name",
                "add format: parquet, csv or jsonl",
            )
        if key == "table" and format == "arrow":
            yield Problem(
                place,
                "this table is not read from Arrow files",
                "write it as parquet, csv or jsonl",
            )
    if section.prior.public is not None and section.expected_rows is None:
        yield Problem(
            ("prior", "public"),
            "public rows are fitted to batches of the expected size",
            "add expected_rows: about how many records a batch has",
        )


def _prior(section: QuantilesSection) -> Iterator[Problem]:
    """Refuse a robust prior that has no mass in some cell: an impossible cell would be a leak."""
    readers: dict[str, str] = {}
    for name, each in LEARNERS.items():
        for key in sorted(each.keys):
            readers.setdefault(key, name)
    unread = readers.keys() & section.prior.model_fields_set - LEARNERS[section.learner()].keys
    for key in sorted(unread):
        yield Problem(
            ("prior", key),
            f"{key} is for the learner {readers[key]}, and this one is {section.learner()}",
            f"leave it out, or set learner: {readers[key]}",
        )
    place = ("prior", "robust")
    robust = section.prior.robust
    if isinstance(robust, str) and robust != "uniform" and section.guess is None:
        yield Problem(place, f"{robust} needs a guess", "add guess: {location: , scale: }")
    if robust == "uniform" and section.bounds is None:
        yield Problem(place, "uniform needs bounds", "add bounds: [lower, upper]")
    if robust == "half-cauchy" and section.guess is not None and not _starts(section):
        yield Problem(
            place,
            "a half-cauchy says that nothing lies below its location, but the bounds do",
            "set the lower bound to guess.location, or use cauchy",
        )
    members: Iterable[Family] = ()
    if isinstance(robust, Family):
        members = (robust,)
    elif isinstance(robust, MixtureOf):
        members = robust.mixture
    if members and not any(_covers(member, section) for member in members):
        yield Problem(
            place,
            "this prior gives some cell within the bounds no weight",
            "add a cauchy to the mixture, or a uniform as wide as the bounds",
        )


def _starts(section: QuantilesSection) -> bool:
    """Whether the lowest cell reaches above the location of a half-cauchy."""
    if section.bounds is None or section.guess is None:
        return False
    return float(section.bounds[0] + section.resolution / 2) > section.guess.location


def _covers(family: Family, section: QuantilesSection) -> bool:
    if family.family in ("cauchy", "laplace"):
        return True
    if section.bounds is None:
        return False
    low, high = (float(bound) for bound in section.bounds)
    if family.family == "half-cauchy":
        return family.location is not None and family.location <= low
    return (
        family.lower is not None
        and family.upper is not None
        and family.lower <= low
        and high <= family.upper
    )


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


def _no_periods(kind: Quantiles) -> str | None:
    """Return why periods have no answer: drawn values tell no distribution."""
    from streamdp.kinds.quantiles.lessons import why_drawn

    return why_drawn(kind)


SPEC = KindSpec(
    "quantiles",
    QuantilesSection,
    check,
    build,
    RankError(),
    question,
    _study,
    expects_rows=True,
    no_periods=_no_periods,
)
