"""Places of copies of the store: a folder, or objects of a storage below one address."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.errors import SourceError, StoreError, StreamdpError
from streamdp.objects import copy, is_address, listed, parsed, remove, write
from streamdp.store.backup import (
    Copy,
    add_copy,
    copies,
    copy_at,
    forget_unfinished,
    name_of,
    newest_at,
    superfluous,
)
from streamdp.store.section import Backup
from streamdp.store.verified_open import verify_copy
from streamdp.types import File, Log


class CopyPlace(Protocol):
    """Where copies of a store lie."""

    def newest(self, database: Database) -> int | None:
        """When the newest copy of the store was made (POSIX time); None without one.

        Raises:
            StreamdpError: The place cannot be looked at.
        """
        ...

    def add(self, keep: int, now: int) -> str:
        """Add a verified copy, remove the oldest ones beyond `keep`, and return its name.

        Raises:
            StreamdpError: It cannot be written, or the store is damaged; older copies are there.
        """
        ...


@dataclass(frozen=True, slots=True)
class Folder:
    """Copies in a folder.

    Args:
        folder: Made if it is not there.
        store: The file that is copied.
    """

    folder: Path
    store: Path

    def newest(self, database: Database) -> int | None:
        """See `CopyPlace`."""
        return newest_at(copies(self.folder, name_of(database, self.store)), database)

    def add(self, keep: int, now: int) -> str:
        """See `CopyPlace`."""
        return str(add_copy(self.store, self.folder, keep, now, verify_copy).path)


@dataclass(frozen=True, slots=True)
class Objects:
    """Copies as objects; each is made beside the store, verified, and written whole.

    Args:
        address: Above the copies.
        store: The file that is copied.
    """

    address: str
    store: Path

    def newest(self, database: Database) -> int | None:
        """See `CopyPlace`."""
        found = self._there(name_of(database, self.store))
        return newest_at([each for each, _ in found], database)

    def add(self, keep: int, now: int) -> str:
        """See `CopyPlace`."""
        with suppress(OSError):
            forget_unfinished(self.store.parent, self.store.stem, now)
        with _beside(self.store) as own:
            made = add_copy(self.store, own, 1, now, verify_copy).path
            target, size = f"{self.address}/{made.name}", made.stat().st_size
            there = self._written(made, target)
        sizes = {file.path: file.state.partition(":")[0] for _, file in there}
        if sizes.get(target) != str(size):
            self._take_back(target)
            raise StoreError(
                "the copy is not in the storage as it was written",
                where=target,
                hint="may this user list, read and remove objects there?",
            )
        old_ones = superfluous([each for each, _ in there], made.name, keep)
        for old in (file for each, file in there if each in old_ones):
            with suppress(SourceError):
                remove(old)
        return target

    def _written(self, made: Path, target: str) -> list[tuple[Copy, File]]:
        """Write a copy; return all that are there, oldest first."""
        try:
            with made.open("rb") as content:
                write(parsed(target), content)
            return self._there(made.name.rsplit("-", 3)[0])
        except BaseException:
            self._take_back(target)
            raise

    def _take_back(self, target: str) -> None:
        """Remove a part of a copy, which would be taken for the newest."""
        with suppress(SourceError):
            for part in listed(parsed(target)):
                remove(part)

    def _there(self, name: str) -> list[tuple[Copy, File]]:
        """Copies of a store, oldest first."""
        files = listed(parsed(f"{self.address}/{name}-*.db"))
        found = ((copy_at(Path(file.path), name), file) for file in files)
        return sorted((each, file) for each, file in found if each is not None)


def place_of(section: Backup, store: Path) -> CopyPlace:
    """The place that the configuration names."""
    if is_address(section.path):
        return Objects(section.path, store)
    return Folder(Path(section.path), store)


@contextmanager
def fetched(path: str, store: Path) -> Iterator[Path]:
    """A copy as a file: itself, or an object as a file beside the store, which is gone afterwards.

    Raises:
        SourceError: There is no such object, or it cannot be read.
        StoreError: There is no such file, or no room for the object.
    """
    if not is_address(path):
        if not Path(path).is_file():
            raise StoreError("there is no such copy", where=path, hint="name the file of a backup")
        yield Path(path)
        return
    objects = listed(parsed(path))
    if len(objects) != 1:
        raise SourceError("there is no such copy", where=path, hint="name one object")
    with _beside(store) as own:
        target = own / objects[0].path.rpartition("/")[2]
        with target.open("xb") as file:
            copy(objects[0], file)
        yield target


@contextmanager
def _beside(store: Path) -> Iterator[Path]:
    """A folder of this user's alone, on the volume of the store."""
    try:
        own = tempfile.TemporaryDirectory(dir=store.parent, prefix=f".{store.stem}.")
    except OSError as error:
        raise StoreError(
            f"a copy cannot be made beside the store: {error.strerror or 'the system refused'}",
            where=str(store.parent),
            hint="look at free space and at the permissions of the folder",
        ) from None
    with own as name:
        yield Path(name)


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

    def _is_due(self, every: int, place: CopyPlace, now: int) -> bool:
        """Whether the newest copy is old, or dated in the future by a clock that was wrong.

        A storage is asked when the newest copy that is known of has grown old.
        """
        if self.newest is None or abs(now - self.newest) >= every:
            self.newest = place.newest(self._database)
        return self.newest is None or abs(now - self.newest) >= every
