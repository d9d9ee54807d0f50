"""Limits and failures: a question that takes too long ends, and a server that is gone is said."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Timer

import duckdb
import pytest

from streamdp.backends import mariadb, postgres
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.limits import NO_LIMITS, Limits
from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.backends.sql.server import PAUSES
from streamdp.errors import (
    AuthenticationError,
    MissingColumnError,
    PermissionDeniedError,
    SourceError,
    SourceLockedError,
    TooSlowError,
    UnreachableError,
)
from streamdp.types import Batch, CellQuery, Grid, UnitBound
from tests.contract.servers import asked

GRID = Grid(Fraction(1), 0, 10**9)
BATCH = Batch("s", "b")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "large.parquet"
    duckdb.execute(f"COPY (SELECT range AS x FROM range(3000000)) TO '{path}' (FORMAT parquet)")
    return path


def test_duckdb_ends_a_question_that_needs_more_memory_than_it_may(large: Path) -> None:
    """Three million cells and units do not fit in 20 MB, and nothing is spilled to disk."""
    backend = DuckDBBackend(str(large), "parquet", limits=Limits(memory=20_000_000, threads=1))
    query = CellQuery("x", GRID, bound=UnitBound("x", 1))
    backend.check(query, BATCH)
    with pytest.raises(SourceError) as caught:
        backend.answer(query, BATCH)
    assert caught.value.__suppress_context__


def test_duckdb_ends_a_question_that_takes_too_long(large: Path) -> None:
    """A derived column that counts to a billion for each record is interrupted."""
    slow = "list_sum(list_transform(range(CAST(1000 + x AS BIGINT)), lambda y: y % 7))"
    backend = DuckDBBackend(str(large), "parquet", limits=Limits(seconds=1, threads=1))
    with pytest.raises(SourceError):
        backend.answer(CellQuery("z", GRID, expression=slow), BATCH)


@pytest.fixture
def server(postgres_server: str) -> str:
    import psycopg

    with psycopg.connect(postgres_server) as connection:
        connection.execute("DROP TABLE IF EXISTS slow")
        connection.execute("CREATE TABLE slow AS SELECT 1 AS x, 'CANARY' AS note")
    return postgres_server


def test_postgres_ends_a_question_that_takes_too_long(server: str) -> None:
    """By itself: `statement_timeout` is set on every session."""
    query = CellQuery("x", GRID, where="pg_sleep(30) IS NOT NULL")
    with closing(PostgresBackend(server, Relation("slow"), limits=Limits(seconds=1))) as backend:
        backend.check(query, BATCH)
        with pytest.raises(SourceError, match="could not be read") as caught:
            backend.answer(query, BATCH)
    assert caught.value.__suppress_context__


def test_postgres_is_reached_again_after_its_connection_was_lost(server: str) -> None:
    """Between check and count the server dropped it: nothing was asked, so nothing is burnt."""
    import psycopg

    query = CellQuery("x", GRID)
    with closing(PostgresBackend(server, Relation("slow"))) as backend:
        backend.check(query, BATCH)
        with psycopg.connect(server) as other:
            killed = other.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE application_name = 'streamdp'"
            ).fetchall()
        assert killed[0][0] >= 1
        assert backend.answer(query, BATCH).counts.tolist() == [1]


class Left(BaseException):
    """A question is left for a reason that the library does not know."""


@contextmanager
def left_after_a_second() -> Iterator[None]:
    """Raise `Left` within a question, by a signal that whoever started the tests may ignore."""

    def leave(number: int, frame: object) -> None:
        raise Left

    before = signal.signal(signal.SIGINT, leave)
    Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_question_that_is_left_is_cancelled(server: str) -> None:
    """Whatever it is left for, no query stays behind in the server."""
    import psycopg

    query = CellQuery("x", GRID, where="pg_sleep(60) IS NOT NULL")
    backend = PostgresBackend(server, Relation("slow"))
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%'"
    running += " AND state = 'active' AND pid <> pg_backend_pid()"
    with left_after_a_second(), pytest.raises(Left):
        backend.answer(query, BATCH)
    with psycopg.connect(server) as other:
        for _ in range(3000):
            if other.execute(running).fetchone() == (0,):
                return
            time.sleep(0.1)
    pytest.fail("the server still works")


def test_connecting_is_tried_again_with_pauses_and_shows_no_password() -> None:
    """Nothing is asked in between, so nothing can be spent twice."""
    pauses: list[float] = []
    secret = "host=/nowhere user=u password=CANARY"  # noqa: S105
    backend = PostgresBackend(secret, Relation("t"), sleep=pauses.append)
    with pytest.raises(SourceError) as caught:
        backend.check(CellQuery("x", GRID), BATCH)
    assert pauses == list(PAUSES)
    assert "CANARY" not in str(caught.value) + repr(backend)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_postgres_cannot_write(server: str) -> None:
    """The session is read-only: a relation that would write is refused by the server."""
    with closing(PostgresBackend(server, Relation(query="SELECT setval('s', 5) AS x"))) as backend:
        import psycopg

        with psycopg.connect(server) as other:
            other.execute("DROP SEQUENCE IF EXISTS s; CREATE SEQUENCE s")
        with pytest.raises(SourceError):
            backend.answer(CellQuery("x", GRID), BATCH)


@pytest.fixture
def maria(mariadb_server: str) -> Iterator[MariaDBBackend]:
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS slow AS SELECT 1 AS x, 'CANARY' AS note")
    with closing(MariaDBBackend(ServerAddress.of(mariadb_server), Relation("slow"))) as backend:
        yield backend


def _sessions(url: str, word: str) -> list[int]:
    """Those of the server that ask something with a word in it."""
    listed = "SELECT id FROM information_schema.processlist WHERE info LIKE %s"
    with asked(url) as server, server.cursor() as cursor:
        cursor.execute(f"{listed} AND id <> connection_id()", [f"%{word}%"])
        return [number for (number,) in cursor.fetchall()]


def test_mariadb_ends_a_question_that_takes_too_long(maria: MariaDBBackend) -> None:
    """By itself: `max_statement_time` is set on every session."""
    query = CellQuery("x", GRID, where="SLEEP(30) = 0")
    maria.limits = Limits(seconds=1)
    maria.check(query, BATCH)
    with pytest.raises(SourceError, match="could not be read") as caught:
        maria.answer(query, BATCH)
    assert caught.value.__suppress_context__


def test_mariadb_ends_a_question_that_needs_more_memory_than_it_may(
    maria: MariaDBBackend, mariadb_server: str
) -> None:
    """The session's memory is bounded, and its error says nothing."""
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE TABLE many AS SELECT seq AS x FROM seq_1_to_20000")
    maria.relation, maria.limits = Relation("many"), Limits(memory=1_000_000)
    query = CellQuery("x", GRID, bound=UnitBound("x", 1))
    maria.check(query, BATCH)
    with pytest.raises(SourceError, match="could not be read"):
        maria.answer(query, BATCH)


