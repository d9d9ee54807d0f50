"""The SQLite file: how it is opened, and the one way to write to it.

A page or a notebook reads public columns alone; SQLite itself refuses the rest: an authorizer is
asked for each column that a statement would read, and for anything else it would do. The file is
opened read-only besides (`mode=ro`, `query_only`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from streamdp.database import Database
from streamdp.disk import keep_private, lock, open_file
from streamdp.errors import MORE_MEMORY, IntegrityError, StoreError
from streamdp.store.reading.places import add_functions
from streamdp.store.release_rows import whole_rows

ONE_HOST = (
    "the store is on {kind}, which several hosts may share: keep it on a disk of this host, as a"
    " second host that opens it, even to look, can damage it; what is spent is not spent twice"
)
"""Warning: two hosts do not see each other's index of the write-ahead log."""

BUSY_SECONDS = 10.0
"""How long a writer waits for another before it gives up."""

SHORT_MILLISECONDS = 100
"""How long the write-ahead log waits for its readers to be emptied, before it is tried later."""


_PAUSE = 0.001
"""Seconds between two looks at a lock."""


class OwnedConnection(sqlite3.Connection):
    """A connection that ends with its last user: Python 3.13 warns of one that is not closed.

    Args:
        turn: File that `one_writer` locks, if the connection writes.
        place: Path of the database then, with the device and inode that it led to.
    """

    turn: Path | None = None
    place: tuple[Path, tuple[int, int]] | None = None

    def __init__(self, *about: Any, **options: Any) -> None:
        """Open it, with the functions that place batches by their keys and read their rows."""
        super().__init__(*about, **options)
        add_functions(self)
        self.create_function("whole_rows", 2, whole_rows, deterministic=True)

    def __del__(self) -> None:
        """Close it; one that another thread opened ends without a word of Python."""
        with suppress(sqlite3.ProgrammingError):
            self.close()


