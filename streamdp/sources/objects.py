"""Batches that are objects of a storage: one object a batch, or all objects of a partition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from streamdp.errors import SourceError
from streamdp.objects.address import Address, parsed
from streamdp.objects.storage import etag, listed
from streamdp.sources.files import is_settled
from streamdp.sources.markers import KEY
from streamdp.types import Batch, File


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
