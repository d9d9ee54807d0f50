"""Typed questions asked of a batch, and the statistics that answer them.

A question has cell counts, tables of counts over public axes, clipped sums, or the keys that a
batch holds for its answer; `Query` is any of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from streamdp.errors import ConfigurationError
from streamdp.types.batches import Batch, Grid
from streamdp.types.forms import IntArray

MOST_ROWS_PER_UNIT = 1000
"""Keeps the arithmetic of the choice within 64 bits for 10^11 records of one unit."""


@dataclass(frozen=True, slots=True)
class UnitBound:
    """At most so many records of one unit count in a batch, in all groups together.

    A unit with n > rows records counts `rows` of them, evenly spaced through its own records in
    order of cells from a start that a hash of key and unit decides: each has the chance rows/n.
    The choice looks at nothing but the unit and its own records, so one unit more changes at most
    `rows` counts. Records without a unit (null) never count: nobody could bound them.

    Args:
        column: Whose records belong together; of any scalar type.
        rows: The most that count, 1 to `MOST_ROWS_PER_UNIT`.
        key: Public; another key makes another choice.
    """

    column: str
    rows: int
    key: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.rows <= MOST_ROWS_PER_UNIT:
            raise ConfigurationError(f"rows per unit must be 1 to {MOST_ROWS_PER_UNIT}")

    def of(self, batch: Batch) -> UnitBound:
        """A question with a choice of its own for a batch."""
        return replace(self, key=f"{batch.source}/{batch.key}")


@dataclass(frozen=True, slots=True)
class CellQuery:
    """The one question asked of a batch: how many records fall in each cell of a column.

    Args:
        column: Name of the column, or of what `expression` derives.
        grid: Its cells.
        expression: SQL of one record in the engine's own words, asked in place of the column.
        where: SQL condition on one record; where it is not true the record does not count.
        bound: How many records of one unit count.
        by: Columns that cut the batch into groups, compared as text.
        groups: The public groups, one text for each column of `by`; records of others do not
            count. Without `by` there is the one group that holds all.
        rows: Records that a group is expected to have, public; 0 where nobody says. How an engine
            counts may depend on it, what it counts does not: it is no part of the question.
    """

    column: str
    grid: Grid
    expression: str | None = None
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)
    rows: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        """Refuse a repeated group, whose records would count twice."""
        if len(set(self.groups)) < len(self.groups):
            raise ConfigurationError("a group is listed twice")
        if any(len(group) != len(self.by) for group in self.groups):
            raise ConfigurationError("each group needs one value for each column of by")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CellCounts:
    """The statistic of a batch: sorted occupied cells and how many records each holds.

    Private: it never leaves the engine, and its repr shows nothing.

    Args:
        cells: Occupied cells, strictly increasing, shape (d,).
        counts: Positive numbers of records, shape (d,).
    """

    cells: IntArray
    counts: IntArray

    def __repr__(self) -> str:
        return "CellCounts(<private>)"


Key = tuple[str, ...]
"""One text for each column of a key."""

MOST_LONGEST = 1024
"""Bytes of one text of a key: engines compare so many without a doubt."""

NO_GROUPS: tuple[tuple[str, ...], ...] = ((),)


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """How many units hold each key: of known keys all, of others those that `least` or more hold.

    A key is the texts of some columns, compared byte by byte, column by column. A record whose key
    has a text that is null, empty or longer than `longest` does not count. Without a bound each
    record is a unit of its own. With one of k, a unit counts once for each of k of its keys at
    most: those that are not known come first, then a hash of batch, unit and key decides.

    Args:
        columns: Of the key; at least one.
        known: Public keys.
        least: The fewest units of a key that is not known, 1 or more.
        longest: Bytes of one text.
        where: SQL condition on one record; where it is not true the record does not count.
        bound: Whose records belong together, and for how many keys a unit counts.

    Raises:
        ConfigurationError: A known key is listed twice, or has not one text a column.
    """

    columns: tuple[str, ...]
    known: tuple[Key, ...]
    least: int
    longest: int
    where: str | None = None
    bound: UnitBound | None = None

    def __post_init__(self) -> None:
        if not self.columns or self.least < 1 or not 1 <= self.longest <= MOST_LONGEST:
            raise ConfigurationError(
                f"keys need a column, at least one unit, and texts of 1 to {MOST_LONGEST} bytes"
            )
        if len(set(self.known)) < len(self.known):
            raise ConfigurationError("a known key is listed twice")
        if any(len(key) != len(self.columns) for key in self.known):
            raise ConfigurationError("each known key needs one text for each column")

    @property
    def by(self) -> tuple[str, ...]:
        """None: keys are found, and no public groups."""
        return ()

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The one group that holds all."""
        return NO_GROUPS


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class KeyCounts:
    """Keys and how many units hold each. Private, keys and numbers; its repr shows nothing.

    Args:
        units: Positive numbers by key; known keys that nobody holds are left out.
    """

    units: Mapping[Key, int]

    def __repr__(self) -> str:
        return "KeyCounts(<private>)"


