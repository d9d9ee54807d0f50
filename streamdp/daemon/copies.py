"""Copies of the store that the daemon makes by itself, when the newest one is old enough."""

from __future__ import annotations

from streamdp.config import Configuration
from streamdp.daemon.places import Place, place_of
from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.types import Log


class Copying:
    """Makes a copy when the newest is old; logs a failure once, and tries again.

    Args:
        configuration: With the section `backup`, or without.
        database: The store.
        log: What was done.

    `newest` is when the newest copy was made, as far as is known, and `failed` why the last
    attempt failed.
    """

    def __init__(self, configuration: Configuration, database: Database, log: Log) -> None:
        self._section = section = configuration.backup
        self._place = None if section is None else place_of(section, configuration.store.path)
        self._database, self._log, self.failed = database, log, ""
        self.newest: int | None = None

    def copy_if_due(self, now: int) -> None:
        """Copy the store if a copy is due; failures are logged and not raised."""
        if self._section is None or self._place is None:
            return
        try:
            if not self._is_due(self._section.every, self._place, now):
                return
            made = self._place.add(self._section.keep, now)
        except StreamdpError as error:
            if self.failed != str(error):
                self._log("backup.failed", code=error.code, reason=error.line)
            self.failed = str(error)
            return
        self.failed = ""
        self.newest = now
        self._log("backup.written", name=made)

    def _is_due(self, every: int, place: Place, now: int) -> bool:
        """Whether the newest copy is old, or dated in the future by a clock that was wrong.

        A storage is asked when the newest copy that is known of has grown old.
        """
        if self.newest is None or abs(now - self.newest) >= every:
            self.newest = place.newest(self._database)
        return self.newest is None or abs(now - self.newest) >= every
