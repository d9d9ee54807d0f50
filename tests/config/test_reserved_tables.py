"""A table sink cannot take a table of the store."""

import sqlite3
from pathlib import Path

import pytest
from pydantic import ValidationError

from streamdp.sinks.table import TableSinkSection
from streamdp.store.sqlite import SqliteStore


def test_all_tables_of_the_store_are_refused(tmp_path: Path) -> None:
    """A migration that adds a table must add it to the list of the configuration."""
    SqliteStore.open(tmp_path / "s.db", 1_700_000_000).close()
    connection = sqlite3.connect(tmp_path / "s.db")
    names = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")
    ]
    connection.close()
    assert len(names) > 5
    for name in names:
        with pytest.raises(ValidationError):
            TableSinkSection(kind="table", table=name.upper())
