"""Open a store for reading, if this streamdp knows its schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from streamdp.database import Database
from streamdp.errors import StoreError
from streamdp.store.database import OwnedConnection, connect_to_read
from streamdp.store.schema.migrations import is_current, migrate, require_known


def open_to_read(path: Path) -> Database:
    """Open a store for reading only, beside a running daemon.

    One of an earlier schema is read as the next run will make it: from a copy of its own, on a
    temporary file without a name. The store stays as it is.

    Raises:
        StoreError: There is no store at the path.
        IntegrityError: It has a newer schema, or an older one was altered.
    """
    database = connect_to_read(path)
    require_known(database)
    if is_current(database):
        return database
    with closing(database):
        copy = sqlite3.connect("", isolation_level=None, factory=OwnedConnection)
        database.conn.backup(copy)
    upgraded = Database(copy, execute_plugins=False)
    migrate(upgraded, 0, keep=False)
    upgraded.execute("PRAGMA query_only = ON")
    return upgraded


def is_upgrade_pending(path: Path) -> bool:
    """Whether a store has an earlier schema, which the next run brings up to date."""
    with closing(connect_to_read(path)) as database:
        return not is_current(database)


def open_current(path: Path) -> Database:
    """Open a store of this streamdp's own schema for reading only.

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
