"""Reading is total in PostgreSQL too: hostile values of each type, in each part of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from streamdp.backends.postgres import PostgresBackend, doubts
from streamdp.backends.sql.engine import SqlBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.types import (
    CellQuery,
    CompoundAnswer,
    CompoundQuery,
    Dimension,
    Grid,
    Query,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
    UnitBound,
)
from tests.contract.test_total import FILE, GRID, WINDOW

psycopg = pytest.importorskip("psycopg")

INSTANTS = ("2024-01-01 12:00", ["infinity", "-infinity", "294276-12-31", "4713-01-01 BC"])
"""An ordinary time, and hostile ones: PostgreSQL has years of more than 2^63 microseconds."""
WIDE = ["NaN", "Infinity", "-Infinity", "1e1000", "-1e1000", "1e-1000", f"{10**300}.{10**40}"]
HOSTILE: dict[str, tuple[str, list[str]]] = {
    "smallint": ("7", ["32767", "-32768"]),
    "integer": ("7", ["2147483647", "-2147483648"]),
    "bigint": ("7", [str(2**63 - 1), str(-(2**63)), str(2**53 + 1)]),
    "real": ("7", ["NaN", "Infinity", "-Infinity", "3e38", "1e-45", "-0"]),
    "double precision": ("7", ["NaN", "Infinity", "-Infinity", "1.7e308", "5e-324", "-0"]),
    "numeric": ("7", WIDE),
    "numeric(9,2)": ("7", ["NaN", "9999999.99", "-9999999.99"]),
    "date": ("2024-01-01", ["infinity", "-infinity", "5874897-12-31", "4713-01-01 BC"]),
    "timestamp": INSTANTS,
    "timestamptz": INSTANTS,
    "interval": ("7", ["178000000 years", "-178000000 years", "2147483647 days"]),
    "text": ("A", ["", "é", "\U0010ffff", "x" * 100_000, "\x01\x1b[31m", "a\\b'\"%s"]),
    "varchar(9)": ("A", ["", "é", "\\"]),
    "char(9)": ("A", ["", "A  ", "é"]),
    "boolean": ("true", ["false"]),
    "uuid": ("00000000-0000-0000-0000-000000000000", ["ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "bytea": ("A", ["\\x00ff", ""]),
}
"""Of each type an ordinary value and hostile ones, beside which null stands always."""

UNIT = Grid(Fraction(1), -1000, 1000)
ROLES = ("value", "unit", "group", "where", "time", "table", "cuts", "sum")


def asked(role: str) -> CellQuery | TableQuery | CompoundQuery:
    """A question that names the column h in one of its parts."""
    plain = CellQuery("x", GRID)
    match role:
        case "value":
            return CellQuery("h", GRID)
        case "unit":
            return replace(plain, bound=UnitBound("h", 1))
        case "group":
            return replace(plain, by=("h",), groups=(("A",), ("7",)))
        case "where":
            return replace(plain, where="h IS NOT NULL AND h >= h")
        case "table":
            listed = Dimension("h", values=("A", "7"), other=True, nulls="cell")
            return TableQuery((listed,), ((0,),))
        case "cuts":
            return TableQuery((Dimension("h", cuts=(-1e300, 0, 7), nulls="cell"),), ((0,),))
        case "sum":
            return CompoundQuery((SumQuery((Term("h", UNIT), Term("h", UNIT, square=True))),))
    return plain


def counted(statistic: object) -> Iterator[int]:
    """How many records an answer holds, of each of its parts; of sums nothing."""
    match statistic:
        case tuple():
            yield sum(count for each in statistic for count in counted(each))
        case CompoundAnswer(parts):
            for each in parts:
                yield from counted(each)
        case TableCounts(marginals):
            yield from (int(each.sum()) for each in marginals)
        case Sums():
            return
        case _:
            yield int(statistic.counts.sum())  # type: ignore[attr-defined]


def fill(server: object, kind: str, values: Sequence[str | None]) -> None:
    server.execute("DROP TABLE IF EXISTS hostile")  # type: ignore[attr-defined]
    server.execute(f"CREATE TABLE hostile (x INT, h {kind}, t TIMESTAMP)")  # type: ignore[attr-defined]
    for value in values:
        server.execute(  # type: ignore[attr-defined]
            f"INSERT INTO hostile VALUES (7, %s::{kind}, '2024-01-01 12:00')", [value]
        )


def filled(server: object, kind: str, times: int, value: Sequence[str | None]) -> None:
    """Three ordinary records, and a value; that of a unit twice, beyond the bound of one."""
    fill(server, kind, [HOSTILE[kind][0]] * 3 + [*value] * times)


def tried(
    backend: SqlBackend, role: str, values: Iterable[Any], fill: Callable[[list[Any]], None]
) -> tuple[int, list[str]]:
    """How many questions were answered beside each value, and what failed or moved too far.

    Args:
        backend: Of the engine.
        role: The part of a question that the column has.
        values: What stands beside ordinary records, one at a time.
        fill: Puts such records into the table, with none or one of the values.
    """
    batch, query = WINDOW if role == "time" else FILE, asked(role)
    answered, failed = 0, list[str]()
    before: list[int] | None = None
    for value in [[], *([each] for each in values)]:
        fill(value)
        try:
            backend.check(query, batch)
        except SourceError:
            break
        try:
            counts = list(counted(backend.answer(query, batch)))
        except SourceError as error:
            failed.append(f"{value} as {role}: {error}")
            continue
        answered += 1
        before = counts if before is None else before
        moved = [after - old for after, old in zip(counts, before, strict=True)]
        if any(not 0 <= each <= 1 for each in moved):
            failed.append(f"{value} as {role}: {before} became {counts}")
    return answered, failed


def counts_of(server: str, query: Query) -> list[int]:
    backend = PostgresBackend(server, Relation("hostile"))
    backend.check(query, FILE)
    counts = list(counted(backend.answer(query, FILE)))
    backend.close()
    return counts


def test_settings_of_a_role_change_no_count(postgres_server: str) -> None:
    """Dates are compared as ISO writes them, and groups are sent in UTF-8, whatever a role says."""
    days = CellQuery("x", GRID, by=("h",), groups=(("2024-01-02",), ("日",)))
    with psycopg.connect(postgres_server, autocommit=True) as server:
        fill(server, "date", ["2024-01-02"] * 3)
        server.execute("CREATE ROLE reader LOGIN")
        server.execute("GRANT SELECT ON hostile TO reader")
        for setting in ("DateStyle = 'German'", "client_encoding = 'LATIN1'"):
            server.execute(f"ALTER ROLE reader SET {setting}")
            found = counts_of(postgres_server.replace("user=postgres", "user=reader"), days)
            assert found == [3], setting
            server.execute("ALTER ROLE reader RESET ALL")


@pytest.mark.parametrize("encoding", ["WIN1252", "SQL_ASCII"])
def test_a_byte_that_no_encoding_knows_fails_no_question(
    postgres_server: str, encoding: str
) -> None:
    """A unit whose name has no UTF-8 is bounded like others; a group of no letters is refused."""
    made = {"encoding": f"'{encoding}'", "template": "template0", "locale": "'C'"}
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(
            f"CREATE DATABASE in_{encoding} " + " ".join(f"{k} {v}" for k, v in made.items())
        )
    within = postgres_server.replace("dbname=postgres", f"dbname=in_{encoding.lower()}")
    with psycopg.connect(within, autocommit=True) as server:
        fill(server, "text", ["A"])
        unknown = f"convert_from('\\x81', '{encoding}')"
        server.execute(f"INSERT INTO hostile SELECT 7, {unknown} FROM generate_series(1, 3)")
    assert counts_of(within, asked("unit")) == [2]
    backend = PostgresBackend(within, Relation("hostile"))
    listed = TableQuery((Dimension("h", values=("A", "日"), other=True, nulls="cell"),), ((0,),))
    for query in (CellQuery("x", GRID, by=("h",), groups=(("A",), ("日",))), listed):
        if encoding == "SQL_ASCII":
            backend.check(query, FILE)
            continue
        with pytest.raises(SourceError, match="letters"):
            backend.check(query, FILE)
    backend.close()


@pytest.mark.thinned(8)
@pytest.mark.parametrize("kind", HOSTILE)
def test_no_value_fails_a_question_of_postgresql_after_its_check(
    postgres_server: str, kind: str
) -> None:
    """Each hostile value moves a count by its own record alone, or the question is refused."""
    hostile = HOSTILE[kind][1]
    answered, failed = 0, list[str]()
    with psycopg.connect(postgres_server, autocommit=True) as server:
        for role in ROLES:
            backend = PostgresBackend(
                postgres_server, Relation("hostile"), "h" if role == "time" else None
            )
            found = tried(
                backend,
                role,
                (*hostile, None),
                partial(filled, server, kind, 2 if role == "unit" else 1),
            )
            backend.close()
            answered, failed = answered + found[0], failed + found[1]
    assert failed == []
    assert answered >= 2 * (len(hostile) + 2)


def refused(conninfo: str, table: str, query: Query = CellQuery("x", GRID)) -> str:  # noqa: B008
    """Why a question is refused before a charge; nothing if it is answered."""
    backend = PostgresBackend(conninfo, Relation(table))
    try:
        backend.check(query, FILE)
    except SourceError as error:
        return error.what
    else:
        backend.answer(query, FILE)
        return ""
    finally:
        backend.close()


def test_what_a_table_leads_to_may_not_fail_on_a_record(postgres_server: str) -> None:
    """Columns that are computed as they are read, also behind views, and policies with casts."""
    with psycopg.connect(postgres_server, autocommit=True) as server:
        if server.info.server_version < 180000:
            pytest.skip("no virtual columns before version 18")
        server.execute(
            "CREATE TABLE led"
            " (x int, a int, tenant text, y int GENERATED ALWAYS AS (100 / a) VIRTUAL)"
        )
        server.execute("INSERT INTO led VALUES (1, 0, '5')")
        server.execute("CREATE VIEW led_on AS SELECT x, y FROM led")
        server.execute("CREATE VIEW led_further AS SELECT * FROM led_on")
        server.execute("CREATE VIEW led_elsewhere AS SELECT x, a FROM led")
        server.execute("CREATE TABLE parts (x int, y int) PARTITION BY RANGE (x)")
        server.execute("CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9)")
        for table in ("led", "led_elsewhere", "parts"):
            assert refused(postgres_server, table) == "", table
        for table, query in (
            ("led_on", CellQuery("x", GRID)),
            ("led_further", CellQuery("x", GRID)),
            ("led", CellQuery("y", GRID)),
            ("led", CellQuery("x", GRID, where='"y" > 1')),
        ):
            assert "computed as it is read" in refused(postgres_server, table, query)
        server.execute("CREATE ROLE tenant LOGIN")
        server.execute("GRANT SELECT ON led TO tenant")
        server.execute("ALTER TABLE led ENABLE ROW LEVEL SECURITY")
        server.execute("CREATE POLICY own ON led USING (tenant = current_user)")
        as_tenant = postgres_server.replace("user=postgres", "user=tenant")
        assert refused(as_tenant, "led") == ""
        server.execute("CREATE POLICY cast_own ON led USING (tenant::int = 5)")
        assert "policy for rows" in refused(as_tenant, "led")
        server.execute("CREATE FOREIGN DATA WRAPPER away")
        server.execute("CREATE SERVER away FOREIGN DATA WRAPPER away")
        server.execute("CREATE FOREIGN TABLE abroad (x int) SERVER away")
        server.execute("CREATE VIEW over_there AS SELECT x FROM abroad")
        for table in ("abroad", "over_there"):
            found = [each.what for each in doubts(server, table, ["x"])]
            assert len(found) == 1, table
            assert "foreign table" in found[0]


def test_a_function_that_takes_the_place_of_another_is_refused(postgres_server: str) -> None:
    """Texts of a schema in the search path would be joined by whoever made it."""
    with psycopg.connect(postgres_server, autocommit=True) as server:
        fill(server, "text", ["A"])
        made = "FUNCTION public.concat(text, text)"
        server.execute(f"CREATE {made} RETURNS text LANGUAGE sql AS 'SELECT ''x''::text'")
        assert "public.concat may be called" in refused(postgres_server, "hostile")
        server.execute(f"DROP {made}")
        assert refused(postgres_server, "hostile") == ""


@pytest.mark.long
def test_a_unit_of_600_megabytes_is_a_unit(postgres_server: str) -> None:
    """Its text in hexadecimal digits would not fit."""
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("CREATE TABLE huge (x int, h bytea)")
        half = "convert_to(repeat('x', 300000000), 'UTF8')"
        server.execute(f"INSERT INTO huge SELECT 7, {half} || {half} FROM generate_series(1, 2)")
        assert refused(postgres_server, "huge", CellQuery("x", GRID, bound=UnitBound("h", 1))) == ""
        server.execute("DROP TABLE huge")
