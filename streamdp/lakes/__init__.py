"""Tables in folders: which files hold the records of the newest version of a table.

`Lake` is the form of a reader; `lakes.delta` and `lakes.iceberg` are such modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from streamdp.errors import require_extra
from streamdp.lakes.folders import LakeFormat
from streamdp.types import File

if TYPE_CHECKING:
    import pyarrow as pa


class Lake(Protocol):
    """Reader of tables of one format; each method raises SourceError without a table."""

    def files_of(self, folder: str) -> tuple[File, ...]:
        """Files of the newest version, in the order of their paths."""
        ...

    def schema_of(self, folder: str) -> pa.Schema:
        """Columns that the files of a table have, or would have."""
        ...

    def placed(
        self, folder: str, paths: Sequence[str]
    ) -> Mapping[str, tuple[pa.DataType, Mapping[str, str | None]]]:
        """Columns that the log places: the type, and the text of the value by the file's path."""
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
