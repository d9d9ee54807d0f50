"""Tables in folders: which files hold the records of the newest version of a table.

`Lake` is the form of a reader; `lakes.delta` and `lakes.iceberg` are such modules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from streamdp.errors import require_extra
from streamdp.types import File

if TYPE_CHECKING:
    import pyarrow as pa

LakeFormat = Literal["delta", "iceberg"]
"""Formats whose `path` is the folder of a table."""

MARK: dict[LakeFormat, str] = {"delta": "_delta_log", "iceberg": "metadata"}
"""Name of what every folder of a table has in it."""


class Lake(Protocol):
    """Reader of tables of one format; each method raises SourceError without a table."""

    def files_of(self, folder: str) -> tuple[File, ...]:
        """Files of the newest version, in the order of their paths."""
        ...

    def schema_of(self, folder: str) -> pa.Schema:
        """Columns that the files of a table have, or would have."""
        ...

    def partition_columns(
        self, folder: str, paths: Sequence[str]
    ) -> Mapping[str, tuple[pa.DataType, Mapping[str, str | None]]]:
        """Columns that are in the log alone: the type, and the text by the path of a file."""
        ...

    def identity(self, folder: str) -> str:
        """Text that no other table has."""
        ...

    def require_columns(self, folder: str, files: Sequence[File]) -> None:
        """Refuse files whose columns of some name are not those of the table."""
        ...


def lake_of(format: LakeFormat) -> Lake:
    """Reader of the tables of a format.

    Raises:
        ConfigurationError: Its library is not installed.
    """
    from streamdp.lakes import delta, iceberg

    if format == "iceberg":
        require_extra("pyiceberg", "iceberg", "sources.format")
        return iceberg
    require_extra("deltalake", "delta", "sources.format")
    return delta


def lies_in_table(path: str) -> LakeFormat | None:
    """Format of the table that a path or the wildcards of a pattern lie in, if any."""
    folder, at = "", os.path.realpath(re.split(r"[*?[]", path)[0] + "x")
    while folder != (folder := os.path.dirname(at)):
        if os.path.isdir(os.path.join(folder, MARK["delta"])):
            return "delta"
        if iceberg_metadata(folder):
            return "iceberg"
        at = folder
    return None


def iceberg_metadata(folder: str) -> list[str]:
    """Names of the metadata files of an Iceberg table; none if a folder is of no such table."""
    try:
        names = os.listdir(os.path.join(folder, MARK["iceberg"]))
    except OSError:
        return []
    return sorted(name for name in names if re.search(r"\.metadata\.json(\.gz)?$", name))