MOST_CODES = 2**62
"""Combinations of cells and groups, numbered by one integer."""

LARGEST_TERM = 2**52
"""Largest term of one record in a sum: sums of 2^35 records stay exact in every engine."""


Part = Literal["hour", "weekday", "month"]


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of a time, as clocks of a zone show it; a date is a day in any zone.

    Args:
        part: Hour (0 to 23), weekday (1, Monday, to 7) or month (1 to 12).
        zone: Whose clocks.
    """

    part: Part
    zone: str = "UTC"

    @property
    def numbers(self) -> range:
        """The values that it can have."""
        return {"hour": range(24), "weekday": range(1, 8), "month": range(1, 13)}[self.part]

    @property
    def cuts(self) -> tuple[float, ...]:
        """Cuts between these values."""
        return tuple(map(float, self.numbers[1:]))


@dataclass(frozen=True, slots=True)
class Dimension:
    """A public axis of a table: the cells that a value of a record can fall in.

    The cells are those of `values` or of `cuts` in order, then `other`, then nulls if they have a
    cell. A record whose value has no cell counts in no marginal with this dimension.

    Args:
        name: Column, or what `sql` derives.
        sql: SQL of one record in the engine's dialect, in place of the column.
        values: Texts, one a cell, compared byte by byte with the value cast to text.
        cuts: Increasing numbers c_1 … c_m: cell i holds c_i <= x < c_(i+1), with c_0 = -infinity
            and c_(m+1) = infinity. NaN and the infinities are nulls.
        other: Whether a text that is not listed has a cell.
        nulls: Where a null counts: in a cell of its own, in `other`, or nowhere.
        clock: Part of the value, which is a time; `cuts` are between what it shows.
    """

    name: str
    sql: str | None = None
    values: tuple[str, ...] | None = None
    cuts: tuple[float, ...] | None = None
    other: bool = False
    nulls: Literal["cell", "other", "drop"] = "drop"
    clock: TimePart | None = None

    def __post_init__(self) -> None:
        if (self.values is None) == (self.cuts is None):
            raise ConfigurationError(f"dimension {self.name!r} needs either values or cuts")
        if len(set(self.values or ())) < len(self.values or ()):
            raise ConfigurationError(f"dimension {self.name!r} lists a value twice")
        cuts = self.cuts or ()
        if not all(map(math.isfinite, cuts)) or any(high <= low for low, high in pairwise(cuts)):
            raise ConfigurationError(f"the cuts of dimension {self.name!r} must be increasing")
        if self.cuts is not None and self.other:
            raise ConfigurationError(f"dimension {self.name!r} has cuts: every number has a cell")
        if self.nulls == "other" and not self.other:
            raise ConfigurationError(f"dimension {self.name!r} has no cell 'other' for its nulls")
        if self.size == 0:
            raise ConfigurationError(f"dimension {self.name!r} has no cells")

    @property
    def listed(self) -> int:
        """How many cells `values` or `cuts` make."""
        return len(self.values) if self.values is not None else len(self.cuts or ()) + 1

    @property
    def size(self) -> int:
        """How many cells it has."""
        return self.listed + self.other + (self.nulls == "cell")

    @property
    def null_cell(self) -> int | None:
        """Cell of a null; None if it has none."""
        return {"cell": self.size - 1, "other": self.listed, "drop": None}[self.nulls]


@dataclass(frozen=True, slots=True)
class TableQuery:
    """How many records fall in each cell of some marginals of a table of public axes.

    Args:
        dimensions: The axes.
        marginals: For each, the axes it keeps by their index, in increasing order; none counts
            all records.
        where: SQL condition on one record; where it is not true the record does not count.
        bound: How many records of one unit count.
        by: Columns that cut the batch into groups, compared as text.
        groups: The public groups, one text for each column of `by`; records of others do not
            count. Without `by` there is the one group that holds all.
    """

    dimensions: tuple[Dimension, ...]
    marginals: tuple[tuple[int, ...], ...] = ((),)
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)

    def __post_init__(self) -> None:
        require_groups(self.by, self.groups)
        for marginal in self.marginals:
            if list(marginal) != sorted(set(marginal) & set(range(len(self.dimensions)))):
                raise ConfigurationError("a marginal names its dimensions once, in order")

    def shape(self, marginal: tuple[int, ...]) -> tuple[int, ...]:
        """Cells of each axis of a marginal."""
        return tuple(self.dimensions[axis].size for axis in marginal)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableCounts:
    """The marginals of a table. Private: it never leaves the engine, and its repr shows nothing.

    Args:
        marginals: One dense array a marginal of the query, with its axes; of units one, with an
            axis of their cells.
    """

    marginals: tuple[IntArray, ...]

    def __repr__(self) -> str:
        return "TableCounts(<private>)"


@dataclass(frozen=True, slots=True)
class Term:
    """An integer of each record that is summed: (cell - centre), or its square.

    Values out of the grid are in its end cells, so the grid is the clip. A record whose value is
    null, NaN or infinite adds nothing.

    Args:
        name: Column, or what `sql` derives.
        grid: Public cells; a value falls in one as in `CellQuery`.
        centre: The cell that adds nothing.
        sql: SQL of one record in the engine's dialect, in place of the column.
        square: Whether the square is summed.
    """

    name: str
    grid: Grid
    centre: int = 0
    sql: str | None = None
    square: bool = False

    def __post_init__(self) -> None:
        if self.grid.upper < self.grid.lower or self.size > LARGEST_TERM:
            raise ConfigurationError(f"{self.name!r} cannot be summed over so wide a grid")

    @property
    def span(self) -> tuple[int, int]:
        """The least and the most that a record adds."""
        low, high = self.grid.lower - self.centre, self.grid.upper - self.centre
        if not self.square:
            return low, high
        return (0 if low <= 0 <= high else min(low**2, high**2)), max(low**2, high**2)

    @property
    def size(self) -> int:
        """The most that a record changes the sum, up or down: its sensitivity (add/remove)."""
        return max(map(abs, self.span))


@dataclass(frozen=True, slots=True)
class SumQuery:
    """Sums of clipped integers over all records of each group.

    Args:
        terms: What is summed.
        where: As in `TableQuery`, and so the others.
        bound: How many records of one unit count.
        by: Columns that cut the batch into groups.
        groups: The public groups.
    """

    terms: tuple[Term, ...]
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)

    def __post_init__(self) -> None:
        require_groups(self.by, self.groups)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Sums:
    """One sum a term. Private: it never leaves the engine, and its repr shows nothing.

    Args:
        values: Exact.
    """

    values: tuple[int, ...]

    def __repr__(self) -> str:
        return "Sums(<private>)"


@dataclass(frozen=True, slots=True)
class UnitQuery:
    """How many units there are in each group, or how many that have so many records.

    Without a bound each record is a unit of its own. With one of k, a unit counts in k of its
    groups at most, which are chosen as its records are in other questions; of how many records it
    has, all are counted. Units without a name (null) never count.

    Args:
        cuts: Increasing whole numbers above 1: cell i holds units of c_i to c_(i+1) - 1 records,
            with c_0 = 1 and no end for the last. Without cuts all units are in one cell.
        where: As in `TableQuery`, and so the others.
        bound: Who has the records, and in how many groups a unit counts.
        by: Columns that cut the batch into groups; none where there are cuts.
        groups: The public groups.
    """

    cuts: tuple[int, ...] = ()
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)

    def __post_init__(self) -> None:
        require_groups(self.by, self.groups)
        if any(high <= low for low, high in pairwise((1, *self.cuts))):
            raise ConfigurationError("the cuts of records a unit must increase from 2 on")
        if self.cuts and self.by:
            raise ConfigurationError("records of a unit are counted over all groups together")

    @property
    def cells(self) -> int:
        """How many cells a group has."""
        return len(self.cuts) + 1


@dataclass(frozen=True, slots=True)
class CompoundQuery:
    """Several questions about the same records, answered from one scan.

    They share condition, groups and unit bound. Which of a unit's records count is chosen once,
    for all parts together: a unit has at most `bound.rows` records in any part, the same ones.
    Parts that count units look at all of its records, and say themselves what one unit changes.

    Args:
        parts: At least one.
    """

    parts: tuple[TableQuery | SumQuery | UnitQuery, ...]

    def __post_init__(self) -> None:
        shared = {(part.where, part.bound, part.by, part.groups) for part in self.parts}
        if len(shared) != 1:
            raise ConfigurationError("parts of one question share where, bound, by and groups")

    @property
    def where(self) -> str | None:
        """The condition of all parts."""
        return self.parts[0].where

    @property
    def bound(self) -> UnitBound | None:
        """The unit bound of all parts together."""
        return self.parts[0].bound

    @property
    def by(self) -> tuple[str, ...]:
        """Columns that cut the batch into groups."""
        return self.parts[0].by

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The public groups."""
        return self.parts[0].groups


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CompoundAnswer:
    """Answers of the parts, in their order. Private, and its repr shows nothing."""

    parts: tuple[TableCounts | Sums, ...]

    def __repr__(self) -> str:
        return "CompoundAnswer(<private>)"


