"""Checks between the keys of a release of statistics, and between them and the sources."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from streamdp.config.base.derived import Derived
from streamdp.config.base.releases import CheckContext, Problem
from streamdp.kinds.statistics.measure_sections import (
    CountSection,
    HistogramSection,
    MeasureSection,
    UnitSizesSection,
)
from streamdp.kinds.statistics.section import StatisticsSection
from streamdp.privacy.price import LEAST


def check(section: StatisticsSection, context: CheckContext) -> Iterator[Problem]:
    """All that does not hang together."""
    for name, measure in section.measures.items():
        key, source = _source(measure)
        if isinstance(source, Derived):
            found = context.problem_of(source.sql, ("measures", name, key))
            yield from () if found is None else (found,)
    weights = [measure.weight for measure in section.measures.values()]
    share = Fraction(min(weights), sum(weights))
    least = section.price.share(share).of_record(context.rows)
    if least.amount < LEAST[least.measure]:
        yield Problem(
            (least.measure,),
            f"a measure would get less than {float(LEAST[least.measure]):g} for one record",
            "raise it, or ask for fewer measures or rows of a unit",
        )


def _source(measure: MeasureSection) -> tuple[str, str | Derived | None]:
    """Key and value of what is counted or summed."""
    if isinstance(measure, CountSection):
        return "count", measure.count
    if isinstance(measure, UnitSizesSection):
        return "records_a_unit", None
    if isinstance(measure, HistogramSection):
        return "histogram", measure.histogram
    found = {"sum": measure.sum, "mean": measure.mean, "variance": measure.variance}
    return next((key, value) for key, value in found.items() if value is not None)
