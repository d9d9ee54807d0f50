"""Batches that are files or objects of a storage, one each, or folders of them, the partitions."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from streamdp.errors import SourceError
from streamdp.files import file_at, names, real_paths, resolve, skipped
from streamdp.objects import Address, etag, listed, parsed
from streamdp.sections.section import Section
from streamdp.sources.windows import KEY, is_complete, with_key
from streamdp.types import Batch, File, Skipped


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that match a pattern, in the order of their names.

    That a file is there is public, and when it was last changed. A file is a batch once it has
    been left alone for a while: until then it may be half written.

    Args:
        name: Of the source.
        pattern: Absolute glob; `**` crosses directories.
        settle: Seconds without a change after which a file is whole.
    """

    name: str
    pattern: str
    settle: int = 0

    growing: ClassVar[bool] = False

    def batches(self, now: int) -> Iterator[Batch]:
        """One batch a file; the key is its path below the fixed part of the pattern.

        A file that has two names comes twice: first by its own, then by that of a link.
        """
        real = real_paths()
        for path in names(self.pattern):
            file = file_at(path, real)
            if file is not None and is_settled(file, self.settle, now):
                yield Batch(self.name, self._key(path), path=path, files=(file,))

    def skipped(self) -> tuple[Skipped, ...]:
        """Names that are no batch, called as a batch would be: that they are there is public."""
        return tuple(Skipped(self._key(path), why) for path, why in skipped(self.pattern))

    def content_digest(self, batch: Batch) -> bytes:
        """SHA-256 of the file; private: the store keeps it under its own key only.

        Raises:
            SourceError: The file cannot be read.
        """
        (file,) = batch.files
        digest = file_digest(file.path)
        if digest is None:
            raise SourceError(
                f"a file of source {self.name} cannot be read",
                where=batch.key,
                hint="check that it is still there, readable by this user, and its name UTF-8",
                source=self.name,
            )
        return digest

    def _key(self, path: str) -> str:
        below = os.path.relpath(path, _fixed_part(self.pattern))
        return os.fsencode(below).decode("utf-8", "backslashreplace")


def is_settled(file: File, settle: int, now: int) -> bool:
    """Whether a file was left alone for so many seconds.

    A time of change far ahead of the clock says nothing; one that is near may be its own.
    """
    return abs(now - file.changed) >= settle


def file_digest(path: str) -> bytes | None:
    """SHA-256 of a file; None if it cannot be read or its name is not UTF-8."""
    try:
        path.encode()
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except (OSError, UnicodeEncodeError):
        return None


def _fixed_part(pattern: str) -> str:
    """Folder above the first wildcard.

    >>> _fixed_part("/data/2013/*/flights-*.csv")
    '/data/2013'
    """
    plain = []
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        plain.append(part)
    return str(Path(*plain))


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """Objects that match a pattern, in the order of their keys.

    That an object is there is public, and when it was last changed.

    Args:
        name: Of the source.
        address: Bucket and pattern.
        settle: Seconds without a change after which an object is a batch.
    """

    name: str
    address: Address
    settle: int = 0

    growing: ClassVar[bool] = False

    def batches(self, now: int) -> Iterator[Batch]:
        """One batch an object; its key is the object's below the fixed part of the pattern.

        Raises:
            SourceError: The storage cannot be asked.
        """
        above = len(f"s3://{self.address.folder()}/")
        for file in listed(self.address):
            if is_settled(file, self.settle, now):
                yield Batch(self.name, file.path[above:], path=file.path, files=(file,))

    def content_digest(self, batch: Batch) -> bytes:
        """Digest of the object's ETag; private: the store keeps it under its own key only.

        Raises:
            SourceError: The storage cannot be asked, or the object is gone.
        """
        return _digest(batch.files)


