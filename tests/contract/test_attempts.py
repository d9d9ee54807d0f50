"""Expressions against the real engines: what is admitted is a function of its record alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from streamdp.backends.limits import Limits
from streamdp.backends.mariadb import MariaDBDialect
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from tests.config.attempts import ADMITTED, ATTEMPTS, CLOCKS, SPARK
from tests.contract.servers import asked

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")

ROWS = (
    "(1, 1, 'a', TIMESTAMP '2024-01-01 05:00:00', DATE '2024-01-01')",
    "(2, 2, 'b', TIMESTAMP '2024-01-01 06:00:00', DATE '2024-01-02')",
    "(3, 0, 'now', TIMESTAMP '2024-01-01 00:00:00', DATE '1969-12-31')",
    "(4, 3, '12:30', TIMESTAMP '2099-01-01 00:00:00', DATE '2099-01-01')",
    "(5, NULL, NULL, NULL, NULL)",
)
NAMES = "year quarter month day hour minute second epoch doy dow isodow week"
PARTS = (
    *(f"extract({name} FROM at)" for name in NAMES.split()),
    *(f"date_trunc('{unit}', at)" for unit in NAMES.split()),
    *("x / 3", "x % 2", "-x % 2", "x / 3 * 3", "substring(t, 2)", "substring(t, 0)", "length(t)"),
    *("at + INTERVAL 1 DAY", "at - INTERVAL '2 hours'", "x IS DISTINCT FROM 2", "t = 'a\\b'"),
    *("extract(epoch FROM d)", "t LIKE 'a\\_b'", "t LIKE '%a_b%'", "greatest(x, 2)"),
)
Ask = Callable[[str], list[tuple[object, ...]]]


def test_there_are_more_attempts_than_were_ever_made() -> None:
    """Each once."""
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) > 180


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "mariadb", "spark"])
def test_every_attempt_is_refused(dialect: Dialect) -> None:
    """For every engine, with a word that says why."""
    passed = []
    for text in (*ATTEMPTS, *(SPARK if dialect == "spark" else ())):
        try:
            passed.append((text, expression(text, dialect)))
        except ValueError:
            continue
    assert passed == []


@pytest.fixture(params=["duckdb", "postgres", "mariadb", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[Dialect, Ask]]:
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            yield "duckdb", lambda sql: connection.execute(sql).fetchall()
    elif request.param == "postgres":
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgres_server"), autocommit=True) as server:
            yield "postgres", lambda sql: server.execute(sql).fetchall()
    elif request.param == "mariadb":
        with asked(request.getfixturevalue("mariadb_server")) as server:
            yield "mariadb", lambda sql: _rows(server, sql)
    else:
        request.getfixturevalue("spark_session")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.ansi.enabled", "false")
        yield "spark", lambda sql: [tuple(row) for row in session.sql(sql).collect()]


def _rows(server: Any, sql: str) -> list[tuple[object, ...]]:
    with server.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def select(dialect: Dialect, sql: str, rows: tuple[str, ...]) -> str:
    if dialect == "mariadb":
        table = MariaDBDialect().rows(
            [[row[1:-1]] for row in rows], "r", ("i", "x", "t", "at", "d")
        )
        return f"SELECT i, {sql} FROM {table} ORDER BY i"
    at = "`at`" if dialect == "spark" else '"at"'
    return f"SELECT i, {sql} FROM (VALUES {', '.join(rows)}) AS r(i, x, t, {at}, d) ORDER BY i"


@pytest.mark.thinned(4)
def test_what_is_admitted_says_the_same_of_a_record_alone(engine: tuple[Dialect, Ask]) -> None:
    """Among the others, in another order, and by itself; all expressions side by side."""
    dialect, ask = engine
    made = []
    for text in ADMITTED:
        try:
            made.append(expression(text, dialect))
        except ValueError:
            continue
    assert len(made) > 30
    columns = ", ".join(f"{sql} AS c{place}" for place, sql in enumerate(made))
    together = ask(select(dialect, columns, ROWS))
    assert ask(select(dialect, columns, ROWS[::-1])) == together
    for place in (1, 3):
        assert ask(select(dialect, columns, (ROWS[place], ROWS[0])))[-1] == together[place]


def test_the_clocks_are_clocks(engine: tuple[Dialect, Ask]) -> None:
    """Power: what is refused would be the present in PostgreSQL and Spark; the others know none."""
    dialect, ask = engine
    if dialect == "mariadb":
        ((word,),) = ask("SELECT CAST('now' AS DATETIME)")
        assert word is None
        return
    if dialect == "duckdb":
        with pytest.raises(duckdb.Error):
            ask("SELECT CAST('now' AS TIMESTAMP)")
        return
    ((word,),) = ask("SELECT CAST('now' AS TIMESTAMP) > CAST('2026-01-01' AS TIMESTAMP)")
    assert word is True
    assert "at < 'now'" in CLOCKS
    at = "`at`" if dialect == "spark" else '"at"'
    assert ask(select(dialect, f"{at} < 'now'", ROWS[:1])) == [(1, True)]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("text", [*ADMITTED, *PARTS])
def test_mariadb_means_what_duckdb_means(mariadb_server: str, text: str) -> None:
    """Of the same records, or it is refused; infinity is no time of MariaDB."""
    try:
        sql = expression(text, "mariadb")
    except ValueError:
        return
    with asked(mariadb_server) as server:
        found = _rows(server, select("mariadb", sql, ROWS))
    with duckdb.connect() as connection:
        known = connection.execute(select("duckdb", expression(text), ROWS)).fetchall()
    assert [row[1] for row in found] == [row[1] for row in known] or "infinity" in text


def test_no_time_of_day_is_completed_by_a_clock(mariadb_server: str) -> None:
    """Power: without the setting of the session the day is that of the server."""
    from streamdp.backends.mariadb import settings

    sql = "SELECT CAST(CAST('12:30' AS TIME) AS DATETIME) > '2020-01-01'"
    with asked(mariadb_server) as server:
        assert _rows(server, sql) == [(1,)]
        _rows(server, f"SET old_mode = {settings(Limits())['old_mode']}")
        assert _rows(server, sql) == [(0,)]
