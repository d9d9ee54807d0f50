"""Batches that are folders, one for each value of a partition column: `day=2013-01-01`."""

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
from streamdp.files import names, resolve, skipped
from streamdp.sections.section import Section
from streamdp.sources.files import file_digest
from streamdp.sources.windows import is_complete, with_key
from streamdp.types import Batch, Skipped


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
