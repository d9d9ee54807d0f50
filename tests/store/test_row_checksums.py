"""Seals: a changed row in any table beside the ledger refuses the store."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.store import archive
from streamdp.store.pauses import pause_job
from streamdp.store.row_checksums import SEALED
from streamdp.store.schema.migrations import STEPS, VERSIONS
from streamdp.store.sqlite import SqliteStore
from tests.worlds import World


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
