"""The section `releases`: the keys that all kinds share; each kind adds its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from streamdp.gates.section import GateTerms
from streamdp.privacy.filters import Measure
from streamdp.privacy.price import Price
from streamdp.sections.dialects import Dialect
from streamdp.sections.document import Document, Path, refuse
from streamdp.sections.expressions import OfOneRecord, expression
from streamdp.sections.schedules import Schedule
from streamdp.sections.section import Section
from streamdp.sections.values import PositiveRational, Rational
from streamdp.types import Neighbours, Row

_STEPS = ("day", "week", "month", "quarter", "year")
_ROLLING = re.compile(r"rolling ([1-9]\d{0,2})d")


def _step(text: str) -> str:
    if text in _STEPS or _ROLLING.fullmatch(text):
        return text
    raise ValueError(f"a rollup is of a {', '.join(_STEPS)}, or `rolling 28d` in whole days")


RollupStep = Annotated[
    str,
    AfterValidator(_step),
    WithJsonSchema(
        {"type": "string", "pattern": rf"^({'|'.join(_STEPS)}|rolling [1-9][0-9]{{0,2}}d)$"}
    ),
]


MeasuredIn = Annotated[
    str,
    Field(
        max_length=40,
        description="Unit of the column's values in words, for axes, heads of tables and sentences."
        " Default: none is said.",
        examples=["minutes"],
    ),
]

ColumnBounds = Annotated[
    tuple[Rational, Rational] | None,
    Field(
        description="Lowest and highest value, in the column's unit. Values outside count as the"
        " bound. Default: none, with a guess.",
        examples=[[0, 1000]],
    ),
]


class RollupsSection(Section):
    """Rows about whole periods, from the measurements of their batches: they cost nothing."""

    periods: tuple[RollupStep, ...] = Field(
        min_length=1,
        description="Periods by the clocks of the time zone of the source's batches: day, week"
        " (from Monday), month, quarter, year, or `rolling 28d`, which ends at each midnight.",
        examples=[["week", "month", "rolling 28d"]],
    )
    partial: bool = Field(
        default=False,
        strict=True,
        description="Roll up a period of which batches are missing, once a batch behind its end"
        " was released; the column `missing` tells. A batch that comes late makes a new revision."
        " Default false: such a period waits until all of its batches were released.",
    )
    sinks: tuple[str, ...] | None = Field(
        default=None,
        description="Names of the sinks that get the rows. Default: the sinks of the release.",
        examples=[["weekly"]],
    )

    def check(self, every: int | None, document: Document, path: Path, *, growing: bool) -> None:
        """Require windows that do not overlap.

        Args:
            every: Seconds of a window; None where batches are no windows of time.
            document: The file.
            path: Of the section in it.
            growing: Whether the windows grow.

        Raises:
            ConfigurationError: There are none.
        """
        if every is None:
            hint = "cut the source by time: `batches: {column: ..., every: 1d, start: ...}`"
            refuse("batches that are no windows of time have no periods", document, path, hint)
        if growing:
            refuse(
                "growing batches overlap, so periods of them do not add up",
                document,
                path,
                "leave it out",
            )


def listed(value: Any) -> Any:
    """A list of periods alone, as the section."""
    return {"periods": value} if isinstance(value, list | tuple) else value


Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$")]

MOST_GROUPS = 1000

FACTS = frozenset(
    {
        "release_id",
        "row",
        "job",
        "batch",
        "window_start",
        "window_end",
        "kind",
        "epsilon",
        "rho",
        "delta",
    }
    | {"released_at", "current"}
)
"""Columns of every release, which a group's columns would hide."""

DATA_DEFINED = (
    "groups must be a public list, or {from: JOB, most: 50}, where JOB is a release of kind keys:"
    " groups read off the data would tell who is there"
)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | str):
        return str(value)
    raise ValueError("a group's value is text, a whole number, or true or false")


def _as_label(value: Any) -> str:
    """Text of a label as a release has it: 0.5 as `0.5`, 1 as `1`."""
    return f"{value:g}" if isinstance(value, float) else _as_text(value)


Group = tuple[Annotated[str, BeforeValidator(_as_text), WithJsonSchema({})], ...]


class RowsFrom(Section):
    """A count whose releases say how many records to expect."""

    job: str = Field(
        min_length=1,
        description="Name of a release that counts all records of the same source.",
        examples=["traffic"],
    )
    measure: str = Field(
        min_length=1, description="Name of the count in that release.", examples=["flights"]
    )


class GroupsFrom(Section):
    """A job whose releases say which groups there are."""

    job: str = Field(
        alias="from",
        min_length=1,
        description="Name of a release of kind `keys` of the same source and columns. The groups of"
        " a batch are keys that it released of batches before.",
        examples=["carriers"],
    )
    most: int = Field(
        ge=1,
        le=MOST_GROUPS,
        strict=True,
        description="The most groups of a batch: the largest keys.",
        examples=[50],
    )
    at_least: int = Field(
        default=1,
        ge=1,
        strict=True,
        description="Keys with a smaller smoothed count are no groups. Default 1.",
        examples=[30],
    )


