"""Copies of the store that the daemon makes by itself; what is due follows from the folder."""

from __future__ import annotations

from pathlib import Path

from sqlite_utils import Database

from streamdp.config import Configuration
from streamdp.errors import StreamdpError
from streamdp.store.backup import add_copy, copies, name_of
from streamdp.store.verified_open import verify_copy
from streamdp.types import Log


class Copying:
    """Makes a copy when the newest one is old enough; a failure is told once, and tried again.

    Args:
        configuration: With the section `backup`, or without.
        database: The store.
        log: What was done.
    """

    def __init__(self, configuration: Configuration, database: Database, log: Log) -> None:
        self._section, self._store = configuration.backup, configuration.store.path
        self._database, self._log, self._failed = database, log, ""

    def copy_if_due(self, now: int) -> None:
        """Copy the store if the time has come; never raises for what a copy meets."""
        if self._section is None or not self._is_due(now):
            return
        try:
            made = add_copy(self._store, self._section.path, self._section.keep, now, verify_copy)
        except StreamdpError as error:
            if self._failed != str(error):
                self._log("backup.failed", code=error.code, reason=str(error))
            self._failed = str(error)
            return
        self._failed = ""
        self._log("backup.written", name=made.path.name)

    def _is_due(self, now: int) -> bool:
        """Whether the newest copy is old; one of the future was made by a clock that was wrong."""
        assert self._section is not None  # noqa: S101
        newest = newest_copy(self._section.path, self._store, self._database)
        return newest is None or abs(now - newest) >= self._section.every


def newest_copy(folder: Path, store: Path, database: Database) -> int | None:
    """When the newest copy of a store was made; None without one."""
    found = copies(folder, name_of(database, store))
    return found[-1].at if found else None
