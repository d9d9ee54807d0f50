"""The section of a release of statistics."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.config.expressions import expression
from streamdp.config.releases import ReleaseSection
from streamdp.config.section import Section
from streamdp.config.values import PositiveRational, Rational

MOST_CELLS = 2**40
"""Cells of a column lie within plus or minus this."""

MOST_ROWS = 100_000
"""Cells of all measures in all groups."""


class Derived(Section):
    """A value made of the columns of one record."""

    sql: str = Field(description="SQL expression, in DuckDB's dialect whatever the engine.")

    @field_validator("sql")
    @classmethod
    def _of_one_record(cls, value: str) -> str:
        expression(value)
        return value


Source = Annotated[str, Field(min_length=1)] | Derived
"""A column, or what is made of some."""


class Weighed(Section):
    """A measure with its part of epsilon."""

    weight: int = Field(
        default=1, ge=1, le=1000, description="Its share of epsilon, against the other measures'."
    )


class CountSection(Weighed):
    """The number of records."""

    count: Literal["records"] | Derived = Field(
        description="`records`, or a condition in SQL: those it is true of."
    )


class HistogramSection(Weighed):
    """Numbers of records by cells of a column."""

    histogram: Source
    values: tuple[str, ...] | None = Field(
        default=None, description="Public texts, a cell each, compared byte by byte."
    )
    cuts: tuple[Rational, ...] | None = Field(
        default=None, description="Increasing numbers; a cell reaches from one to the next."
    )
    other: bool = Field(default=False, description="A cell for texts that are not listed.")
    nulls: Literal["cell", "other", "drop"] = "drop"
    adds_up_to: str | None = Field(
        default=None,
        description="A count of all records that its cells are made to agree with, in the column"
        " `consistent`: needs a cell for every record.",
    )

    @field_validator("values", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return [str(each).lower() if isinstance(each, bool) else str(each) for each in value]

    @model_validator(mode="after")
    def _has_cells(self) -> HistogramSection:
        if (self.values is None) == (self.cuts is None):
            raise ValueError("a histogram needs either values or cuts, a public list")
        if len(set(self.values or ())) < len(self.values or ()):
            raise ValueError("a value is listed twice")
        named = ["(other)"] * self.other + ["(null)"] * (self.nulls == "cell")
        if taken := set(named) & set(self.values or ()):
            raise ValueError(f"{min(taken)} is the name of a cell already")
        if any(high <= low for low, high in pairwise(self.cuts or ())):
            raise ValueError("the cuts must be increasing")
        if self.cuts is not None and (self.other or self.nulls == "other"):
            raise ValueError("with cuts every number has a cell: leave out other")
        if self.nulls == "other" and not self.other:
            raise ValueError("nulls: other needs other: true")
        if not self.values and self.cuts is None and not self.other:
            raise ValueError("a histogram needs a cell")
        whole = self.nulls != "drop" and (self.cuts is not None or self.other)
        if self.adds_up_to is not None and not whole:
            raise ValueError("adds_up_to needs a cell for every record: other, and for nulls")
        return self

    def size(self) -> int:
        """Cells."""
        listed = len(self.values) if self.values is not None else len(self.cuts or ()) + 1
        return listed + self.other + (self.nulls == "cell")


class Start(Section):
    """Where values are believed to lie before any release."""

    location: Rational
    scale: PositiveRational


class MomentSection(Weighed):
    """A sum, a mean or a variance of a column."""

    sum: Source | None = None
    mean: Source | None = None
    variance: Source | None = None
    resolution: PositiveRational = Field(description="Width of a cell: values are rounded to it.")
    bounds: tuple[Rational, Rational] | None = Field(
        default=None, description="Values outside count as the bound."
    )
    guess: Start | None = Field(
        default=None, description="Where values are clipped before releases tell."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> MomentSection:
        if sum(each is not None for each in (self.sum, self.mean, self.variance)) != 1:
            raise ValueError("a measure is one of count, histogram, sum, mean, variance")
        if self.bounds is None and self.guess is None:
            raise ValueError("give bounds or a guess: without either nothing says where to clip")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        if max(map(abs, self.cells())) > MOST_CELLS:
            raise ValueError("the bounds are too wide for the resolution: make it coarser")
        return self

    def cells(self) -> tuple[int, int]:
        """First and last cell."""
        if self.bounds is None:
            return -MOST_CELLS, MOST_CELLS
        low, high = (math.floor(bound / self.resolution + Fraction(1, 2)) for bound in self.bounds)
        return low, high

    def start(self) -> tuple[int, int]:
        """Centre and reach before any release, in cells: four scales, or all of the bounds."""
        if self.guess is not None:
            centre = round(self.guess.location / self.resolution)
            return centre, math.ceil(4 * self.guess.scale / self.resolution)
        low, high = self.cells()
        return (low + high) // 2, -((low - high) // 2)


MeasureSection = CountSection | HistogramSection | MomentSection
"""One of the measures of a release."""


class StatisticsSection(ReleaseSection):
    """Counts, histograms, sums, means and variances of every batch of one source."""

    published: ClassVar[frozenset[str]] = frozenset(
        {"measure", "statistic", "cell", "value", "lower", "upper", "nonnegative", "consistent"}
        | {"smoothed", "smoothed_lower", "smoothed_upper"}
    )

    kind: Literal["statistics"]
    measures: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")], MeasureSection]

    @field_validator("measures", mode="before")
    @classmethod
    def _by_their_keys(cls, value: Any) -> Any:
        """A mapping is validated as the measure that its keys name: the errors are that one's."""
        if not isinstance(value, dict) or not value:
            raise ValueError("name at least one measure: a mapping of names to measures")
        return {name: _measure(each) for name, each in value.items()}

    @model_validator(mode="after")
    def _hang_together(self) -> StatisticsSection:
        for name, measure in self.measures.items():
            if isinstance(measure, HistogramSection) and measure.adds_up_to is not None:
                total = self.measures.get(measure.adds_up_to)
                if not isinstance(total, CountSection) or total.count != "records":
                    raise ValueError(f"{name} adds up to a measure that is no count of records")
        if self.rows() > MOST_ROWS:
            raise ValueError(f"there are at most {MOST_ROWS} cells in all groups together")
        return self

    def rows(self) -> int:
        """Rows of a release."""
        sizes = (
            each.size() if isinstance(each, HistogramSection) else 1
            for each in self.measures.values()
        )
        return sum(sizes) * max(1, len(self.groups))


def _measure(value: Any) -> Any:
    if value == "count":
        return CountSection(count="records")
    if not isinstance(value, dict):
        return value
    if "count" in value:
        return CountSection.model_validate(value)
    if "histogram" in value:
        return HistogramSection.model_validate(value)
    return MomentSection.model_validate(value)