def require_groups(by: tuple[str, ...], groups: tuple[tuple[str, ...], ...]) -> None:
    """Refuse a group that is listed twice, whose records would count twice.

    Raises:
        ConfigurationError: So it is, or a group has not one value a column.
    """
    if len(set(groups)) < len(groups):
        raise ConfigurationError("a group is listed twice")
    if any(len(group) != len(by) for group in groups):
        raise ConfigurationError("each group needs one value for each column of by")


Query = CellQuery | TableQuery | SumQuery | UnitQuery | CompoundQuery | KeyQuery
"""A typed question to a batch; each has `where`, `bound`, `by` and `groups`."""

Statistic = CellCounts | TableCounts | Sums | CompoundAnswer | KeyCounts
"""The answer to a query; one with `by` is answered by a tuple of these, one a group."""


def with_bound(query: Query, bound: UnitBound | None) -> Query:
    """A question where at most so many records of one unit count."""
    if isinstance(query, CompoundQuery):
        return CompoundQuery(tuple(replace(part, bound=bound) for part in query.parts))
    return replace(query, bound=bound)


def with_groups(query: Query, by: tuple[str, ...], groups: tuple[tuple[str, ...], ...]) -> Query:
    """A question of each public group; keys are found in all of a batch and have none."""
    if isinstance(query, KeyQuery):
        raise TypeError("keys are found, not asked of public groups")
    if isinstance(query, CompoundQuery):
        return CompoundQuery(tuple(replace(part, by=by, groups=groups) for part in query.parts))
    return replace(query, by=by, groups=groups)
