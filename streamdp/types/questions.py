"""The one question asked of a batch, and the statistic that answers it."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """

    column: str
    grid: Grid
    expression: str | None = None
    where: str | None = None
    bound: UnitBound | None = None
    by: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ((),)

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
