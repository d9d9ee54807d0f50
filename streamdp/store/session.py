"""The session of the one process that works on a store: opened, fenced off, alive, closed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock, local
from typing import Self

from streamdp.database import Database
from streamdp.store.anchor.anchor import Anchor, default_anchor
from streamdp.store.anchor.check import charges_after, state_of
from streamdp.store.clock_guard import keep_time
from streamdp.store.database import beside, transaction, truncate_log
from streamdp.store.verified_open import open_store, taken_over


class StoreSession:
    """Database and anchor, and the transaction that only their newest holder may commit.

    Every opening for work raises the store's epoch; a process that was suspended while another
    took over finds its own epoch outdated inside the transaction, and writes nothing.

    Several threads may use it: each has a connection of its own, and one writes at a time.
    """

    def __init__(self, database: Database, anchor: Anchor, longest_step: int | None = None) -> None:
        self._first, self._spare, self._own = database, list[Database](), local()
        self._own.database = database
        self._turn = RLock()
        self._anchor, self._longest_step = anchor, longest_step
        (self._epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
        self._erased = truncate_log(database)

    @classmethod
    def open(
        cls,
        path: Path,
        now: int,
        anchor: Path | None = None,
        longest_step: int | None = None,
    ) -> Self:
        """Open for work: migrate, verify all that is remembered and the anchor, take a new epoch.

        Args:
            path: The SQLite file; made if there is none and no anchor knows of one.
            now: POSIX time.
            anchor: The anchor's file, by default beside the store.
            longest_step: Seconds that the clock may be ahead of the last time the store knew when
                it seals batches or gives a sign of life; None for any.

        Raises:
            StoreError: The file cannot be used.
            LockedError: Another process writes to the anchor right now.
            IntegrityError: The store is damaged, altered, newer than this streamdp, or does not
                stand where its anchor was left.
        """
        return cls(*open_store(path, anchor or default_anchor(path), now), longest_step)

    @property
    def database(self) -> Database:
        """The connection of the calling thread, which sees what was committed.

        Raises:
            StoreError: It cannot be opened.
        """
        found: Database | None = getattr(self._own, "database", None)
        if found is None:
            found = self._spare.pop() if self._spare else beside(self._first)
            self._own.database = found
        return found

    def leave(self) -> None:
        """Give the connection of the calling thread to the next one that comes."""
        found: Database | None = getattr(self._own, "database", None)
        if found is not None and found is not self._first:
            del self._own.database
            self._spare.append(found)

    def close(self) -> None:
        """Close the connections and the anchor."""
        for each in (*self._spare, self._first):
            each.close()
        self._anchor.close()

    def beat(self, pid: int | None, now: int) -> int:
        """Write a heartbeat; return by how many seconds the clock is behind.

        Raises:
            ClockError: The clock has jumped.
        """
        with self.transaction():
            behind = keep_time(self.database, now, self._longest_step)
            self.database.execute("UPDATE instance SET pid = ?, heartbeat_at = ?", [pid, now])
        if not self._erased:
            self.erase()
        return behind

    def erase(self) -> None:
        """Overwrite what was deleted in the write-ahead log too.

        Where a reader holds the log, the next sign of life tries again.
        """
        self._erased = truncate_log(self.database)

    def stopped(self, now: int) -> None:
        """Note that the daemon stopped on purpose."""
        with self.transaction():
            self.database.execute("UPDATE instance SET pid = NULL, stopped_at = ?", [now])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that only the newest holder of the store may commit.

        What it adds to the ledger is in the anchor, on the disk, before it is committed.
        """
        with self._turn, transaction(self.database):
            base = state_of(self.database)
            if base.epoch != self._epoch:
                raise taken_over()
            yield
            target = state_of(self.database)
            if target != base:
                self._anchor.intend(base, target, charges_after(self.database, base.seq))
