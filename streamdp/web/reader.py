"""The store as the page reads it: read-only, without private columns.

`store.database` restricts the connection: SQLite refuses every statement that would read a
private column or do anything but read.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from streamdp.config import Configuration, load
from streamdp.database import Database
from streamdp.errors import IntegrityError, StoreError, StreamdpError
from streamdp.reports.releases.changes import Kept, around_last
from streamdp.store.database import OwnedConnection, connect_to_read, restrict, snapshot
from streamdp.store.ledger import chain
from streamdp.store.migrations import is_current
from streamdp.store.reading.reports import NOTHING, Spent, spent_of_job
from streamdp.types import Column, Release, ReleaseKind
from streamdp.web.log import EventCounts

Found = TypeVar("Found")
KindOf = Callable[[Configuration, str], ReleaseKind]

LOOK_AGAIN = 2.0
"""Seconds after which the configuration's file is looked at again."""


@dataclass(frozen=True, slots=True)
class View:
    """View of one request: all it reads is of one moment.

    Args:
        configuration: The last that could be used.
        database: The store.
        now: POSIX time.
        reader: Remembers what is dear to compute.
    """

    configuration: Configuration
    database: Database
    now: int
    reader: Reader

    def spent(self, job: str) -> Spent:
        """Sum of a job's charges."""
        return self.reader.spent(self.database, job)

    def columns(self, job: str) -> Sequence[Column]:
        """Columns that the kind of a job declares."""
        return self.kind(job).columns

    def kind(self, job: str) -> ReleaseKind:
        """Kind of a job."""
        return self.reader.kind(self.configuration, job)

    def head(self) -> int:
        """Number of the last row of the ledger."""
        return chain.head(self.database)[0]

    def once(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """Value under a key, computed once for each state of the ledger."""
        return self.known(key, self.head(), compute)

    def lately(self, key: Hashable, compute: Callable[[], Found]) -> Found:
        """Value under a key, computed at most once a minute."""
        return self.known(key, (self.head(), self.now // 60), compute)

    def measured(self, job: str, newest: Release) -> Kept:
        """What was measured of a job's last releases: kept of the job that is looked at last."""
        about = self.configuration, self.database, job, newest
        return lambda: self.known("measured", (job, newest.id), lambda: around_last(*about))

    def known(self, key: Hashable, state: Hashable, compute: Callable[[], Found]) -> Found:
        """Value under a key, computed once for each state, and for each configuration."""
        return self.reader.once(self.configuration, key, state, compute)


@dataclass
class Reader:
    """Opens the store for each thread, and the configuration when its file changes.

    Args:
        path: The configuration's file.
        configuration: What was loaded from it.
        kind_of: Makes the kind of a job.
        now: POSIX time.
        stale: Code of the error if the file has changed and cannot be used.
    """

    path: Path
    configuration: Configuration
    kind_of: KindOf
    now: Callable[[], int] = lambda: int(time.time())
    stale: str = ""
    events: EventCounts = field(default_factory=EventCounts)
    _looked: float = 0.0
    _stamp: tuple[int, int] = (0, 0)
    _store: int = 0
    _local: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _computing: dict[Hashable, threading.Lock] = field(default_factory=dict)
    _spent: dict[str, Spent] = field(default_factory=dict)
    _known: dict[Hashable, tuple[Configuration, Hashable, object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Remember which file was loaded."""
        self._stamp, self._looked = self._stamp_of(self.path), time.monotonic()

    @contextmanager
    def look(self) -> Iterator[View]:
        """View of one moment of the store while the block lasts.

        Raises:
            StoreError: There is no store, or it cannot be read.
        """
        configuration = self._current()
        path = configuration.store.path
        database = self._database(path)
        try:
            with snapshot(database):
                yield View(configuration, database, self.now(), self)
        except sqlite3.Error as error:
            self._forget()
            raise StoreError(f"the store cannot be read: {error}") from None
        if self._local.resting:
            self._forget()
            if _log_of(path).exists():
                raise StoreError("a daemon has taken the store up; look again")

    def _forget(self) -> None:
        self._local.database.conn.close()
        self._local.database = None

    def spent(self, database: Database, job: str) -> Spent:
        """Sum of the charges of a job; rows that were added up once are not read again."""
        known = self._spent.get(job, NOTHING)
        found = spent_of_job(database, job, known)
        if found.seq < known.seq:
            found = spent_of_job(database, job)
        self._spent[job] = found
        return found

    def kind(self, configuration: Configuration, job: str) -> ReleaseKind:
        """Kind of a job; it is made once for each configuration."""
        kind_of = self.kind_of
        return self.once(configuration, ("kind", job), None, lambda: kind_of(configuration, job))

    def once(
        self,
        configuration: Configuration,
        key: Hashable,
        state: Hashable,
        compute: Callable[[], Found],
    ) -> Found:
        """Value for a configuration and a state of the store; one thread computes, others wait."""

        def found() -> tuple[Configuration, Hashable, object] | None:
            known = self._known.get(key)
            is_of = known is not None and known[0] is configuration and known[1] == state
            return known if is_of else None

        known = found()
        if known is None:
            with self._lock:
                computing = self._computing.setdefault(key, threading.Lock())
            with computing:
                known = found() or (configuration, state, compute())
                self._known[key] = known
        return known[2]  # type: ignore[return-value]

    def _current(self) -> Configuration:
        with self._lock:
            if time.monotonic() - self._looked > LOOK_AGAIN:
                self._looked, stamp = time.monotonic(), self._stamp_of(self.path)
                if stamp != self._stamp:
                    self._stamp = stamp
                    try:
                        self.configuration, self.stale = load(self.path), ""
                    except StreamdpError as error:
                        self.stale = error.code
            return self.configuration

    def _database(self, path: Path) -> Database:
        """This thread's connection, renewed when the file was replaced."""
        stamp = self._stamp_of(path)
        database: Database | None = getattr(self._local, "database", None)
        if database is None or self._local.stamp[0] != stamp[0]:
            database, self._local.resting = _open(path)
            if not is_current(database):
                raise IntegrityError("this store was written by another version of streamdp")
            restrict(database)
            self._local.database, self._local.stamp = database, stamp
            if stamp[0] != self._store:
                self._store = stamp[0]
                self._spent.clear()
                self._known.clear()
        return database

    @staticmethod
    def _stamp_of(path: Path) -> tuple[int, int]:
        try:
            found = os.stat(path)
        except OSError:
            return (0, 0)
        return found.st_ino, found.st_mtime_ns


def _open(path: Path) -> tuple[Database, bool]:
    """Open the store; also whether it is at rest, not open elsewhere and not writable here.

    SQLite reads a store only with its log of writes, which it would have to make. A store that
    rests has none, and is read as a file that does not change; `look` finds out if it did.
    """
    try:
        return connect_to_read(path), False
    except StoreError:
        if not path.exists() or _log_of(path).exists() or os.access(path.parent, os.W_OK):
            raise
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    resting = sqlite3.connect(uri, uri=True, factory=OwnedConnection)
    return Database(resting, execute_plugins=False), True


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")
