"""Batches of a table in a folder: windows of time, read from the files of its newest version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamdp.lakes.lake import Lake
from streamdp.sources.windows import WindowSource
from streamdp.types import Batch


@dataclass(frozen=True, slots=True)
class LakeSource:
    """Windows over a table whose files may be rewritten: its records stay those of the window.

    Args:
        windows: Which windows there are.
        folder: Of the table.
        lake: Reader of its format.
    """

    windows: WindowSource
    folder: str
    lake: Lake

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.windows.name

    def batches(self, now: int) -> Iterator[Batch]:
        """Windows in order, all of one version of the table.

        Raises:
            SourceError: The table cannot be read.
        """
        files = self.lake.files_of(self.folder)
        return (replace(batch, files=files) for batch in self.windows.batches(now))
