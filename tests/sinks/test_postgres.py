"""The table sink of PostgreSQL against a real server; skipped where none can be started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from streamdp.errors import SinkError
from streamdp.sinks.postgres import PostgresTableSink
from streamdp.types import Column
from tests.sinks.targets import Kept, release, wanted

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    from tests.contract.servers import postgres

    with postgres() as conninfo:
        if conninfo is None:
            pytest.skip("there is no PostgreSQL server to start")
        yield conninfo


def asked(server: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


def kept(server: str, table: str) -> Kept:
    return sorted(asked(server, f"SELECT release_id, value FROM {table}"))  # type: ignore[arg-type]


def test_each_release_is_there_once(server: str) -> None:
    """Made by the first, delivered twice by two processes, widened by a later form."""
    first, second = release(1), release(2)
    for _ in range(2):
        sink = PostgresTableSink("p", server, "public.deciles")
        for each in (first, second, first):
            sink.deliver(each)
    wider = replace(release(3), rows=tuple({"origin": "JFK", **row} for row in release(3).rows))
    PostgresTableSink("p", server, "public.deciles").deliver(wider)
    assert kept(server, "deciles") == wanted(first, second, wider)
    kinds = asked(
        server, "SELECT pg_typeof(window_start)::text, pg_typeof(value)::text FROM deciles"
    )
    assert set(kinds) == {("timestamp with time zone", "double precision")}


def test_a_job_of_integers_rounds_no_number_of_another(server: str) -> None:
    """A column of integers becomes one of numbers; a role that may not do that is told."""
    sink = PostgresTableSink("p", server, "public.shared")
    columns = [(Column("value", kind, "value"),) for kind in ("integer", "number")]
    whole = replace(release(1), columns=columns[0], rows=({"value": 7},))
    broken = replace(release(2), columns=columns[1], rows=({"value": 7.75},))
    sink.deliver(whole)
    asked(server, "CREATE ROLE narrow LOGIN PASSWORD 'x'; GRANT INSERT, SELECT ON shared TO narrow")
    as_narrow = server.replace("user=postgres", "user=narrow password=x")
    with pytest.raises(SinkError, match="InsufficientPrivilege"):
        PostgresTableSink("p", as_narrow, "public.shared").deliver(broken)
    sink.deliver(broken)
    assert kept(server, "shared") == wanted(whole, broken)


def test_a_refusal_in_the_middle_leaves_nothing(server: str) -> None:
    """The second row is refused by the table: the first is not there either, and it is mended."""
    sink = PostgresTableSink("p", server, "halves")
    sink.deliver(release(1))
    asked(server, "ALTER TABLE halves ADD CONSTRAINT c CHECK (value <> 201)")
    with pytest.raises(SinkError):
        sink.deliver(release(2))
    assert kept(server, "halves") == wanted(release(1))
    asked(server, "ALTER TABLE halves DROP CONSTRAINT c")
    sink.deliver(release(2))
    assert kept(server, "halves") == wanted(release(1), release(2))


def test_a_role_that_may_only_append_is_enough(server: str) -> None:
    """INSERT and SELECT on a table that is there; without them an error that shows no more."""
    PostgresTableSink("p", server, "public.granted").deliver(release(1))
    asked(server, "CREATE ROLE appender LOGIN PASSWORD 'CANARY'")
    as_appender = server.replace("user=postgres", "user=appender password=CANARY")
    sink = PostgresTableSink("p", as_appender, "public.granted")
    with pytest.raises(SinkError) as caught:
        sink.deliver(release(2))
    assert "CANARY" not in f"{caught.value} {caught.value.fields}"
    asked(server, "GRANT INSERT, SELECT ON granted TO appender")
    sink.deliver(release(2))
    assert kept(server, "granted") == wanted(release(1), release(2))


def test_a_group_of_any_script_is_written(server: str) -> None:
    """Whatever encoding and form of dates the settings of the role ask for."""
    group = replace(release(1), rows=({"city": "日本", "value": 1.0},))
    asked(server, "CREATE ROLE latin LOGIN")
    asked(server, "GRANT CREATE, USAGE ON SCHEMA public TO latin")
    for setting in ("client_encoding = 'LATIN1'", "DateStyle = 'German'"):
        asked(server, f"ALTER ROLE latin SET {setting}")
    as_latin = server.replace("user=postgres", "user=latin")
    PostgresTableSink("p", as_latin, "public.cities").deliver(group)
    found = asked(server, "SELECT city, extract(epoch FROM window_end)::int FROM cities")
    assert found == [("日本", 86_400)]


def test_the_newest_release_of_a_batch_is_current(server: str) -> None:
    """Of two after a restore the later one, whichever comes first; a table may lack the flag."""
    first = release(1)
    again = replace(first, id="again", released_at=9)
    for table, order in (("there", (first, again, first)), ("back", (again, first, again))):
        for each in order:
            PostgresTableSink("p", server, table).deliver(each)
        found = asked(server, f"SELECT DISTINCT release_id, current FROM {table} ORDER BY 1")
        assert found == [("again", True), ("id1", False)]
    asked(server, "ALTER TABLE there DROP COLUMN current")
    PostgresTableSink("p", server, "there").deliver(release(2))
    assert len(kept(server, "there")) == 6


def test_a_server_that_is_gone(server: str) -> None:
    """A sink error; the outbox keeps the release."""
    with pytest.raises(SinkError, match="cannot write"):
        PostgresTableSink("p", "host=127.0.0.1 port=1 user=x", "t").deliver(release(1))
