"""The schema of a store is the one its steps make, to the last letter."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.reports.verification import examined
from streamdp.store.anchor import default_anchor
from streamdp.store.backup import backup, put_back
from streamdp.store.database import connect_to_read
from streamdp.store.migrations import STEPS
from streamdp.store.sqlite import SqliteStore
from streamdp.store.verified_open import verify_copy
from tests.store.test_upgrade import FIXTURES, schema_of, written
from tests.worlds import World

LETTER = "UPDATE sqlite_master SET sql = replace(sql, 'CREATE ', 'CREATe ') WHERE name = ?"


def test_one_letter_of_any_table_index_or_trigger_is_missed(tmp_path: Path) -> None:
    """Also of the table that counts the steps, which is made before them."""
    path = tmp_path / "store.db"
    SqliteStore.open(path, 0).close()
    with closing(sqlite3.connect(path)) as store:
        made = store.execute("SELECT name FROM sqlite_master WHERE sql NOT NULL").fetchall()
    assert ("migration",) in made
    whole = path.read_bytes()
    for name in made:
        path.write_bytes(whole)
        with closing(sqlite3.connect(path, isolation_level=None)) as store:
            store.execute("PRAGMA writable_schema = ON")
            store.execute(LETTER, name)
        with pytest.raises(IntegrityError, match="the schema of the store was altered"):
            SqliteStore.open(path, 0).close()


FORGETS = "CREATE TRIGGER forgets AFTER INSERT ON ledger BEGIN DELETE FROM {}; END"
ADDED = {
    "a trigger that forgets": FORGETS.format("batch"),
    "a trigger on the table of a sink": (
        "CREATE TRIGGER t AFTER INSERT ON sink BEGIN DELETE FROM ledger; END"
    ),
    "a view": "CREATE VIEW v AS SELECT * FROM ledger",
    "an index of the ledger": "CREATE INDEX i ON ledger (job, at)",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(word)",
    "another view for a known one": "DROP VIEW v_gates; CREATE VIEW v_gates AS SELECT 1",
    "a column": "ALTER TABLE batch ADD COLUMN other TEXT",
    "a trigger that is called a table": (
        "PRAGMA writable_schema = ON; INSERT INTO sqlite_master VALUES ('table', 'x', 'x', 0,"
        " 'CREATE TRIGGER x AFTER INSERT ON ledger BEGIN SELECT 1; END')"
    ),
}
PLAIN = """
    CREATE TABLE IF NOT EXISTS sink (release_id TEXT, row INTEGER, PRIMARY KEY (release_id, row));
    CREATE INDEX sink_in_order ON sink (row);
    ANALYZE
"""
"""What sinks make, and what their readers may."""


def changed(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.executescript(script)


def sound(path: Path) -> bool:
    """What `streamdp verify` says."""
    try:
        return all(check.sound for check in examined(connect_to_read(path), default_anchor(path)))
    except IntegrityError:
        return False


@pytest.mark.parametrize("added", ADDED)
def test_nothing_else_is_in_the_file(tmp_path: Path, added: str) -> None:
    """Found when it is opened for work, verified, copied and restored; tables of sinks are not."""
    world = World(tmp_path)
    world.runner.round([world.job()])
    world.store.close()
    changed(world.path, PLAIN)
    SqliteStore.open(world.path, 0).close()
    backup(world.path, tmp_path / "whole.db", verify_copy)
    assert sound(world.path)
    changed(world.path, ADDED[added])
    altered = pytest.raises(IntegrityError, match=r"schema of the store was altered|damaged")
    with altered:
        SqliteStore.open(world.path, 0)
    with altered:
        backup(world.path, tmp_path / "copy.db", verify_copy)
    with altered:
        put_back(world.path, tmp_path / "other.db", 0, verify_copy)
    with altered:
        verify_copy(connect_to_read(world.path))
    assert not sound(world.path)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_nothing_else_is_in_the_file_of_an_earlier_version(fixture: Path, tmp_path: Path) -> None:
    """Its copies too; a trigger is found before it could fire at a step of the upgrade."""
    path = written(fixture, tmp_path)
    backup(path, tmp_path / "whole.db", verify_copy)
    changed(path, FORGETS.format("pause"))
    altered = pytest.raises(
        IntegrityError, match="schema of the store was altered: trigger forgets"
    )
    with altered:
        backup(path, tmp_path / "copy.db", verify_copy)
    version = schema_of(path)
    with altered:
        SqliteStore.open(path, 0)
    assert schema_of(path) == version
    assert (tmp_path / "whole.db").exists()
    assert version <= len(STEPS)
    changed(path, "DROP TRIGGER forgets")
    SqliteStore.open(path, 0).close()
