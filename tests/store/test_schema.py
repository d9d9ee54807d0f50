"""The schema of a store is the one its steps make, to the last letter."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamdp.errors import IntegrityError
from streamdp.store.sqlite import SqliteStore

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
