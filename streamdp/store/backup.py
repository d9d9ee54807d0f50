"""Copies of a store: made beside a running daemon, whole, private, and verified."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from sqlite_utils import Database

from streamdp.disk import PRIVATE, sync
from streamdp.errors import StoreError
from streamdp.store.database import connect_to_read, translate


def backup(source: Path, target: Path, check: Callable[[Database], None]) -> None:
    """Copy a store into one file of mode 0600 and check the copy.

    It is made in a folder of its own, where nobody else can have put a link in its way.
    The copy is what the last committed transaction left. It holds what the store holds: releases,
    budget, learned states, and the key of its digests.

    Raises:
        StoreError: There is such a file, or it cannot be written.
        IntegrityError: The store, hence the copy, is damaged or altered.
    """
    if os.path.lexists(target):
        raise StoreError("this file is there", where=str(target), hint="name a new one")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as own:
            copied = Path(own) / target.name
            os.close(os.open(copied, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
            _copy(source, copied, check)
            sync(copied)
            copied.rename(target)
        sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise translate(error, target) from None


def put_back(source: Path, store: Path, now: int, check: Callable[[Database], None]) -> None:
    """Put a copy in the place of a store, whose files stay beside it under another name.

    Raises:
        StoreError: It cannot be written.
        IntegrityError: The copy is damaged or altered.
    """
    fresh = store.with_name(f"{store.name}.restored-{now}")
    backup(source, fresh, check)
    try:
        for suffix in ("", "-wal", "-shm"):
            part = store.with_name(store.name + suffix)
            if part.exists():
                part.rename(store.with_name(f"{store.name}.replaced-{now}{suffix}"))
        fresh.rename(store)
        sync(store.parent)
    except OSError as error:
        raise translate(error, store) from None


def _copy(source: Path, target: Path, check: Callable[[Database], None]) -> None:
    read, copy = connect_to_read(source), sqlite3.connect(target, isolation_level=None)
    try:
        read.conn.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        check(Database(copy, execute_plugins=False))
    finally:
        copy.close()
        read.close()