class ReleaseSection(Section):
    """Keys that all releases of every kind have; a kind adds keys of its own."""

    published: ClassVar[frozenset[str]] = frozenset()
    """Columns of a release of this kind, which a group's columns would hide."""

    measures_of_price: ClassVar[frozenset[Measure]] = frozenset({"epsilon"})
    """Whether the kind is drawn at a price in epsilon, in rho, or in either."""

    kind: str = Field(description="Kind of statistic.")
    source: str = Field(
        description="Name of the source whose batches are released.", examples=["flights"]
    )
    where: OfOneRecord | None = Field(
        default=None,
        description="SQL condition on one record, in DuckDB's dialect. Records for which it is"
        " false or null are left out. Default: all records count.",
        examples=["delay IS NOT NULL"],
    )
    by: tuple[str, ...] = Field(
        default=(),
        description="Column or columns that give the group of a record. Default: no groups.",
        examples=["carrier", ["carrier", "origin"]],
    )
    groups: tuple[Group, ...] = Field(
        default=(),
        description="Public list of groups; records of other groups are left out. With several"
        " columns, each group is a list. Groups are disjoint, so all cost one epsilon.",
        examples=[["AA", "UA"], [["AA", "JFK"], ["UA", "EWR"]]],
    )
    groups_from: GroupsFrom | None = Field(
        default=None,
        description="A job that finds the groups, in place of `groups`. It may be written as"
        " `groups: {from: JOB, most: 50}`. Before it has found any, nothing is released or paid."
        " Default: none.",
        examples=[{"from": "carriers", "most": 50, "at_least": 30}],
    )
    expected_rows: int | None = Field(
        default=None,
        ge=1,
        le=10**10,
        description="Approximate number of records of a batch, or of each group: a public number,"
        " not one counted from the data. It chooses the mechanism and gives the"
        " expected accuracy. Default: unknown.",
        examples=[1000],
    )
    group_rows: dict[str, Annotated[int, Field(ge=1, le=10**10)]] = Field(
        default={},
        description="Expected rows of groups that differ from `expected_rows`, by group; values of"
        " several columns are joined by commas. Default: none.",
        examples=[{"AA": 3000, "UA": 500}],
    )
    rows_from: RowsFrom | None = Field(
        default=None,
        description="Count whose releases take the place of `expected_rows` once it is known, for"
        " intervals and for what is learned; the mechanism and its price stay those of"
        " `expected_rows`. Released counts are public, so it costs nothing. For the kind"
        " `quantiles`. Default: none.",
        examples=[{"job": "traffic", "measure": "flights"}],
    )
    epsilon: PositiveRational | None = Field(
        default=None,
        description="Privacy cost of one release of one batch: pure loss of a unit. Required,"
        " unless `rho` is given.",
        examples=[0.1],
    )
    rho: PositiveRational | None = Field(
        default=None,
        description="Zero-concentrated privacy cost of one release, in place of `epsilon`. The"
        " noise is Gaussian, and the caps must be in rho or in epsilon and delta. For the kinds"
        " statistics, workload and quantiles. Default: none.",
        examples=[0.0175],
    )
    schedule: Schedule = Field(
        default=Schedule(on="batch"),
        description="When the job wakes: `cron`, `every` or `on: batch`. Default: `on: batch`.",
        examples=[{"cron": "0 6 * * *"}],
    )
    gate: GateTerms | None = Field(
        default=None,
        description="Private test that must accept a batch before it is released. Default: every"
        " batch is released.",
        examples=[{"test": {"kind": "drift", "ranks": 0.15}, "epsilon": 1, "horizon": 365}],
    )
    sinks: tuple[str, ...] = Field(
        default=(),
        description="Names of the sinks that get each release. Default: the store alone.",
        examples=[["file"]],
    )
    rollups: RollupsSection | None = Field(
        default=None,
        description="Periods whose rows follow from the releases of their batches, for nothing,"
        " once they are closed: a list of periods, or a mapping. For windows that do not overlap."
        " Default: none.",
        examples=[["week", "month", "rolling 28d"]],
    )

    headline: dict[str, Annotated[str, BeforeValidator(_as_label), WithJsonSchema({})]] = Field(
        default={},
        description="The row whose newest value stands for the job on the page and in reports: what"
        " columns of the row hold. Default: a total or a median.",
        examples=[{"measure": "flights"}],
    )

    @model_validator(mode="before")
    @classmethod
    def _from_a_job(cls, value: Any) -> Any:
        """Groups that are a mapping name the job that finds them."""
        if isinstance(value, dict) and isinstance(value.get("groups"), dict):
            if "groups_from" in value:
                raise ValueError("groups and groups_from say the same: leave one out")
            rest = {name: each for name, each in value.items() if name != "groups"}
            return rest | {"groups_from": value["groups"]}
        return value

    @field_validator("rollups", mode="before")
    @classmethod
    def _periods(cls, value: Any) -> Any:
        return listed(value)

    @field_validator("by", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("groups", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(DATA_DEFINED)
        return [each if isinstance(each, list | tuple) else [each] for each in value]

    @field_validator("epsilon")
    @classmethod
    def _not_tiny(cls, value: Fraction | None) -> Fraction | None:
        if value is not None and value < Fraction(1, 10**6):
            raise ValueError("an epsilon below 0.000001 buys nothing but noise")
        return value

    @model_validator(mode="after")
    def _has_one_price(self) -> ReleaseSection:
        if self.epsilon is None and self.rho is None:
            raise ValueError("epsilon is missing: the privacy cost of one release")
        if self.epsilon is not None and self.rho is not None:
            raise ValueError("a release has one price: epsilon or rho")
        return self

    @property
    def price(self) -> Price:
        """Price of one release for a unit."""
        if self.rho is not None:
            return Price(self.rho, "rho")
        return Price(self.pure_price)

    @property
    def pure_price(self) -> Fraction:
        """The epsilon of a release that has one, as those of kinds without Gaussian noise do."""
        if self.epsilon is None:
            raise ValueError("this release has no pure loss")
        return self.epsilon

    @model_validator(mode="after")
    def _groups_are_public(self) -> ReleaseSection:
        if self.by and not self.groups and self.groups_from is None:
            raise ValueError(DATA_DEFINED)
        if self.groups and self.groups_from is not None:
            raise ValueError("groups are a list or come from a job: leave one out")
        if (self.groups or self.groups_from is not None) and not self.by:
            raise ValueError("groups need by: the columns that say a record's group")
        if len(set(self.by)) != len(self.by) or set(self.by) & (FACTS | self.published):
            raise ValueError("by names a column twice, or one that releases have themselves")
        for number, group in enumerate(self.groups, start=1):
            if len(group) != len(self.by):
                raise ValueError(
                    f"group {number} has {len(group)} values for {len(self.by)} columns"
                )
        if len(set(self.groups)) != len(self.groups):
            raise ValueError("a group is listed twice: it would be released twice at one price")
        if len(self.groups) > MOST_GROUPS:
            raise ValueError(f"there are at most {MOST_GROUPS} groups")
        return self

    @model_validator(mode="after")
    def _rows_are_of_groups(self) -> ReleaseSection:
        if self.rows_from is not None and self.expected_rows is None:
            raise ValueError("rows_from needs expected_rows, for the first releases")
        if self.group_rows and self.expected_rows is None:
            raise ValueError("group_rows needs expected_rows, for the groups it does not name")
        for name in self.group_rows:
            if self.groups and name not in map(",".join, self.groups):
                raise ValueError(f"group_rows names {name!r}, which is no group of this release")
        return self

    @property
    def asked_together(self) -> int:
        """How many batches one question is asked about."""
        return 1

    @property
    def cut_by(self) -> tuple[str, ...]:
        """Columns that cut a batch into groups."""
        return self.by

    def with_rows_of(self, group: Group) -> Self:
        """The section of one group: with the rows that it is expected to have."""
        rows = self.group_rows.get(",".join(group), self.expected_rows)
        return self.model_copy(update={"expected_rows": rows})

    def bounds_of(self, row: Row) -> tuple[float, float] | None:
        """The lowest and the highest value of a row of the release, if it has bounds."""
        return None

    def about_texts(self, *, of_units: bool) -> str | None:
        """Which texts of the data a release publishes, if it does.

        Args:
            of_units: Whether a column says whose records belong together.
        """
        return None

    def about_errors(self) -> str | None:
        """Coverage of published intervals and its assumptions, or the reason why there are none."""
        return None

    def auxiliary_share(self) -> Fraction:
        """The part of epsilon that buys what is not published, such as a learner's gradients."""
        return Fraction(0)


@dataclass(frozen=True, slots=True)
class Problem:
    """A contradiction within a section.

    Args:
        path: Keys from the section on.
        what: Is wrong.
        hint: What to do.
    """

    path: Path
    what: str
    hint: str


@dataclass(frozen=True, slots=True)
class CheckContext:
    """Context that a kind checks its section against.

    Args:
        dialect: Of the engine that reads expressions.
        neighbours: Relation of one record.
        rows: The most records of one unit that count.
        paths: Of the sources that are files, by name.
        columns: Columns of the rows of all other releases, by name.
    """

    dialect: Dialect
    neighbours: Neighbours
    rows: int
    paths: Mapping[str, str]
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def problem_of(self, text: str, path: Path) -> Problem | None:
        """Why an engine cannot take an expression, if it cannot."""
        try:
            expression(text, self.dialect)
        except ValueError as error:
            return Problem(path, str(error), "or leave it out")
        return None
