"""Batches that are files: one file a batch, its name the key."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamdp.errors import SourceError
from streamdp.types import Batch


@dataclass(frozen=True, slots=True)
class FileSource:
    """Files that match a pattern, in the order of their names.

    That a file is there is public. Move files into place whole: a file is a batch as soon as it
    has its name.

    Args:
        name: Of the source.
        pattern: Absolute glob; `**` crosses directories.
    """

    name: str
    pattern: str

    def batches(self, now: int) -> Iterator[Batch]:
        """One batch a file; the key is its path below the fixed part of the pattern."""
        root = _fixed_part(self.pattern)
        for path in sorted(glob.glob(self.pattern, recursive=True)):
            if os.path.isfile(path):
                key = os.fsencode(os.path.relpath(path, root)).decode("utf-8", "backslashreplace")
                yield Batch(self.name, key, path=path)

    def content_digest(self, batch: Batch) -> bytes:
        """SHA-256 of the file; private: the store keeps it under its own key only.

        Raises:
            SourceError: The file cannot be read.
        """
        digest = file_digest(batch.path or "")
        if digest is None:
            raise SourceError(
                f"a file of source {self.name} cannot be read",
                where=batch.key,
                hint="check that it is still there, readable by this user, and its name UTF-8",
                source=self.name,
            )
        return digest


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
