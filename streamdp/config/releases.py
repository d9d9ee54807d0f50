"""The section `releases`: what is published of each batch."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from streamdp.config.expressions import expression
from streamdp.config.gates import GateTerms
from streamdp.config.priors import Guess, PriorSection
from streamdp.config.schedules import Schedule
from streamdp.config.section import Section
from streamdp.config.values import PositiveRational, Rational

MOST_CELLS = 2**46
"""Cells lie within plus or minus this, so that fine points stay exact integers of a float."""

UNBOUNDED_CELLS = 2**40
"""Range of cells of a column without bounds."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,62}$")]

NAMED_QUANTILES = {
    "median": [Fraction(1, 2)],
    "quartiles": [Fraction(i, 4) for i in range(1, 4)],
    "deciles": [Fraction(i, 10) for i in range(1, 10)],
}


MOST_GROUPS = 1000

PUBLISHED = frozenset(
    {"release_id", "row", "job", "batch", "window_start", "window_end", "kind", "epsilon"}
    | {"released_at", "quantile", "value", "rank_error_95"}
    | {"smoothed", "smoothed_lower", "smoothed_upper"}
)
"""Columns of a release, which a group's columns would hide."""

DATA_DEFINED = (
    "groups must be a public list: groups found in the data would tell who is there, and no private"
    " selection of keys is configured"
)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | str):
        return str(value)
    raise ValueError("a group's value is text, a whole number, or true or false")


Group = tuple[Annotated[str, BeforeValidator(_as_text), WithJsonSchema({})], ...]


class Mechanism(Section):
    """How the quantiles are drawn; `mechanism: auto` is the choice of a public table."""

    branching: int = Field(default=2, ge=2, le=1000, description="Parts a node cuts its region in.")
    node: Literal["independent", "joint"] = "independent"
    restriction: Literal["conditional", "edge"] = "conditional"
    level_power: int = Field(default=0, ge=0, le=10, description="Level l gets (l + 1)^-p.")
    shapes: bool = Field(default=False, description="With joint nodes: quantiles move together.")

    @model_validator(mode="after")
    def _hangs_together(self) -> Mechanism:
        if self.shapes and self.node != "joint":
            raise ValueError("shapes need node: joint")
        if self.restriction == "edge" and self.node == "joint":
            raise ValueError("joint nodes are conditional: leave restriction out")
        return self


class Derived(Section):
    """A number made of the columns of one record."""

    sql: str = Field(description="SQL expression, in DuckDB's dialect whatever the engine.")

    @field_validator("sql")
    @classmethod
    def _of_one_record(cls, value: str) -> str:
        expression(value)
        return value


class Release(Section):
    """Quantiles of one column of every batch of one source."""

    kind: Literal["quantiles"]
    source: str
    column: Annotated[str, Field(min_length=1)] | Derived
    where: str | None = Field(
        default=None, description="SQL condition on one record; only those it is true of count."
    )
    by: tuple[str, ...] = Field(default=(), description="Columns that say a record's group.")
    groups: tuple[Group, ...] = Field(
        default=(), description="The public groups: a list, or for several columns one of lists."
    )
    quantiles: tuple[Rational, ...] = Field(description="Or median, quartiles, deciles.")
    resolution: PositiveRational = Field(description="Width of a cell; results are multiples.")
    bounds: tuple[Rational, Rational] | None = Field(
        default=None, description="Values outside count as the bound."
    )
    guess: Guess | None = None
    expected_rows: int | None = Field(
        default=None,
        ge=1,
        le=10**10,
        description="About how many records a batch has (with groups: each of them), a public"
        " number: it chooses the mechanism and says what accuracy to expect.",
    )
    epsilon: PositiveRational = Field(description="Price of one release.")
    mechanism: Literal["auto"] | Mechanism = "auto"
    schedule: Schedule = Schedule(on="batch")
    prior: PriorSection = PriorSection()
    gate: GateTerms | None = Field(
        default=None, description="Release a batch only when this private test says so."
    )
    sinks: tuple[str, ...] = ()

    @field_validator("where")
    @classmethod
    def _of_one_record(cls, value: str | None) -> str | None:
        if value is not None:
            expression(value)
        return value

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

    @field_validator("quantiles", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in NAMED_QUANTILES:
                raise ValueError(f"write a list, or one of {', '.join(NAMED_QUANTILES)}")
            return NAMED_QUANTILES[value]
        return value

    @field_validator("quantiles")
    @classmethod
    def _in_order(cls, value: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        if not 1 <= len(value) <= 999:
            raise ValueError("there must be 1 to 999 quantiles")
        for index, quantile in enumerate(value):
            if not 0 < quantile < 1:
                raise ValueError(f"number {index + 1} is not between 0 and 1")
        for index, (one, following) in enumerate(pairwise(value), start=2):
            if following <= one:
                raise ValueError(f"number {index} is not above the one before it")
        if math.lcm(*(quantile.denominator for quantile in value)) > 10_000:
            raise ValueError("the quantiles must be multiples of one fraction 1/d, d at most 10000")
        return value

    @field_validator("epsilon")
    @classmethod
    def _not_tiny(cls, value: Fraction) -> Fraction:
        if value < Fraction(1, 10**6):
            raise ValueError("an epsilon below 0.000001 buys nothing but noise")
        return value

    @model_validator(mode="after")
    def _groups_are_public(self) -> Release:
        if self.by and not self.groups:
            raise ValueError(DATA_DEFINED)
        if self.groups and not self.by:
            raise ValueError("groups need by: the columns that say a record's group")
        if len(set(self.by)) != len(self.by) or set(self.by) & PUBLISHED:
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
    def _bounds_and_guess(self) -> Release:
        if self.bounds is None and self.guess is None:
            raise ValueError("give bounds or a guess: without either there is no prior")
        if self.bounds is not None and self.bounds[0] >= self.bounds[1]:
            raise ValueError("the lower bound must be below the upper")
        if isinstance(self.mechanism, Mechanism):
            parts = len(self.quantiles) + 1
            if self.mechanism.branching > parts:
                raise ValueError(f"branching is at most {parts}, the number of quantiles plus one")
        if self.prior.learner == "experts" and self.expected_rows is None:
            raise ValueError("the learner experts needs expected_rows: it weighs noise by them")
        if self.learner() == "experts" and self._joint():
            raise ValueError(
                "the learner experts models independent nodes: leave mechanism on auto, or set"
                " prior.learner to none"
            )
        first, last = self.cells()
        if max(abs(first), abs(last)) > MOST_CELLS:
            raise ValueError(
                "bounds / resolution is beyond 2^46 cells: make the resolution coarser"
            )
        return self

    def column_name(self) -> str:
        """The column, or the expression in its place."""
        return self.column.sql if isinstance(self.column, Derived) else self.column

    def learner(self) -> Literal["experts", "online-gradient", "last-release", "none"]:
        """The configured learner, or the default."""
        if self.prior.learner is not None:
            return self.prior.learner
        if self._joint():
            return "none"
        return "experts" if self.expected_rows else "last-release"

    def gradient_share(self) -> Fraction:
        """The part of epsilon that buys a gradient, of which only one learner makes use."""
        return (self.learner() == "online-gradient" and self.prior.private_gradient) or Fraction(0)

    def _joint(self) -> bool:
        return self.mechanism != "auto" and self.mechanism.node == "joint"

    def cells(self) -> tuple[int, int]:
        """First and last cell."""
        if self.bounds is None:
            return -UNBOUNDED_CELLS, UNBOUNDED_CELLS
        low, high = (math.floor(bound / self.resolution + Fraction(1, 2)) for bound in self.bounds)
        return low, high
