"""Expressions in DuckDB: what may be moved out of TRY, what a condition is, what a name means."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.instance import OPTIMIZERS, Instance
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.sources.query import table_query
from streamdp.types import Batch, CellQuery, Grid, Query, UnitBound

GRID = Grid(Fraction(1), -100, 100)
BATCH = Batch("s", "b")


def counted(backend: DuckDBBackend, query: Query) -> int:
    backend.check(query, BATCH)
    return int(backend.answer(query, BATCH).counts.sum())


def test_only_optimizers_on_the_list_are_on() -> None:
    connection = Instance().connection(None)
    (off,) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    assert set(off[0].split(",")) == {name for (name,) in known} - OPTIMIZERS


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("name", "VARCHAR"),
        ("day", "DATE"),
        ("qty", "INTEGER"),
        ("late AND qty", "INTEGER"),
        ("NOT (late OR name)", "VARCHAR"),
        ("CASE WHEN qty THEN late ELSE late END", "INTEGER"),
        ("coalesce(qty, 1)", "INTEGER"),
        ("CASE WHEN late THEN 1 END", "INTEGER"),
    ],
)
def test_what_is_neither_true_nor_false_is_refused(tmp_path: Path, where: str, kind: str) -> None:
    path = tmp_path / "r.parquet"
    columns = "'true' AS name, DATE '2024-01-01' AS day, 1::INTEGER AS qty, true AS late, 7.0 AS x"
    duckdb.execute(f"COPY (SELECT {columns}) TO '{path}'")
    query = CellQuery("x", GRID, where=expression(where))
    with pytest.raises(SourceError, match=f"has type {kind}, wanted is true or false") as raised:
        DuckDBBackend(str(path), "parquet").check(query, BATCH)
    assert "compare it, as in" in str(raised.value)


@pytest.mark.parametrize(
    "where",
    [
        "day < '9999-99-99'",
        "at <> '31.12.2024'",
        "late = 'ja'",
        "qty IN (1, 'x')",
        "qty BETWEEN 1 AND 'z' OR late",
        "wide < 99999999999999999999999999999999999",
        "CASE WHEN 'x' > qty THEN late ELSE late END",
    ],
)
def test_a_constant_of_another_type_is_refused(tmp_path: Path, where: str) -> None:
    """Within TRY it is null beside each record, and none counts, without a word."""
    path = tmp_path / "r.parquet"
    columns = "DATE '2024-01-01' AS day, TIMESTAMP '2024-01-01' AS at, 1::INTEGER AS qty"
    columns += ", true AS late, 7.0 AS x, 1::DECIMAL(38, 10) AS wide"
    duckdb.execute(f"COPY (SELECT {columns}) TO '{path}'")
    backend = DuckDBBackend(str(path), "parquet")
    with pytest.raises(SourceError, match="a constant for source s is compared with"):
        backend.check(CellQuery("x", GRID, where=expression(where)), BATCH)
    read = "day < '9999-12-31' AND at <> '2024-12-31' AND late = 'yes' AND qty IN (1, '7', 10e10)"
    assert counted(backend, CellQuery("x", GRID, where=expression(read))) == 1


def test_a_condition_of_a_query_is_true_or_false_too(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'true' AS name, 7.0 AS x")
    for text in ("SELECT x FROM t WHERE name", "SELECT CASE WHEN name THEN x END AS x FROM t"):
        made = table_query(text)
        relation = Relation(made.table, "", made.columns, made.where, made.named)
        backend = DuckDBBackend(str(path), "duckdb", relation=relation)
        with pytest.raises(SourceError, match="wanted is true or false"):
            backend.check(CellQuery("x", GRID), BATCH)


@pytest.mark.parametrize("table", ["t", "main.t", "records.main.t"])
def test_macros_of_a_database_are_no_functions_of_expressions(tmp_path: Path, table: str) -> None:
    """They could look at other records, and take the place of DuckDB's own."""
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT unnest([1.0, 2.0, 3.0]) AS x, 'a' AS name")
        for name in ("floor", "lower", "abs"):
            connection.execute(f"CREATE MACRO {name}(v) AS (SELECT max(x) + 200 FROM t)")
        connection.execute("CREATE MACRO greatest(v, w) AS (SELECT max(x) FROM t)")
    backend = DuckDBBackend(str(path), "duckdb", relation=Relation(table))
    query = CellQuery("x", GRID, expression("abs(x)"), expression("lower(name) = 'a'"))
    assert counted(backend, query) == 3
    answer = backend.answer(query, BATCH)
    assert answer.cells.tolist() == [1, 2, 3]


