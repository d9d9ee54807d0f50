"""One daemon a store: an advisory lock on a file beside it, freed by the kernel at any death."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamdp.disk import open_file
from streamdp.errors import LockedError, StoreError


@contextmanager
def store_lock(store: Path) -> Iterator[None]:
    """Hold the lock of a store.

    Raises:
        LockedError: Another process holds it; nothing was changed.
        StoreError: The lock file cannot be made.
    """
    path = _lock_of(store)
    try:
        file = open_file(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise StoreError(
            f"the lock of the store cannot be made: {error.strerror}",
            where=str(path),
            hint="the folder of the store must exist and be writable by this user",
        ) from None
    try:
        if not _taken(file):
            raise LockedError(
                "another streamdp works on this store",
                where=str(path),
                hint="`streamdp status` shows it; stop it first, or let it do the work",
            )
        yield
    finally:
        os.close(file)


def is_locked(store: Path) -> bool:
    """Whether a process works on the store right now."""
    if not _lock_of(store).exists():
        return False
    try:
        with store_lock(store):
            return False
    except LockedError:
        return True


def _lock_of(store: Path) -> Path:
    """Path of the lock of a file, the same by whatever link the file is reached."""
    store = store.resolve()
    return store.with_name(store.name + ".lock")


def _taken(file: int) -> bool:
    """Take the lock, retrying for a moment, since `is_locked` holds it for an instant."""
    for _ in range(5):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.05)
        else:
            return True
    return False
