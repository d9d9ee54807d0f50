"""Expressions against the real engines: what is admitted is a function of its record alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pytest

from streamdp.config.base.expressions import Dialect, expression
from tests.config.attempts import ADMITTED, ATTEMPTS, CLOCKS, SPARK

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")

ROWS = (
    "(1, 1, 'a', TIMESTAMP '2024-01-01 05:00:00', DATE '2024-01-01')",
    "(2, 2, 'b', TIMESTAMP '2024-01-01 06:00:00', DATE '2024-01-02')",
    "(3, 0, 'now', TIMESTAMP '2024-01-01 00:00:00', DATE '1969-12-31')",
    "(4, 3, '12:30', TIMESTAMP '2099-01-01 00:00:00', DATE '2099-01-01')",
    "(5, NULL, NULL, NULL, NULL)",
)
Ask = Callable[[str], list[tuple[object, ...]]]


def test_there_are_more_attempts_than_were_ever_made() -> None:
    """Each once."""
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) > 180


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_every_attempt_is_refused(dialect: Dialect) -> None:
    """For every engine, with a word that says why."""
    passed = []
    for text in (*ATTEMPTS, *(SPARK if dialect == "spark" else ())):
        try:
            passed.append((text, expression(text, dialect)))
        except ValueError:
            continue
    assert passed == []


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[Dialect, Ask]]:
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            yield "duckdb", lambda sql: connection.execute(sql).fetchall()
    elif request.param == "postgres":
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgres_server"), autocommit=True) as server:
            yield "postgres", lambda sql: server.execute(sql).fetchall()
    else:
        request.getfixturevalue("spark_session")
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        session.conf.set("spark.sql.ansi.enabled", "false")
        yield "spark", lambda sql: [tuple(row) for row in session.sql(sql).collect()]


def select(dialect: Dialect, sql: str, rows: tuple[str, ...]) -> str:
    at = "`at`" if dialect == "spark" else '"at"'
    return f"SELECT i, {sql} FROM (VALUES {', '.join(rows)}) AS r(i, x, t, {at}, d) ORDER BY i"


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
    """Power: what is refused would be the present in PostgreSQL and Spark; DuckDB knows none."""
    dialect, ask = engine
    if dialect == "duckdb":
        with pytest.raises(duckdb.Error):
            ask("SELECT CAST('now' AS TIMESTAMP)")
        return
    ((word,),) = ask("SELECT CAST('now' AS TIMESTAMP) > CAST('2026-01-01' AS TIMESTAMP)")
    assert word is True
    assert "at < 'now'" in CLOCKS
    at = "`at`" if dialect == "spark" else '"at"'
    assert ask(select(dialect, f"{at} < 'now'", ROWS[:1])) == [(1, True)]
