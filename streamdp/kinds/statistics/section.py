"""The section of a release of statistics, and of each of its measures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from streamdp.kinds.section import ColumnBounds, MeasuredIn, ReleaseSection
from streamdp.sections.expressions import Derived
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import MOST_ROWS_PER_UNIT, Row

MOST_CELLS = 2**40
"""Cells of a column lie within plus or minus this."""


Source = Annotated[str, Field(min_length=1)] | Derived
"""A column, or what is made of some."""


class Weighed(Section):
    """A measure with its part of the price."""

    weight: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Relative share of the price that this measure gets, 1 to 1000. Default 1.",
    )


class CountSection(Weighed):
    """The number of records, or of units."""

    count: Literal["records", "units"] | Derived = Field(
        description="`records`, `units`, or an SQL condition: the number of records for which it is"
        " true. A unit counts once whatever number of records it has, at no more noise for more of"
        " them; by groups, in as many of its groups as `rows` of the unit allows, and noise grows"
        " with that.",
        examples=["records", "units", {"sql": "delay > 15"}],
    )


class HistogramSection(Weighed):
    """Numbers of records by cells of a column."""

    histogram: Source = Field(
        description="Column whose records are counted by cell, or an SQL expression of one record.",
        examples=["carrier", {"sql": "price * pieces"}],
    )
    values: tuple[str, ...] | None = Field(
        default=None,
        description="Public list of texts, each with a cell; compared byte by byte. In place of"
        " `cuts`.",
        examples=[["AA", "UA"]],
    )
    cuts: tuple[Rational, ...] | None = Field(
        default=None,
        description="Public increasing numbers, in the column's unit. A cell holds low <= x <"
        " high; the first and last cells are open. In place of `values`.",
        examples=[[0, 10, 60]],
    )
    other: bool = Field(
        default=False,
        description="Add a cell for texts that are not listed. Default false: such records are"
        " dropped.",
    )
    nulls: Literal["cell", "other", "drop"] = Field(
        default="drop",
        description="Where nulls count: in a cell of their own (`cell`), in `other`, or nowhere"
        " (`drop`). Default `drop`.",
    )
    measured_in: str = Field(
        default="",
        max_length=40,
        description="Unit of the column's values in words, for names of cells between cuts on the"
        " page, in charts and in reports. Default: none is said.",
        examples=["minutes"],
    )
    adds_up_to: str | None = Field(
        default=None,
        description="Name of a measure that counts all records. The column `consistent` adjusts"
        " the cells to add up to it. Every record needs a cell. Default: none.",
        examples=["records"],
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
        if self.cuts is None and self.measured_in:
            raise ValueError("measured_in is the unit of cuts: texts have none")
        if not self.values and self.cuts is None and not self.other:
            raise ValueError("a histogram needs a cell")
        whole = self.nulls != "drop" and (self.cuts is not None or self.other)
        if self.adds_up_to is not None and not whole:
            raise ValueError("adds_up_to needs a cell for every record: other, and for nulls")
        return self

    def size(self) -> int:
        """The number of cells."""
        listed = len(self.values) if self.values is not None else len(self.cuts or ()) + 1
        return listed + self.other + (self.nulls == "cell")


class Start(Section):
    """A guess of place and spread of values, before any release."""

    location: Rational = Field(
        description="Approximate centre of the values, in the column's unit.", examples=[120]
    )
    scale: PositiveRational = Field(
        description="Approximate spread of the values, in the column's unit; above 0. The first"
        " clipping reaches four times as far.",
        examples=[60],
    )


class MomentSection(Weighed):
    """A sum, a mean or a variance of a column."""

    sum: Source | None = Field(
        default=None,
        description="Column to sum, or an SQL expression of one record.",
        examples=["amount"],
    )
    mean: Source | None = Field(
        default=None,
        description="Column to average, or an SQL expression of one record.",
        examples=["air_time"],
    )
    variance: Source | None = Field(
        default=None,
        description="Column whose variance is released, or an SQL expression of one record.",
        examples=["air_time"],
    )
    measured_in: MeasuredIn = ""
    resolution: PositiveRational = Field(
        description="Width of a cell, in the column's unit. Values are rounded to it.", examples=[1]
    )
    bounds: ColumnBounds = None
    guess: Start | None = Field(
        default=None,
        description="Public guess of where values lie; it sets the clipping before the first"
        " release. Default: none, with bounds.",
        examples=[{"location": 120, "scale": 60}],
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> MomentSection:
        if sum(each is not None for each in (self.sum, self.mean, self.variance)) != 1:
            raise ValueError(f"a measure is one of {FORMS}")
        if self.bounds is None and self.guess is None:
            raise ValueError("give bounds or a guess: without either nothing says where to clip")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        if max(map(abs, self.cells())) > MOST_CELLS:
            raise ValueError("the bounds are too wide for the resolution: make it coarser")
        return self

    def cells(self) -> tuple[int, int]:
        """First and last cell within the bounds."""
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


class UnitSizesSection(Weighed):
    """Numbers of units by how many records they have."""

    records_a_unit: tuple[Annotated[int, Field(ge=2, le=MOST_ROWS_PER_UNIT, strict=True)], ...] = (
        Field(
            min_length=1,
            max_length=100,
            description="Public increasing whole numbers from 2 on: units of 1 record up to the"
            " first, and so on, are counted by how many records they have in the batch. Each unit"
            " is in one cell. Rows with the share of records that each bound `rows` would leave out"
            " follow from it. Not by groups.",
            examples=[[2, 3, 5, 10, 20]],
        )
    )

    @model_validator(mode="after")
    def _increase(self) -> UnitSizesSection:
        if any(high <= low for low, high in pairwise(self.records_a_unit)):
            raise ValueError("the numbers of records must be increasing")
        return self

    def size(self) -> int:
        """The number of cells, and of bounds below the last."""
        return 2 * len(self.records_a_unit) + 1


RecordsSection = CountSection | HistogramSection | MomentSection
"""One of the measures of records."""

MeasureSection = RecordsSection | UnitSizesSection
"""One of the measures of a release."""


FORMS = "count, histogram, sum, mean, variance, records_a_unit"

_WORDS = {"count": "records", "units": "units"}


def _written_out(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in _WORDS:
        raise ValueError(f"write count or units, or a section with one of {FORMS}")
    return {"count": _WORDS[value]}


def _form(value: Any) -> str:
    """The measure that the keys name, so that errors are of that one alone."""
    if isinstance(value, Section):
        return type(value).__name__
    keys = value if isinstance(value, dict) else {}
    if "count" in keys:
        return "CountSection"
    if "records_a_unit" in keys:
        return "UnitSizesSection"
    return "HistogramSection" if "histogram" in keys else "MomentSection"


Measure = Annotated[
    Annotated[CountSection, Tag("CountSection")]
    | Annotated[HistogramSection, Tag("HistogramSection")]
    | Annotated[UnitSizesSection, Tag("UnitSizesSection")]
    | Annotated[MomentSection, Tag("MomentSection")],
    Discriminator(_form),
    BeforeValidator(_written_out),
]
"""A measure as it is written: a section, or the word `count` or `units`."""


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
