"""The section of a release of a workload."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from streamdp.errors import ConfigurationError
from streamdp.kinds.section import FACTS, ReleaseSection
from streamdp.sections.expressions import OfOneRecord
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational
from streamdp.types import Dimension, TimePart
from streamdp.types.questions import Part

MOST_ANSWERS = 50_000
MOST_ITEMS = 500

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]


class DimensionSection(Section):
    """A public axis: a list of values, or cuts of a number; what is not listed is `other`."""

    column: str | None = Field(
        default=None,
        description="Column of the dimension. Default: the column with the dimension's name.",
        examples=["carrier"],
    )
    sql: OfOneRecord | None = Field(
        default=None,
        description="SQL expression of one record, in place of `column`, in DuckDB's dialect.",
        examples=["distance / 100"],
    )
    part: Part | None = Field(
        default=None,
        description="Part of a time that makes the cells: hour (0 to 23), weekday (1, Monday, to"
        " 7) or month (1 to 12), by the clocks of the `timezone` of the source's batches. The"
        " column is a date or a timestamp. In place of `values` and `cuts`.",
        examples=["hour"],
    )
    values: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100_000,
        description="Public list of texts or whole numbers, each with a cell. Others count in the"
        " cell `other`. In place of `cuts` and `part`.",
        examples=[["AA", "UA"]],
    )
    cuts: tuple[float, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100_000,
        description="Public increasing numbers, in the column's unit. A cell holds low <= x <"
        " high; the first and last cells are open. In place of `values` and `part`.",
        examples=[[0, 10, 60]],
    )
    nulls: Literal["cell", "other"] | None = Field(
        default=None,
        description="Where nulls count: in a cell of their own (`cell`) or in `other`. Default:"
        " `other` with values; always a cell of their own with cuts and part.",
    )

    @field_validator("values", mode="before")
    @classmethod
    def _texts(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            if any(isinstance(each, bool | float) for each in value):
                raise ValueError("values are texts or whole numbers; quote true, false and 1.5")
            return [str(each) if isinstance(each, int) else each for each in value]
        return value

    @model_validator(mode="after")
    def _one_axis(self) -> DimensionSection:
        if sum(each is not None for each in (self.values, self.cuts, self.part)) != 1:
            raise ValueError("give values, cuts or part")
        if self.sql is not None and (self.column is not None or self.part is not None):
            raise ValueError("sql takes the place of the column: leave column and part out")
        if self.values is None and self.nulls == "other":
            raise ValueError("cuts have no cell other: their nulls have a cell of their own")
        try:
            axis = self.dimension("axis", None)
        except ConfigurationError as error:
            raise ValueError(str(error).replace("dimension 'axis'", "this dimension")) from None
        named = ["(other)"] * axis.other + ["(null)"] * (axis.nulls == "cell")
        if taken := set(named) & set(axis.values or ()):
            raise ValueError(f"{min(taken)} is the name of a cell already")
        return self

    def source_sql(self, name: str) -> str | None:
        """Expression that makes the axis; None if it is the column of its name."""
        return self.sql or (None if self.column in (None, name) else _quoted(self.column))

    def dimension(self, name: str, sql: str | None, zone: str = "UTC") -> Dimension:
        """The axis.

        Args:
            name: Of the axis.
            sql: Expression in the engine's words.
            zone: Whose clocks show parts of a time.
        """
        if self.values is not None:
            return Dimension(name, sql, self.values, None, True, self.nulls or "other")
        if self.part is not None:
            clock = TimePart(self.part, zone)
            return Dimension(name, sql, None, clock.cuts, nulls="cell", clock=clock)
        return Dimension(name, sql, None, self.cuts, nulls="cell")


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


class WorkloadSection(ReleaseSection):
    """Counts over public axes of every batch of one source, consistent with each other."""

    measures_of_price = frozenset({"epsilon", "rho"})
    published: ClassVar[frozenset[str]] = frozenset(
        {"answer", "value", "lower", "upper", "bound", "measured", "flag"}
        | {"records", "records_lower", "records_upper"}
    )

    kind: Literal["workload"] = Field(
        description="`workload`: counts over dimensions and their combinations, consistent with"
        " each other."
    )
    expected_rows: int = Field(
        ge=1,
        le=10**10,
        description="Approximate number of records of a batch, or of each group: a public number,"
        " not one counted from the data. It sets how many tables `measured: auto`"
        " measures, and the expected accuracy.",
        examples=[1000],
    )
    dimensions: dict[Name, DimensionSection] = Field(
        min_length=1,
        max_length=26,
        description="Dimensions of the counts, by name: each a public list of cells.",
        examples=[{"carrier": {"values": ["AA", "UA"]}, "delay": {"cuts": [0, 15, 60]}}],
    )
    marginals: Annotated[int, Field(ge=0, le=4)] | tuple[tuple[Name, ...], ...] = Field(
        default=2,
        description="Tables of counts to answer: all combinations of up to so many dimensions (0"
        " to 4), or a list of lists of dimensions. Default 2.",
        examples=[2, [["carrier"], ["carrier", "delay"]]],
    )
    predicates: dict[Name, str] = Field(
        default={},
        description="Conditions on the dimensions whose counts are answered too, by name. Default:"
        " none.",
        examples=[{"morning": "hour < 9"}],
    )
    choose: Literal["auto", "private", "public", "online"] = Field(
        default="auto",
        description="How the tables to measure are chosen: by a private look at the batch"
        " (`private`), without the batch (`public`), by either as past releases and epsilon times"
        " the expected rows make it better (`auto`), or by testing each in turn (`online`), which"
        " needs `tolerance`. Default `auto`.",
    )
    tolerance: PositiveRational | None = Field(
        default=None,
        description="With `choose: online`: share of the expected rows by which a count may be off"
        " without being measured, below 1. Default: none.",
        examples=[0.05],
    )
    measured: Literal["auto"] | Annotated[int, Field(ge=1, le=100)] = Field(
        default="auto",
        description="Number of tables measured in each release, 1 to 100; the others are inferred."
        " Default: `auto`, by a public rule.",
    )
    raw: bool = Field(
        default=False,
        description="Publish the noisy counts that were measured, beside the answers. Default"
        " false.",
    )
    publish: Literal["answers", "records", "both"] = Field(
        default="answers",
        description="Publish the counts (`answers`), synthetic records (`records`), or `both` in"
        " one table. Default `answers`.",
    )
    learner: Literal["hypotheses", "none"] = Field(
        default="hypotheses",
        description="How releases learn from earlier ones: three `hypotheses` of what repeats,"
        " judged by what was released; or `none`. Default `hypotheses`.",
    )

    @model_validator(mode="after")
    def _hangs_together(self) -> WorkloadSection:
        named = set(self.dimensions)
        if taken := named & (self.published | FACTS | set(self.by)):
            raise ValueError(f"a release has a column {min(taken)!r} itself: name the axis anew")
        for axes in () if isinstance(self.marginals, int) else self.marginals:
            if not axes or len(set(axes)) < len(axes) or not set(axes) <= named:
                raise ValueError(f"marginal {list(axes)} must name dimensions, each once")
        if not self.marginals and not self.predicates:
            raise ValueError("give marginals or predicates")
        if (self.choose == "online") != (self.tolerance is not None):
            raise ValueError("tolerance and choose: online go together: give both or neither")
        if self.tolerance is not None and self.tolerance >= 1:
            raise ValueError("tolerance is a share of the expected rows: give one below 1")
        if self.raw and self.publish == "records":
            raise ValueError("raw counts stand beside answers: leave raw out")
        return self

    def axes_of_marginals(self) -> tuple[tuple[int, ...], ...]:
        """Axes by index, each set once."""
        from streamdp.kinds.workload.fitting.distribution import marginals_up_to

        if isinstance(self.marginals, int):
            return marginals_up_to(len(self.dimensions), self.marginals)
        order = {name: place for place, name in enumerate(self.dimensions)}
        return tuple(
            dict.fromkeys(tuple(sorted(order[name] for name in axes)) for axes in self.marginals)
        )

    def about_errors(self) -> str:
        """Meaning of `lower` and `upper`, and the effect of wrong expected rows."""
        return (
            "lower and upper are estimated to hold the batch's own counts 95 times in 100, and were"
            " seen to hold 90 to 98; where the batch has a tenth of the expected rows, the first"
            " release errs more, and its intervals hold less than half of the time"
        )

    def tolerated(self) -> int:
        """Records of the tolerance, at least one."""
        return max(round((self.tolerance or 0) * self.expected_rows), 1)

    def answers(self) -> int:
        """Cells of all marginals, with those of predicates."""
        sizes = [each.dimension("axis", None).size for each in self.dimensions.values()]
        cells = [math.prod(sizes[axis] for axis in axes) for axes in self.axes_of_marginals()]
        return sum(cells) + 2 * len(self.predicates)
