"""At most k records of a unit, chosen inside the engine.

Of a unit's n > k records in order of codes, number j (from 1) counts if floor(j·k/n + r) rises
with it, r in [0, 1) being the unit's start: a hash of key and unit. With r = s/PARTS, in integers,

    (j·k·PARTS + n·s) mod (n·PARTS) < k·PARTS.

Records of one code are alike, so nothing hangs on an order within them, and every engine finds the
same counts. Over starts each record has the chance k/n; the first or the nearest would be biased.

Privacy: floor(n·k/n + r) - floor(r) = k, so exactly min(k, n) records of a unit count, and which
depends on that unit and its records alone. So one unit more adds min(k, n) counts and takes none
away. For this a unit must be known by itself, not by a hash: where two units shared one, a record
of one could push out a record of the other, and one unit more would change up to 2k counts. Two
units that share a start lose nothing by it. The form of the question hangs on engine and k alone,
never on the records, which show in the engine's time only, as their number does.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamdp.backends.sql.dialect import SqlDialect
from streamdp.types import UnitBound

PARTS = 2**16
"""A unit's starting point is one of so many, evenly spaced."""

DIGITS = 4
"""Hexadecimal digits of the hash that choose it: PARTS is 16 to this power."""


def bounded(
    dialect: SqlDialect, bound: UnitBound, kind: str, coded: str, columns: Sequence[str] = ("code",)
) -> str:
    """SQL whose rows are (codes…, records), of at most `bound.rows` records of a unit.

    Args:
        dialect: Of the engine.
        bound: How many, of whom.
        kind: The engine's type of a unit.
        coded: SQL whose rows are (codes…, u), u a unit that is not null.
        columns: Names of the codes: integers, or null, which comes first. Records are in order of
            the first, then the next.
    """
    form = _in_one_sort if dialect.keeps_order and bound.rows == 1 else _in_partitions
    unit = f"coalesce({dialect.canonical('u', kind)}, '')"  # without a start nothing is taken off
    start = dialect.start(f"concat({dialect.literal(bound.key + ':')}, {unit})")
    return form(dialect, bound.rows, start, coded, columns)


def _chosen(rows: int, j: str) -> str:
    step = rows * PARTS
    return f"({j} * {step} + n * start) % (n * {PARTS}) < {step}"


def _in_one_sort(
    dialect: SqlDialect, rows: int, start: str, coded: str, columns: Sequence[str]
) -> str:
    """SQL that sorts all records once by unit and code, for a bound of one record.

    For k = 1, where all but the single records must be put in order anyway: a sort and two
    functions of neighbouring rows take 0.5 to 0.9 of the time of a window over partitions. That the
    rows stand as sorted is DuckDB's promise (https://duckdb.org/docs/stable/sql/dialect/
    order_preservation), and checked: each unit is not before the one above it and begins behind
    it, or the question fails. So equal units stand together, and are bounded together.
    """
    codes = ", ".join(columns)
    unsorted = "error('rows are not as sorted')"
    return (
        f"WITH sorted AS MATERIALIZED (SELECT u, {codes}, place,"
        f" CASE WHEN before > u THEN {unsorted} ELSE before IS DISTINCT FROM u END AS fresh"
        f" FROM (SELECT u, {codes}, row_number() OVER () AS place, lag(u) OVER () AS before"
        f" FROM (SELECT u, {codes} FROM ({coded}) AS coded"
        f" ORDER BY u, {_nulls_first(dialect, columns)}) AS ordered) AS placed),"
        " units AS (SELECT u, place - 1 AS above, coalesce(lead(place) OVER (),"
        " (SELECT count(*) + 1 FROM sorted)) - place AS n FROM sorted WHERE fresh),"
        f" large AS (SELECT u, above, n, {start} AS start FROM units"
        f" WHERE CASE WHEN n < 1 THEN {unsorted} ELSE n > {rows} END)"
        f" SELECT {codes}, count(*) AS records FROM sorted LEFT JOIN large ON sorted.u = large.u"
        f" WHERE n IS NULL OR {_chosen(rows, '(place - above)')} GROUP BY {codes}"
    )


def _in_partitions(
    dialect: SqlDialect, rows: int, start: str, coded: str, columns: Sequence[str]
) -> str:
    """All records are counted, and those of large units that are not chosen taken off again.

    Units with k records or fewer, most where the bound is well chosen, are not hashed nor sorted.
    """
    codes = ", ".join(columns)
    spared = f"NOT ({_chosen(rows, 'j')})"
    return (
        f"WITH coded AS ({coded}),"
        f" large AS (SELECT u, count(*) AS n FROM coded GROUP BY u HAVING count(*) > {rows}),"
        f" started AS (SELECT u, n, {start} AS start FROM large),"
        f" numbered AS (SELECT {codes}, n, start,"
        f" row_number() OVER (PARTITION BY coded.u ORDER BY {_nulls_first(dialect, columns)}) AS j"
        " FROM coded JOIN started ON coded.u = started.u),"
        f" tallied AS (SELECT {codes}, count(*) AS c FROM coded GROUP BY {codes} UNION ALL"
        f" SELECT {codes}, -count(*) AS c FROM numbered WHERE {spared} GROUP BY {codes})"
        f" SELECT {codes}, CAST(sum(c) AS {dialect.whole}) AS records FROM tallied"
        f" GROUP BY {codes} HAVING sum(c) > 0"
    )


def _nulls_first(dialect: SqlDialect, columns: Sequence[str]) -> str:
    return ", ".join(f"{column}{dialect.nulls_first}" for column in columns)
