"""Open a store for reading, if this streamdp knows its schema."""

from __future__ import annotations

from pathlib import Path

from streamdp.database import Database
from streamdp.errors import StoreError
from streamdp.store.database import connect_to_read
from streamdp.store.schema.migrations import is_current, require_known


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