def test_mariadb_is_reached_again_after_its_connection_was_lost(
    maria: MariaDBBackend, mariadb_server: str
) -> None:
    """Between check and count the server dropped it: nothing was asked, so nothing is burnt."""
    query = CellQuery("x", GRID)
    maria.check(query, BATCH)
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute(f"KILL {maria.connected().thread_id()}")
    assert maria.answer(query, BATCH).counts.tolist() == [1]


def test_a_question_of_mariadb_that_is_left_is_killed(
    maria: MariaDBBackend, mariadb_server: str
) -> None:
    """An interrupt, as of a shutdown, leaves no query behind in the server.

    It works and does not sleep: a sleeping one notices that its client hung up.
    """
    query = CellQuery("x", GRID, where="BENCHMARK(1000000000, SHA2('note', 512)) = 0")
    with left_after_a_second(), pytest.raises(Left):
        maria.answer(query, BATCH)
    for _ in range(3000):
        if not _sessions(mariadb_server, "BENCHMARK"):
            return
        time.sleep(0.1)
    pytest.fail("the server still works")


def test_mariadb_cannot_write(maria: MariaDBBackend, mariadb_server: str) -> None:
    """The session is read-only: a relation that would write is refused by the server."""
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE IF NOT EXISTS s")
    maria.relation = Relation(query="SELECT NEXTVAL(s) AS x")
    with pytest.raises(SourceError):
        maria.answer(CellQuery("x", GRID), BATCH)


@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("spark_session")
def test_spark_ends_a_question_that_takes_too_long() -> None:
    """The job is cancelled on the cluster too."""
    endless = Relation(query="SELECT id AS x FROM range(1000000000000)")
    backend = SparkBackend("local[2]", endless, limits=Limits(seconds=3))
    with pytest.raises(SourceError, match="could not be read") as caught:
        backend.answer(CellQuery("x", GRID, where="x % 7 = 1"), BATCH)
    assert caught.value.__suppress_context__


