"""A question sees one state of its table, whatever others do to it meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.sql.relation import Relation
from streamdp.types import Backend, CellQuery
from tests.contract.servers import asked as connected
from tests.contract.test_total import FILE, GRID

RECORDS = 40

CHANGES = {
    "update": ["UPDATE changing SET x = 9"],
    "delete and insert": ["DELETE FROM changing", "INSERT INTO changing VALUES (1, 9)"],
}


def counted(
    backend: Backend, where: str, asked: Callable[[], bool], change: Callable[[], object]
) -> dict[int, int]:
    """Records by value, of a question in whose midst something is changed.

    Args:
        backend: Who is asked.
        where: A condition that takes a while for each record.
        asked: Whether the server works at the question.
        change: What is done then.
    """
    query, found = CellQuery("x", GRID, where=where), dict[int, int]()
    backend.check(query, FILE)

    def ask() -> None:
        answer = backend.answer(query, FILE)
        found.update(zip(answer.cells.tolist(), answer.counts.tolist(), strict=True))

    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive() and not asked():
        time.sleep(0.01)
    change()
    asking.join(600)
    return found


@pytest.mark.parametrize("change", [*CHANGES, "drop", "detach"])
def test_postgresql_answers_from_one_state(postgres_server: str, change: str) -> None:
    """A partition that is dropped or detached meanwhile waits for the question."""
    psycopg = pytest.importorskip("psycopg")
    said = CHANGES | {
        "drop": ["DROP TABLE changing_b"],
        "detach": ["ALTER TABLE changing DETACH PARTITION changing_b"],
    }
    backend = PostgresBackend(postgres_server, Relation("changing"))
    sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute("CREATE TABLE changing (p INT, x INT) PARTITION BY LIST (p)")
        for part, key in (("a", 1), ("b", 2)):
            server.execute(
                f"CREATE TABLE changing_{part} PARTITION OF changing FOR VALUES IN ({key})"
            )
        rows = f"SELECT 1 + i % 2, 7 FROM generate_series(1, {RECORDS}) r(i)"
        server.execute(f"INSERT INTO changing {rows}")
        try:
            found = counted(
                backend,
                "pg_sleep(0.02) IS NOT NULL",
                lambda: server.execute(sleeps).fetchone() == (1,),
                lambda: [server.execute(each) for each in said[change]],
            )
            assert found == {7: RECORDS}
        finally:
            backend.close()
            server.execute("DROP TABLE IF EXISTS changing, changing_b CASCADE")


@pytest.mark.parametrize("change", [*CHANGES, "drop"])
def test_mariadb_answers_from_one_state(mariadb_server: str, change: str) -> None:
    """A partition that is dropped meanwhile waits for the question."""
    said = CHANGES | {"drop": ["ALTER TABLE changing DROP PARTITION b"]}
    backend = MariaDBBackend(ServerAddress.of(mariadb_server), Relation("changing"))
    sleeps = "SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep'"
    with connected(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS changing")
        parts = "PARTITION a VALUES IN (1), PARTITION b VALUES IN (2)"
        cursor.execute(f"CREATE TABLE changing (p INT, x INT) PARTITION BY LIST (p) ({parts})")
        cursor.execute(f"INSERT INTO changing SELECT 1 + seq % 2, 7 FROM seq_1_to_{RECORDS}")
        try:
            found = counted(
                backend,
                "SLEEP(0.02) = 0",
                lambda: cursor.execute(sleeps) == 1,
                lambda: [cursor.execute(each) for each in said[change]],
            )
            assert found == {7: RECORDS}
        finally:
            backend.close()
            cursor.execute("DROP TABLE changing")
