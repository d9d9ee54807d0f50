"""The release kind `statistics`, of a configured release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, assert_never

from streamdp.kinds.statistics.section import (
    CountSection,
    HistogramSection,
    MeasureSection,
    MomentSection,
    RecordsSection,
    StatisticsSection,
    UnitSizesSection,
)
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import Derived, expression
from streamdp.types import Dimension, Grid

if TYPE_CHECKING:
    from streamdp.gates.questions.section import CountTable
    from streamdp.kinds.spec import BuildContext
    from streamdp.kinds.statistics.kind import Statistics, Tie
    from streamdp.kinds.statistics.measures.counts import Count
    from streamdp.kinds.statistics.measures.moments import Moment
    from streamdp.kinds.statistics.measures.protocol import Measure


def build(section: StatisticsSection, context: BuildContext) -> Statistics:
    """The kind for all groups together, which it draws and smooths as one."""
    from streamdp.kinds.statistics.kind import Statistics

    weights = [measure.weight for measure in section.measures.values()]
    return Statistics(
        measures=measures(section, context.dialect, context.rows, context.unit),
        shares=tuple(Fraction(weight, sum(weights)) for weight in weights),
        price=context.price_of_record(section),
        neighbours=context.neighbours,
        where=None if section.where is None else expression(section.where, context.dialect),
        by=section.by,
        groups=section.groups or ((),),
        ties=tuple(_ties(section)),
        smooth=section.smoothed,
        counted=context.counted,
        expected_rows=section.expected_rows,
        units=tuple(_units(section, context)),
        cell_units=tuple(
            (name, each.measured_in)
            for name, each in section.measures.items()
            if isinstance(each, HistogramSection) and each.measured_in
        ),
    )


def _units(section: StatisticsSection, context: BuildContext) -> Iterator[tuple[str, str]]:
    """Unit of each measure: what is counted, or that of the column, squared for a variance."""
    for name, each in section.measures.items():
        match each:
            case MomentSection(measured_in=unit):
                if unit:
                    yield name, f"{unit}²" if each.variance is not None else unit
            case CountSection(count="units") | UnitSizesSection():
                continue
            case CountSection() | HistogramSection():
                yield name, context.counted


def measures(
    section: StatisticsSection, dialect: Dialect, rows: int = 1, unit: str = "unit"
) -> tuple[Measure, ...]:
    """Return the measures in the order of the configuration.

    Args:
        section: Of the release.
        dialect: Of the engine that reads expressions.
        rows: The most records of one unit that count.
        unit: Name of a unit.
    """
    from streamdp.kinds.statistics.measures.units import Units, UnitSizes

    groups = max(1, len(section.groups))
    found: list[Measure] = []
    for name, each in section.measures.items():
        match each:
            case CountSection(count="units"):
                found.append(Units(name, unit, rows, groups))
            case UnitSizesSection(records_a_unit=cuts):
                found.append(UnitSizes(name, cuts, unit, rows))
            case _:
                found.append(_measure(name, each, dialect))
    return tuple(found)


def tables(section: StatisticsSection, dialect: Dialect) -> dict[str, CountTable]:
    """Return the counts and histograms, one question each."""
    from streamdp.gates.questions.section import CountTable

    where = None if section.where is None else expression(section.where, dialect)
    return {
        name: CountTable(replace(made.table(), where=where), made.cells)
        for name, measure in section.measures.items()
        if isinstance(measure, CountSection | HistogramSection) and not _of_units(measure)
        for made in (_counted(name, measure, dialect),)
    }


def _of_units(section: MeasureSection) -> bool:
    return isinstance(section, CountSection) and section.count == "units"


def _measure(name: str, section: RecordsSection, dialect: Dialect) -> Measure:
    from streamdp.kinds.statistics.measures.moments import MomentOf

    match section:
        case MomentSection():
            moment, source = _moment(section)
            column, made = _source(name, source, dialect)
            grid = Grid(section.resolution, *section.cells())
            return MomentOf(name, moment, column, grid, section.start(), made)
        case CountSection() | HistogramSection():
            return _counted(name, section, dialect)
        case _:
            assert_never(section)


def _counted(name: str, section: CountSection | HistogramSection, dialect: Dialect) -> Count:
    from streamdp.kinds.statistics.measures.counts import Count

    match section:
        case CountSection(count="records"):
            return Count(name)
        case CountSection(count=Derived(sql=condition)):
            sql = f"CASE WHEN {expression(condition, dialect)} THEN 'true' END"
            return Count(name, Dimension(name, sql, values=("true",)), condition=True)
        case HistogramSection():
            column, made = _source(name, section.histogram, dialect)
            cuts = None if section.cuts is None else tuple(map(float, section.cuts))
            axis = Dimension(column, made, section.values, cuts, section.other, section.nulls)
            return Count(name, axis)
        case _:
            raise AssertionError(section)


def _moment(section: MomentSection) -> tuple[Moment, str | Derived]:
    if section.sum is not None:
        return "sum", section.sum
    if section.mean is not None:
        return "mean", section.mean
    return "variance", section.variance or ""


def _source(name: str, source: str | Derived, dialect: Dialect) -> tuple[str, str | None]:
    """Column, or a name and the SQL of what is made of some."""
    if isinstance(source, Derived):
        return name, expression(source.sql, dialect)
    return source, None


def _ties(section: StatisticsSection) -> list[Tie]:
    from streamdp.kinds.statistics.kind import Tie

    places = {name: number for number, name in enumerate(section.measures)}
    return [
        Tie(places[measure.adds_up_to], places[name])
        for name, measure in section.measures.items()
        if isinstance(measure, HistogramSection) and measure.adds_up_to is not None
    ]