def test_each_failure_of_postgres_has_its_own_words(server: str) -> None:
    """A lock, missing rights, a time that is over, a stranger, a wrong name, nobody there."""
    import psycopg

    query = CellQuery("x", GRID)
    with psycopg.connect(server, autocommit=True) as other:
        other.execute("DROP ROLE IF EXISTS nobody; CREATE ROLE nobody LOGIN")
        with pytest.raises(PermissionDeniedError, match="may not read"):
            PostgresBackend(f"{server} user=nobody", Relation("slow")).check(query, BATCH)
        other.execute("DROP ROLE nobody")
    with pytest.raises(AuthenticationError, match="does not admit this user"):
        PostgresBackend(f"{server} user=gone", Relation("slow")).check(query, BATCH)
    with pytest.raises(SourceError, match="no such table or database"):
        PostgresBackend(f"{server} dbname=gone", Relation("slow")).check(query, BATCH)
    with pytest.raises(UnreachableError):
        PostgresBackend("host=/nowhere", Relation("t"), sleep=_hurry).check(query, BATCH)
    with pytest.raises(MissingColumnError, match="no column 'z'"):
        PostgresBackend(server, Relation("slow")).check(CellQuery("z", GRID), BATCH)
    slow = CellQuery("x", GRID, where="pg_sleep(30) IS NOT NULL")
    with pytest.raises(TooSlowError, match="longer than"):
        PostgresBackend(server, Relation("slow"), limits=Limits(seconds=1)).answer(slow, BATCH)


def _hurry(seconds: float) -> None:
    """Do not wait between attempts."""


def test_a_lock_of_postgres_is_waited_for_no_longer_than_locks_are(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a `timeout` too, before anything is spent; with a short one it is told as a lock."""
    import psycopg

    with psycopg.connect(server) as other:
        other.execute("LOCK TABLE slow IN ACCESS EXCLUSIVE MODE")
        for limits in (Limits(seconds=3), NO_LIMITS):
            backend = PostgresBackend(server, Relation("slow"), limits=limits)
            with pytest.raises(SourceLockedError, match="holds a lock"):
                backend.check(CellQuery("x", GRID), BATCH)
            monkeypatch.setattr(postgres, "LOCK_SECONDS", 1)


def test_a_server_that_stands_still_is_not_waited_for(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own limit never ends the question: the client hangs up, and says it took too long."""
    query = CellQuery("x", GRID, where="pg_sleep(30) IS NOT NULL")
    backend = PostgresBackend(server, Relation("slow"), limits=Limits(seconds=2))
    monkeypatch.setattr(PostgresBackend, "slack", 1.0)
    backend.check(query, BATCH)
    pid = backend.connected().info.backend_pid
    Timer(0.5, os.kill, [pid, signal.SIGSTOP]).start()
    try:
        with pytest.raises(TooSlowError):
            backend.answer(query, BATCH)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_each_failure_of_mariadb_has_its_own_words(
    maria: MariaDBBackend, mariadb_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock, missing rights, a time that is over, a stranger, a wrong name, nobody there."""
    query = CellQuery("x", GRID)
    where = ServerAddress.of(mariadb_server)
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE USER u@localhost IDENTIFIED BY 'secret'")
        cursor.execute("CREATE TABLE IF NOT EXISTS other AS SELECT 1 AS x")
        cursor.execute("GRANT SELECT ON w.other TO u@localhost")
        known = replace(where, user="u", password="secret")  # noqa: S106
        with pytest.raises(PermissionDeniedError, match="may not read"):
            MariaDBBackend(known, Relation("slow")).check(query, BATCH)
        with pytest.raises(AuthenticationError, match="does not admit this user"):
            MariaDBBackend(replace(known, password="no"), Relation("slow")).check(query, BATCH)  # noqa: S106
        monkeypatch.setattr(mariadb, "LOCK_SECONDS", 1)
        cursor.execute("LOCK TABLES w.slow WRITE")
        with pytest.raises(SourceLockedError, match="holds a lock"):
            MariaDBBackend(where, Relation("slow")).check(query, BATCH)
        cursor.execute("UNLOCK TABLES")
    gone = replace(where, socket=None, host="127.0.0.1", port=1)
    with pytest.raises(UnreachableError):
        MariaDBBackend(gone, Relation("slow"), sleep=_hurry).check(query, BATCH)
    maria.limits = Limits(seconds=1)
    with pytest.raises(TooSlowError, match="longer than"):
        maria.answer(CellQuery("x", GRID, where="SLEEP(30) = 0"), BATCH)


def test_a_question_to_files_that_takes_too_long_says_so(large: Path) -> None:
    """And names the key that would give it more."""
    backend = DuckDBBackend(str(large), "parquet", limits=Limits(seconds=1, threads=1))
    slow = "list_sum(list_transform(range(CAST(1000 + x AS BIGINT)), lambda y: y % 7))"
    with pytest.raises(TooSlowError, match=r"engine\.timeout"):
        backend.answer(CellQuery("z", GRID, expression=slow), BATCH)
