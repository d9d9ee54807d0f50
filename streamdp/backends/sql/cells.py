"""The rule that puts a value in its cell: one sequence of IEEE 754 operations for all engines.

A value is first one double, x: the nearest to an integer or decimal of any width; for a timestamp
its microseconds since 1970 UTC, as a double, divided by 10^6; for a date its days times 86400; for
a duration its microseconds, a month being 30 days, as a double, divided by 10^6. Null, NaN and the
infinities are dropped. With resolution N/D in lowest terms, each operation rounded to nearest even,

    cell = floor((clip(x) · D + N/2) / N)   clamped to [lower, upper].

`clip` keeps x a cell beyond both ends: it never changes a cell, and without it x · D could
overflow, which some engines answer with an error, which one record must not be able to cause.
Nothing can underflow either, since N/2 is added before the division. For integers the result is
the exact one while |x · D| < 2^52.

A group has a number too: that of the public group whose texts a record has, byte by byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from streamdp.backends.sql.dialect import SqlDialect
from streamdp.types import FloatArray, Grid, IntArray, Query

LARGEST = float(np.finfo(np.float64).max)
"""Values are finite if they lie between minus and plus this; the same test in all engines."""

SMALL = 2**15
"""Numbers of a SMALLINT lie from -SMALL up, and below SMALL."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The constants of the rule, as doubles.

    Args:
        lowest: One cell below the first.
        highest: One cell above the last.
        factor: D.
        half: N/2.
        divisor: N.
    """

    lowest: float
    highest: float
    factor: float
    half: float
    divisor: float

    def unclamped(self, value: float) -> int:
        """The rule without its ends."""
        return math.floor((value * self.factor + self.half) / self.divisor)


def steps(grid: Grid) -> Steps:
    """The constants for a grid."""
    resolution = grid.resolution
    return Steps(
        lowest=float((grid.lower - 1) * resolution),
        highest=float((grid.upper + 1) * resolution),
        factor=float(resolution.denominator),
        half=float(Fraction(resolution.numerator, 2)),
        divisor=float(resolution.numerator),
    )


def cells_of(values: FloatArray, grid: Grid) -> IntArray:
    """Cells of finite doubles, shape (n,) to (n,)."""
    by = steps(grid)
    clipped = np.clip(values, by.lowest, by.highest)
    cells = np.floor((clipped * by.factor + by.half) / by.divisor)
    return np.clip(cells, grid.lower, grid.upper).astype(np.int64)


def cell_sql(value: str, grid: Grid, literal: Callable[[float], str], kind: str) -> str:
    """SQL of the cell of a double; null if it is null, NaN or infinite.

    Where the ends of the grid are in the end cells by the rule itself, so is what lies beyond, and
    nothing need be clipped between: the operations are monotone. Engines take half as long so.

    Args:
        value: SQL of the double.
        grid: Of the cells.
        literal: SQL of a double in the engine's dialect.
        kind: Whole numbers that hold every cell.
    """
    by = steps(grid)
    low, high = (float(end * grid.resolution) for end in (grid.lower, grid.upper))
    beyond, below = (f"{value} <= {literal(LARGEST)}", f"{value} >= {literal(-LARGEST)}")
    if (by.unclamped(low), by.unclamped(high)) == (grid.lower, grid.upper):
        return (
            f"CASE WHEN {value} BETWEEN {literal(low)} AND {literal(high)}"
            f" THEN CAST({_scaled_sql(value, by, literal)} AS {kind})"
            f" WHEN {value} > {literal(high)} AND {beyond} THEN CAST({grid.upper} AS {kind})"
            f" WHEN {value} < {literal(low)} AND {below} THEN CAST({grid.lower} AS {kind}) END"
        )
    clipped = f"greatest({literal(by.lowest)}, least({literal(by.highest)}, {value}))"
    first, last = literal(float(grid.lower)), literal(float(grid.upper))
    cell = f"greatest({first}, least({last}, {_scaled_sql(clipped, by, literal)}))"
    return f"CASE WHEN {beyond} AND {below} THEN CAST({cell} AS {kind}) END"


def _scaled_sql(value: str, by: Steps, literal: Callable[[float], str]) -> str:
    """The rule without its ends; a factor of one changes no double."""
    times = "" if by.factor == 1.0 else f" * {literal(by.factor)}"
    parts = "" if by.divisor == 1.0 else f" / {literal(by.divisor)}"
    return f"floor(({value}{times} + {literal(by.half)}){parts})"


def key(dialect: SqlDialect, query: Query, column: int, kinds: Mapping[str, str]) -> str:
    """SQL of what a record's group is known by: a text, or its position in the list of texts.

    Args:
        dialect: Of the engine.
        query: With groups.
        column: Index in `query.by`.
        kinds: Types; that of the column under `group` and its index.
    """
    text = dialect.as_text(dialect.name(query.by[column]), kinds[f"group{column}"])
    return dialect.position(text, _texts(query, column)) or text


def public_groups(dialect: SqlDialect, query: Query) -> str:
    """SQL behind JOIN: from the columns `key` b_0, … of a record to its group's number, part."""
    lists = [_texts(query, column) for column in range(len(query.by))]
    looked_up = [dialect.position("x", texts) is not None for texts in lists]
    rows = []
    for part, group in enumerate(query.groups):
        keys = [
            str(texts.index(text)) if found else dialect.literal(text)
            for text, texts, found in zip(group, lists, looked_up, strict=True)
        ]
        rows.append([*keys, f"CAST({part} AS {dialect.whole})"])
    names = [f"g{i}" for i in range(len(query.by))]
    same = " AND ".join(f"b{i} = g{i}" for i in range(len(query.by)))
    return f"{dialect.rows(rows, 'public_group', [*names, 'part'])} ON {same}"


def _texts(query: Query, column: int) -> tuple[str, ...]:
    """Distinct texts of a column of the groups."""
    return tuple(dict.fromkeys(group[column] for group in query.groups))
