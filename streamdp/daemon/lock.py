"""One daemon a store: an advisory lock on a file beside it, freed by the kernel at any death."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamdp.disk import lock, open_file
from streamdp.errors import LockedError, StoreError

_PATIENCE, _PAUSE = 0.2, 0.05
"""Seconds: `is_locked` holds the lock for an instant."""


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
        try:
            lock(file, _PATIENCE, _PAUSE)
        except BlockingIOError:
            raise LockedError(
                "another streamdp works on this store",
                where=str(path),
                hint="`streamdp status` shows it; stop it first, or let it do the work",
            ) from None
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