def test_a_view_is_read_by_what_its_database_says(tmp_path: Path) -> None:
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1.0 AS x")
        connection.execute("CREATE VIEW v AS SELECT x + 1 AS x FROM t")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE VIEW other.w AS SELECT x FROM v")
    for table in ("v", "other.w"):
        backend = DuckDBBackend(str(path), "duckdb", relation=Relation(table))
        assert counted(backend, CellQuery("x", GRID)) == 1


@pytest.mark.thinned(2)
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("ticks", [-(2**63), -(2**63) + 2, 2**63 - 2, 2**62])
def test_times_that_are_none_count_nowhere(tmp_path: Path, unit: str, ticks: int) -> None:
    """A table may hold any 64 bits as a time; DuckDB cannot cast all of them."""
    path = tmp_path / "r.duckdb"
    kind = pa.timestamp(unit)
    scale = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    times = pa.array([1_704_110_400 * scale, ticks], pa.int64()).view(kind)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", pa.table({"at": times, "x": [7.0, 7.0]}))
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    start = 1_704_067_200
    day = Batch("s", "b", start, start + 86_400)
    plain = CellQuery("x", GRID, where=expression("length(CAST(at AS VARCHAR)) > 0"))
    named = replace(plain, where=expression("CAST(at AS TIMESTAMPTZ) > '2024-01-01'"))
    unit_bound = CellQuery("x", GRID, bound=UnitBound("at", 1))
    for time_column, batch in ((None, BATCH), ("at", day)):
        backend = DuckDBBackend(str(path), "duckdb", time_column, relation=Relation("t"))
        for query in (plain, named, unit_bound, CellQuery("at", GRID)):
            backend.check(query, batch)
            assert backend.answer(query, batch).counts.sum() in (1, 2)


@pytest.mark.parametrize("kind", ["TIMESTAMP_S", "TIMESTAMP_MS"])
@pytest.mark.parametrize("far", ["9999-12-31", "0001-01-01"])
def test_times_without_nanoseconds_count(tmp_path: Path, kind: str, far: str) -> None:
    """DuckDB casts times in seconds to nanoseconds by itself, which end in 2262."""
    path = tmp_path / "r.duckdb"
    with duckdb.connect(str(path)) as connection:
        days = f"unnest(['2024-01-01', '{far}', '{far}'])"
        connection.execute(f"CREATE TABLE t AS SELECT CAST({days} AS {kind}) AS at, 7.0 AS x")
    backend = DuckDBBackend(str(path), "duckdb", relation=Relation("t"))
    assert counted(backend, CellQuery("at", GRID)) == 3
    assert counted(backend, CellQuery("d", GRID, expression("coalesce(at, at)"))) == 3
    assert counted(backend, CellQuery("x", GRID, bound=UnitBound("at", 1))) == 2


def test_windows_of_times_skip_what_is_not_in_them(tmp_path: Path) -> None:
    """Even where an expression names the time: row groups of other days are not read."""
    path = tmp_path / "r.parquet"
    times = pa.array(range(1_704_067_200, 1_704_067_200 + 400_000), pa.int64()).cast(
        pa.timestamp("s")
    )
    table = pa.table({"at": times.cast(pa.timestamp("us")), "x": [1.0] * 400_000})
    pq.write_table(table, path, row_group_size=50_000)
    day = Batch("s", "b", 1_704_067_200, 1_704_067_200 + 86_400)
    backend = DuckDBBackend(str(path), "parquet", "at")
    query = CellQuery("x", GRID, where=expression("hour(at) = 3"))
    backend.check(query, day)
    assert backend.answer(query, day).counts.sum() == 3_600
    table_sql = backend.table(query, day)
    read, within = backend.read(query, table_sql, "\"at\" < TIMESTAMP '2024-01-02'")
    plan = backend._connect().execute(f"EXPLAIN SELECT x FROM {read} WHERE {within}").fetchall()
    scan = plan[0][1].split("PARQUET")[-1]
    assert "2024-01-02" in scan, plan[0][1]


def test_a_time_that_is_none_may_be_left_out_by_a_condition(tmp_path: Path) -> None:
    """What casts the times that are left must not look at the one that is not."""
    path = tmp_path / "r.parquet"
    times = pa.array([1_704_110_400_000_000, 0, -(2**63), 7], pa.int64()).view(pa.timestamp("us"))
    late = [True, True, False, True]
    pq.write_table(pa.table({"at": times, "x": [7.0] * 4, "late": late}), path)
    value = expression("CAST(CAST(at AS TIMESTAMPTZ) AS TIMESTAMP)")
    query = CellQuery("e", GRID, value, expression("late"))
    assert counted(DuckDBBackend(str(path), "parquet"), query) == 3
    text = expression("length(CAST(at AS VARCHAR)) + length(CAST(at AS VARCHAR))")
    query = CellQuery("e", GRID, text, expression("late"))
    assert counted(DuckDBBackend(str(path), "parquet"), query) == 3