def connect(path: Path, *, create: bool = True, own_thread: bool = True) -> Database:
    """Open the store for reading and writing; a connection is used by one thread at a time.

    The file has mode 0600. A commit is on the disk when it returns (`synchronous=FULL`: with
    NORMAL the last commits, hence charges, could be lost with the power), and what is deleted is
    overwritten.

    Raises:
        StoreError: It cannot be opened or written.
        IntegrityError: It is not a sound SQLite file.
    """
    try:
        if create:
            _make(path)
        require_one_name(path)
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            factory=OwnedConnection,
            check_same_thread=own_thread,
        )
        connection.turn = path.resolve().with_name(path.resolve().name + ".turn")
        _write_ahead(connection)
        for pragma in (
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            "temp_store=MEMORY",
            "trusted_schema=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.place = path.absolute(), _identity(path)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from None
    return Database(connection, execute_plugins=False, strict=True)


def beside(database: Database) -> Database:
    """Another connection to the store that a connection is open to, for another thread.

    It writes to the file that the first one was opened to, or to none.

    Raises:
        StoreError: It cannot be opened.
    """
    first: sqlite3.Connection = database.conn
    if not isinstance(first, OwnedConnection) or first.place is None:
        raise StoreError("a store in memory has one connection")
    other = connect(first.place[0], create=False, own_thread=False)
    connection: sqlite3.Connection = other.conn
    if isinstance(connection, OwnedConnection):
        connection.place = first.place
    return other


def _make(path: Path) -> None:
    """Make the file if there is none, and take the permissions of others from it."""
    file = open_file(path, os.O_RDWR | os.O_CREAT)
    try:
        keep_private(file)
    finally:
        os.close(file)


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _require_in_place(connection: sqlite3.Connection) -> None:
    """Refuse to write to a file that was moved, removed or replaced since it was opened.

    What is committed to it would be in no store that is ever opened again.

    Raises:
        IntegrityError: The path leads elsewhere by now.
    """
    path, opened = getattr(connection, "place", None) or (Path(), None)
    try:
        moved = opened is not None and _identity(path) != opened
    except OSError:
        moved = True
    if moved:
        raise IntegrityError(
            "the store was moved or replaced while it was open",
            where=str(path),
            hint="bring the newest one back to its place; the next start says whether it is that",
        )


def require_one_name(path: Path) -> None:
    """Refuse a file with hard links: SQLite finds a write-ahead log by its database's name.

    Raises:
        StoreError: It has several names.
    """
    if path.stat().st_nlink > 1:
        raise StoreError(
            "this file has another name too, a hard link",
            where=str(path),
            hint="what was committed under one name is not seen under the other: remove one of"
            " them, or give the other a copy by `streamdp backup`",
        )


def truncate_log(database: Database) -> bool:
    """Bring the write-ahead log into the database and empty it; False if others hold it.

    Until then it holds the pages as they were: what was deleted from them too.
    """
    try:
        with one_writer(database, SHORT_MILLISECONDS / 1000):
            database.execute(f"PRAGMA busy_timeout = {SHORT_MILLISECONDS}")
            (busy, *_) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except (StoreError, sqlite3.Error):
        return False
    finally:
        database.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    return not busy


@contextmanager
def one_writer(database: Database, patience: float = BUSY_SECONDS) -> Iterator[None]:
    """Let no other process of streamdp write to the store, or empty its log, inside the block.

    SQLite before 3.51.3 may lose a commit that resets the log while another process copies the log
    into the database (https://sqlite.org/wal.html#walresetbug): its own locks let the two meet.
    The lock is on a file of its own, which this user alone may open: whoever can read a folder can
    lock it, and closing the database's file would drop the locks that SQLite holds on it.

    Args:
        database: The store; nothing is locked for one that `connect` did not open.
        patience: Seconds to wait for another writer.

    Raises:
        StoreError: The lock was not to be had.
    """
    turn = getattr(database.conn, "turn", None)
    if turn is None:
        yield
        return
    try:
        file = open_file(turn, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise translate(error, turn) from None
    try:
        try:
            lock(file, patience, _PAUSE)
        except BlockingIOError as error:
            raise translate(error, turn) from None
        except OSError:  # a network's file system that locks nothing
            pass
        yield
    finally:
        os.close(file)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the journal mode, retrying: SQLite does not wait here for another process."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(BUSY_SECONDS / 1000)
        else:
            return


def connect_to_read(path: Path) -> Database:
    """Open the store for reading only, beside a running daemon.

    Raises:
        StoreError: There is no store at the path, or nothing in it.
    """
    if not path.exists():
        raise StoreError(
            f"there is no store at {path}",
            hint="`streamdp run` makes it; is this the right configuration?",
        )
    require_one_name(path)
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            timeout=BUSY_SECONDS,
            factory=OwnedConnection,
        )
        tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('instance', 'migration')"
        made = connection.execute(tables).fetchone() == (2,)
    except sqlite3.Error as error:
        raise translate(error, path) from None
    if not made:
        raise StoreError("this store is empty", where=str(path), hint="`streamdp run` fills it")
    return Database(connection, execute_plugins=False)


def require_sound(database: Database) -> None:
    """Check every page of the file, and each index against its table.

    Raises:
        IntegrityError: SQLite finds it damaged.
    """
    (word,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if word != "ok":
        raise translate(sqlite3.DatabaseError(word))


@contextmanager
def transaction(database: Database) -> Iterator[None]:
    """Run the block as one write transaction: all or nothing, with no other writer between.

    The lock is taken at once: a transaction that began by reading and then wrote would fail as
    soon as another process had written.

    Raises:
        StoreError: The disk is full or read-only, or the lock was not to be had.
    """
    connection = database.conn
    try:
        with one_writer(database):
            _require_in_place(connection)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        connection.rollback()
        raise translate(error) from None


@contextmanager
def snapshot(database: Database) -> Iterator[None]:
    """Read all inside the block from one moment, whatever others write meanwhile."""
    database.execute("BEGIN")
    try:
        yield
    finally:
        database.conn.rollback()


def translate(error: Exception, path: Path | None = None) -> StoreError | IntegrityError:
    """An error of SQLite as ours; its words are kept: they name tables and files, no values."""
    where = str(path) if path else ""
    if isinstance(error, MemoryError):
        text = "there is not enough memory for the store"
        return StoreError(text, where=where, hint=MORE_MEMORY)
    if isinstance(error, sqlite3.OperationalError | OSError):
        return StoreError(
            f"the store cannot be used: {error}",
            where=where,
            hint="look at free space, permissions of the file and its folder, and other writers",
        )
    what = "a text in it is none" if isinstance(error, UnicodeDecodeError) else str(error)
    return IntegrityError(
        f"the store is damaged: {what}",
        where=where,
        hint="do not delete it: its ledger says what was spent; restore it from a backup",
    )


PRIVATE = frozenset(
    {
        ("gate_run", "hidden"),
        ("gate_run", "tests"),
        ("gate_run", "asked"),
        ("gate_run", "seal"),
        ("batch", "digest"),
        ("arrival", "state"),
        ("instance", "digest_key"),
    }
)
"""Columns that are never shown: noisy thresholds and test counts, keyed digests."""

_HARMLESS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT,
}


def restrict(database: Database) -> None:
    """Let a connection read what is not private, and do nothing else."""
    database.conn.isolation_level = None
    database.execute("PRAGMA query_only=ON")
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("SELECT 1 FROM json_each('[]')")  # SQLite makes its table now
    database.conn.set_authorizer(authorize)


def authorize(
    action: int, table: str | None, column: str | None, database: str | None, trigger: str | None
) -> int:
    """Authorizer of SQLite: allow reading of what is not private, deny all else."""
    if action == sqlite3.SQLITE_READ and (table, column) not in PRIVATE:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_OK if action in _HARMLESS else sqlite3.SQLITE_DENY
