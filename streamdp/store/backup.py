"""Make and restore copies of a store: beside a running daemon, atomic, private, verified.

A copy knows where its ledger stood, which is its place in the anchor: a store that is put back
from it is found to be behind, and what was spent since is charged. Copies in a folder of copies
have that place in their names, which orders them whatever clocks said.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from streamdp.database import Database
from streamdp.disk import PRIVATE, make_folder, sync
from streamdp.errors import StoreError
from streamdp.store.anchor import state_of
from streamdp.store.database import OwnedConnection, connect_to_read, translate

Check = Callable[[Database], None]

TIME = "%Y%m%dT%H%M%SZ"
_COPY = re.compile(r"-(\d{6,})-(\d{9,})-(\d{8}T\d{6}Z)\.db")

FORGOTTEN = 86_400
"""Seconds after which an unfinished copy is that of a process that died."""


@dataclass(frozen=True, slots=True, order=True)
class Copy:
    """A copy in a folder of copies, in the order of what is spent in it.

    Args:
        epoch: How often the store had been opened for work.
        seq: Last row of its ledger.
        at: When it was made (POSIX time).
        path: The file.
    """

    epoch: int
    seq: int
    at: int
    path: Path = field(compare=False)


def copies(folder: Path, name: str) -> list[Copy]:
    """Copies of one store in a folder, oldest first; other files are not looked at.

    Args:
        folder: It need not be there.
        name: Of the store, see `name_of`.
    """
    paths = folder.iterdir() if folder.is_dir() else ()
    found = (copy_at(path, name) for path in paths if path.is_file())
    return sorted(copy for copy in found if copy is not None)


def copy_at(path: Path, name: str) -> Copy | None:
    """A copy by the name of its file; None if it is none of the store.

    Args:
        path: Of the file.
        name: Of the store, see `name_of`.
    """
    match = _COPY.fullmatch(path.name.removeprefix(name))
    if match is None or not path.name.startswith(name):
        return None
    at = datetime.strptime(match[3], TIME).replace(tzinfo=UTC)
    return Copy(int(match[1]), int(match[2]), int(at.timestamp()), path)


def newest_at(there: Sequence[Copy], database: Database) -> int | None:
    """When the newest copy of a store was made (POSIX time); None without one.

    A copy of a later epoch is of a life that the store has lost: its anchor is a new one.

    Args:
        there: Copies, oldest first.
        database: The store.
    """
    epoch = state_of(database).epoch
    times = [each.at for each in there if each.epoch <= epoch]
    return times[-1] if times else None


def superfluous(there: Sequence[Copy], made: str, keep: int) -> list[Copy]:
    """The oldest copies beyond a number, without the one of this name, which was made just now."""
    others = [each for each in there if each.path.name != made]
    return others[: max(len(there) - keep, 0)]


def name_of(database: Database, store: Path) -> str:
    """Prefix of the names of a store's copies: its file's name and its identity."""
    (identity,) = database.execute("SELECT store_id FROM instance").fetchone()
    return f"{store.stem}-{identity[:8]}"


def add_copy(store: Path, folder: Path, keep: int, now: int, check: Check) -> Copy:
    """Add a copy to a folder of copies, and remove the oldest ones beyond a number.

    Args:
        store: Its file.
        folder: Made if it is not there.
        keep: How many copies stay.
        now: POSIX time.
        check: Looks at the copy; what it refuses replaces no older one.

    Raises:
        StoreError: It cannot be written; all older copies are there.
        IntegrityError: The store, hence the copy, is damaged or altered.
    """

    def target(database: Database) -> Path:
        check(database)
        state = state_of(database)
        at = datetime.fromtimestamp(now, UTC).strftime(TIME)
        return folder / f"{name_of(database, store)}-{state.epoch:06}-{state.seq:09}-{at}.db"

    try:
        make_folder(folder, PRIVATE)
        forget_unfinished(folder, store.stem, now)
    except OSError as error:
        raise _unwritable(error, folder) from None
    made = _made(store, folder, store.stem, target)
    there = copies(folder, made.name.rsplit("-", 3)[0])
    for old in superfluous(there, made.name, keep):
        with suppress(OSError):
            old.path.unlink(missing_ok=True)
    return next(copy for copy in there if copy.path == made)


def backup(source: Path, target: Path, check: Check) -> None:
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
    if not target.parent.is_dir():
        raise StoreError(
            "there is no such folder", where=str(target.parent), hint="make it, or name another"
        )

    def checked(database: Database) -> Path:
        check(database)
        return target

    _made(source, target.parent, target.name, checked)


def _made(source: Path, folder: Path, name: str, target: Callable[[Database], Path]) -> Path:
    """Copy a store into a folder, under the name that is given to the copy."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as own:
            copied = Path(own) / "copy"
            os.close(os.open(copied, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
            named = _copy(source, copied, target)
            sync(copied)
            copied.rename(named)
        sync(folder)
    except OSError as error:
        raise _unwritable(error, folder) from None
    except sqlite3.Error as error:
        raise translate(error, folder) from None
    return named


def _unwritable(error: OSError, folder: Path) -> StoreError:
    return StoreError(
        f"the copy cannot be written: {error.strerror or 'the system refused'}",
        where=str(folder),
        hint="look at free space and at the permissions of the folder",
    )


def forget_unfinished(folder: Path, name: str, now: int) -> None:
    """Remove the folders that copies leave which were cut off."""
    for path in folder.glob(f".{name}.*"):
        if path.is_dir() and not path.is_symlink() and now - path.stat().st_mtime > FORGOTTEN:
            shutil.rmtree(path, ignore_errors=True)


def put_back(source: Path, store: Path, now: int, check: Check) -> None:
    """Replace a store by a copy; its own files are kept under another name.

    Raises:
        StoreError: It cannot be written.
        IntegrityError: The copy is damaged or altered.
    """
    while any(store.parent.glob(f"{glob.escape(store.name)}.replaced-{now}*")):
        now += 1
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


def _copy(source: Path, target: Path, name: Callable[[Database], Path]) -> Path:
    read = connect_to_read(source)
    copy = sqlite3.connect(target, isolation_level=None, factory=OwnedConnection)
    try:
        read.conn.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        return name(Database(copy, execute_plugins=False))
    finally:
        copy.close()
        read.close()
