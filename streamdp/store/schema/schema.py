"""Check of a store's schema: whether this streamdp can read it and has made it."""

from __future__ import annotations

from pathlib import Path

from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError
from streamdp.store.database import connect_to_read
from streamdp.store.schema.migrations import STEPS, VERSIONS, apply, is_current, require_known


def open_to_read(path: Path) -> Database:
    """Open a store of this streamdp's schema for reading only, beside a running daemon.

    Raises:
        StoreError: There is no store at the path, or it has an older schema.
        IntegrityError: It has a newer one.
    """
    database = connect_to_read(path)
    require_known(database)
    if not is_current(database):
        raise StoreError(
            "this store was written by an earlier version of streamdp",
            where=str(path),
            hint="`streamdp run` brings it up to date, and keeps a copy of it",
        )
    return database


def require_schema(database: Database) -> None:
    """Compare the schema with the one that the steps make.

    Raises:
        IntegrityError: A table, index or trigger was changed or removed.
    """
    with Database(memory=True, execute_plugins=False) as made:
        made.execute(VERSIONS)
        for statements in STEPS:
            apply(made, statements)
        wanted = _schema(made)
    if not wanted <= _schema(database):
        raise IntegrityError(
            "the schema of the store was altered",
            hint="restore the store from a backup; what was spent since must be assumed spent",
        )


def _schema(database: Database) -> set[tuple[str, ...]]:
    """Kind, name, table and text of all there is, however SQLite quotes and breaks its lines."""
    rows = database.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(*row[:3], " ".join(str(row[3]).replace('"', "").split())) for row in rows}