@dataclass(frozen=True, slots=True)
class ObjectPartitionSource:
    """Objects below `COLUMN=VALUE`, each value a batch once its marker is there.

    Args:
        name: Of the source.
        address: Bucket and pattern with the part `COLUMN=*`, and no wildcard before it.
        column: Of the partition.
        marker: Address with `{key}` of the object that says that a partition is complete.
    """

    name: str
    address: Address
    column: str
    marker: str

    growing: ClassVar[bool] = False

    def batches(self, now: int) -> Iterator[Batch]:
        """One batch a complete partition, in the order of the values.

        Markers are listed before the objects: what is written before a marker that is there, is.

        Raises:
            SourceError: The storage cannot be asked.
        """
        markers = {file.path for file in listed(parsed(self.marker.replace(KEY, "*")))}
        parts: dict[str, list[File]] = {}
        folder = f"s3://{self.address.folder()}/{self.column}="
        for file in listed(self.address):
            parts.setdefault(file.path.removeprefix(folder).partition("/")[0], []).append(file)
        for key, files in sorted(parts.items()):
            if self.marker.replace(KEY, key) in markers:
                yield Batch(self.name, key, path=f"{folder}{key}", files=tuple(files))

    def content_digest(self, batch: Batch) -> bytes:
        """Digest of keys and ETags of all objects; private, as that of one.

        Raises:
            SourceError: The storage cannot be asked, or an object is gone.
        """
        return _digest(batch.files)


def _digest(files: tuple[File, ...]) -> bytes:
    """An empty batch has none: a partition needs its objects before its marker."""
    if not files:
        raise SourceError("a batch has no objects")
    if len(files) == 1:
        return hashlib.sha256(etag(files[0])).digest()
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.path.encode() + b"\0" + etag(file) + b"\0")
    return whole.digest()


class Partitions(Section):
    """Batches that are folders: one for each value of the partition column in the path."""

    partition: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="Name of the partition column in the path: `day` for `day=*/`.",
        examples=["day"],
    )
    marker: str = Field(
        description="Path of a file that says that a partition is complete; `{key}` stands for the"
        " batch's key.",
        examples=["sales/day={key}/_SUCCESS"],
    )

    @field_validator("marker")
    @classmethod
    def _names_its_batch(cls, value: str) -> str:
        return with_key(value)

    def source(self, name: str, pattern: str) -> PartitionSource:
        """The source of a name, of the folders that a pattern names."""
        return PartitionSource(name, pattern, self.partition, self.marker)


@dataclass(frozen=True, slots=True)
class PartitionSource:
    """Folders `COLUMN=VALUE`, in the order of their values; each value is a key.

    A folder fills while it is written, so it is a batch only when its marker is there. Its parts
    are read together: a batch of many files is one release.

    Args:
        name: Of the source.
        pattern: Absolute glob with the part `COLUMN=*`, and no wildcard before it.
        column: Of the partition.
        marker: Path with `{key}` of the file that says that a folder is complete.
    """

    name: str
    pattern: str
    column: str
    marker: str

    growing: ClassVar[bool] = False

    def batches(self, now: int) -> Iterator[Batch]:
        """One batch a complete folder; those that are links come last."""
        above, below = self._cut()
        for folder in names(f"{glob.escape(above)}/{self.column}=*"):
            key = os.path.basename(folder).removeprefix(f"{self.column}=")
            if os.path.isdir(folder) and is_complete(self.marker, key):
                files = resolve(f"{glob.escape(folder)}/{below}")
                yield Batch(self.name, key, path=folder, files=files)

    def skipped(self) -> tuple[Skipped, ...]:
        """Values whose folders hold names that are not read; of the names the reasons alone.

        Privacy: the values are public, names of parts are not.
        """
        above = len(Path(self._cut()[0]).parts)
        return tuple(
            Skipped("".join(Path(path).parts[above : above + 1]).partition("=")[2], why)
            for path, why in skipped(self.pattern)
        )

    def content_digest(self, batch: Batch) -> bytes:
        """SHA-256 of names and contents of all parts; private: kept under the store's key only.

        Raises:
            SourceError: A part cannot be read, or there is none.
        """
        folder = os.path.realpath(batch.path or "")
        whole = hashlib.sha256()
        for part in batch.files:
            digest = file_digest(part.path)
            if digest is None:
                break
            whole.update(os.fsencode(os.path.relpath(part.path, folder)) + b"\0" + digest)
        else:
            if batch.files:
                return whole.digest()
        raise SourceError(
            f"a part of source {self.name} cannot be read",
            where=batch.key,
            hint="the folder needs its files before its marker, readable by this user",
            source=self.name,
        )

    def _cut(self) -> tuple[str, str]:
        """Folder above the partitions, and the pattern below them."""
        parts = Path(self.pattern).parts
        at = parts.index(f"{self.column}=*")
        return str(Path(*parts[:at])), str(Path(*parts[at + 1 :]))
