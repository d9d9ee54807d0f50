"""The section of a release of statistics."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.kinds.section import ReleaseSection
from streamdp.kinds.statistics.measure_sections import (
    CountSection,
    HistogramSection,
    Measure,
    MomentSection,
    UnitSizesSection,
)
from streamdp.types import Row

MOST_ROWS = 100_000
"""Cells of all measures in all groups."""


class StatisticsSection(ReleaseSection):
    """Counts, histograms, sums, means and variances of every batch, and numbers of units."""

    measures_of_price = frozenset({"epsilon", "rho"})
    published: ClassVar[frozenset[str]] = frozenset(
        {"measure", "statistic", "cell", "value", "lower", "upper", "nonnegative", "consistent"}
        | {"smoothed", "smoothed_lower", "smoothed_upper", "flag"}
    )

    kind: Literal["statistics"] = Field(
        description="`statistics`: counts, histograms, sums, means and variances."
    )
    measures: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")], Measure] = Field(
        description="Measures to release, by name. Each is `count` or `units`, or a section with"
        " one of count, histogram, sum, mean, variance and records_a_unit. They share the price by"
        " weight.",
        examples=[
            {"records": "count", "by_carrier": {"histogram": "carrier", "values": ["AA", "UA"]}}
        ],
    )

    smoothed: bool = Field(
        default=True,
        strict=True,
        description="Publish the columns `smoothed`, `smoothed_lower` and `smoothed_upper`: an"
        " estimate from all releases so far. It costs no privacy. Default true.",
    )

    @field_validator("measures", mode="before")
    @classmethod
    def _names_some(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not value:
            raise ValueError("name at least one measure: a mapping of names to measures")
        return value

    @model_validator(mode="after")
    def _hang_together(self) -> StatisticsSection:
        for name, measure in self.measures.items():
            if isinstance(measure, HistogramSection) and measure.adds_up_to is not None:
                total = self.measures.get(measure.adds_up_to)
                if not isinstance(total, CountSection) or total.count != "records":
                    raise ValueError(f"{name} adds up to a measure that is no count of records")
            if isinstance(measure, UnitSizesSection) and self.by:
                raise ValueError(
                    f"{name} counts the records of a unit over all groups, as `rows` bounds them:"
                    " put it in a release without by"
                )
        if self.rows() > MOST_ROWS:
            raise ValueError(f"there are at most {MOST_ROWS} cells in all groups together")
        return self

    def about_errors(self) -> str:
        """Level of the intervals, and where they hold less."""
        return (
            "lower and upper are meant to hold the batch's own value 95 times in 100, and so are"
            " smoothed_lower and smoothed_upper. Those of counts follow from the law of the noise."
            " Those of sums, means and variances take what noise hides of far values from the guess"
            " or the bounds: that of a variance whose tail is heavier may hold half of the time."
            " Smoothed counts hold less often on a weekday that is far from the others, until"
            " enough of them were seen"
        )

    def bounds_of(self, row: Row) -> tuple[float, float] | None:
        """Return the bounds of a mean; other measures have other bounds than their values."""
        made = self.measures.get(str(row.get("measure")))
        if not isinstance(made, MomentSection) or made.mean is None or made.bounds is None:
            return None
        low, high = made.cells()
        return float(low * made.resolution), float(high * made.resolution)

    def rows(self) -> int:
        """The number of rows of a release."""
        sizes = (
            each.size() if isinstance(each, HistogramSection | UnitSizesSection) else 1
            for each in self.measures.values()
        )
        return sum(sizes) * max(1, len(self.groups))
