"""Seals: a changed row in any table beside the ledger refuses the store."""

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.store import archive, row_checksums
from streamdp.store.database import connect, truncate_log
from streamdp.store.migrations import STEPS, VERSIONS, migrate
from streamdp.store.problems import pause_job
from streamdp.store.row_checksums import SEALED, SEALED_SINCE
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify
from streamdp.types import Charge, GateRun
from tests.store.test_upgrade import written
from tests.worlds import EPSILON_NANO, World


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table in SEALED for column in SEALED[table]]
)
def test_a_changed_column_is_found(tmp_path: Path, table: str, column: str) -> None:
    """One bit of one value, as it rots on a disk."""
    world = World(tmp_path)
    world.runner.round([world.job()])
    pause_job(world.store.database, "job", 0)
    (release,) = archive.select_releases(world.store.database, limit=1)
    archive.add_notice(world.store.database, replace(release, id="notice"))
    world.store.close()
    SqliteStore.open(world.path, 0).close()
    raw = sqlite3.connect(world.path)
    raw.execute("PRAGMA ignore_check_constraints = ON")
    named = "SELECT type FROM pragma_table_info(?) WHERE name = ?"
    (kind,) = raw.execute(named, [table, column]).fetchone()
    numbers, texts = f"coalesce({column}, 0) + 1", f"coalesce({column}, '') || 'x'"
    other = {"INTEGER": numbers, "TEXT": texts, "BLOB": "x'00'"}[kind]
    last = f"(SELECT max({SEALED[table][0]}) FROM {table})"
    changed = raw.execute(
        f"UPDATE {table} SET {column} = {other} WHERE {SEALED[table][0]} = {last}"
    )
    assert changed.rowcount
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError, match=r"altered|damaged|anchor"):
        SqliteStore.open(world.path, 0)


def test_rows_from_before_there_were_seals_get_theirs(tmp_path: Path) -> None:
    """A store of the first schema opens, and what it held is sealed from then on."""
    path = tmp_path / "s.db"
    raw = sqlite3.connect(path)
    raw.execute(VERSIONS)
    for statement in (
        *STEPS[0],
        "INSERT INTO migration VALUES (1, 0)",
        "INSERT INTO instance (id, store_id, digest_key, epoch) VALUES (1, 'x', x'00', 0)",
        "INSERT INTO batch VALUES ('s', 'k', 0, 1, NULL, 0)",
        "INSERT INTO pause VALUES ('job', 0)",
    ):
        assert isinstance(statement, str)
        raw.execute(statement)
    raw.commit()
    raw.close()
    SqliteStore.open(path, 0).close()
    raw = sqlite3.connect(path)
    raw.execute("UPDATE batch SET seal = ''")
    raw.commit()
    raw.close()
    with pytest.raises(IntegrityError, match="batch"):
        SqliteStore.open(path, 0)


HIDDEN = {"rho": 41_507}
"""Of a run: 60,000 candidates hold it."""


def armed(store: SqliteStore) -> GateRun:
    """A run of a gate, with its threshold."""
    event = {"type": "pure", "epsilon": "1/10"}
    return store.gates.arm("s", "gate", Charge(event, EPSILON_NANO, EPSILON_NANO), {}, HIDDEN, 0)


def unkeyed(run: int, hidden: str) -> str:
    """The checksum of the run as it was before there was a key."""
    text = json.dumps([run, "gate", "{}", hidden, 0, None, None, 0])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def digests(run: int, hidden: str) -> Iterator[str]:
    """Digests of all that is known of the run, and of a candidate."""
    yield unkeyed(run, hidden)
    for key in (b"", b"gate_run"):
        text = json.dumps(["gate_run", run, "gate", "{}", hidden, 0, None, None, 0])
        yield hmac.digest(key, text.encode(), "sha256").hex()[:32]


def found(run: int, seal: str) -> list[int]:
    """The search: candidates whose digest is the seal."""
    return [rho for rho in range(60_000) if seal in digests(run, json.dumps({"rho": rho}))]


def seal_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as raw:
        (seal,) = raw.execute("SELECT seal FROM gate_run").fetchone()
    return str(seal)


@pytest.mark.long
def test_a_threshold_is_not_found_from_the_seal_of_its_run(tmp_path: Path) -> None:
    """Each of 60,000 candidates is tried; the search finds it in a seal without a key."""
    world = World(tmp_path)
    run = armed(world.store).run.seq
    assert found(run, seal_of(world.path)) == []
    assert found(run, unkeyed(run, json.dumps(HIDDEN))) == [HIDDEN["rho"]]


@pytest.mark.long
def test_a_seal_from_before_the_key_is_replaced(tmp_path: Path) -> None:
    """A store of schema 14 with an open run: after the upgrade the search finds nothing."""
    (fixture,) = (Path(__file__).parent / "fixtures").glob("schema-14.sql")
    path = written(fixture, tmp_path)
    charge = (
        "INSERT INTO ledger SELECT seq + 1, at, 'open', scope, 'gate', NULL, NULL, 0, 0, '{}',"
        " NULL, batch_cap_nano, lifetime_cap_nano, lifetime_spent_nano, hash, 'x', 0"
        " FROM ledger ORDER BY seq DESC LIMIT 1"
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(charge)
        (run,) = raw.execute("SELECT max(seq) FROM ledger").fetchone()
        old = unkeyed(run, json.dumps(HIDDEN))
        raw.execute(
            "INSERT INTO gate_run (run, gate, terms, hidden, seal) VALUES (?, 'gate', '{}', ?, ?)",
            [run, json.dumps(HIDDEN), old],
        )
        assert found(run, seal_of(path)) == [HIDDEN["rho"]]
    database = connect(path)
    migrate(database, 0)
    assert found(run, seal_of(path)) == []
    row_checksums.verify(database)
    truncate_log(database)
    assert old.encode() not in b"".join(
        each.read_bytes() for each in tmp_path.glob("store.db*[!0]")
    )


@pytest.mark.parametrize("column", SEALED_SINCE["gate_run"])
def test_a_changed_run_is_found(tmp_path: Path, column: str) -> None:
    """Its threshold too, though no digest without a key covers it."""
    world = World(tmp_path)
    armed(world.store)
    verify(world.store.database)
    world.store.close()
    with closing(sqlite3.connect(world.path, isolation_level=None)) as raw:
        raw.execute("PRAGMA foreign_keys = OFF")
        kinds = dict(raw.execute("SELECT name, type FROM pragma_table_info('gate_run')"))
        other = "coalesce({0}, 0) + 1" if kinds[column] == "INTEGER" else "coalesce({0}, '') || 'x'"
        raw.execute(f"UPDATE gate_run SET {column} = {other.format(column)}")
    with pytest.raises(IntegrityError, match=r"altered|damaged|belong"):
        SqliteStore.open(world.path, 0)
