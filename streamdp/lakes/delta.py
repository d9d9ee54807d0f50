"""Delta tables: which files hold the records of the newest version of a table in a folder.

The log of a table says which files are its records; others in its folder are older versions, and to
read them too would count a record twice. A rewritten file holds the same records, so files do not
tell a table from another: its identifier does, which is in the log and stays whatever is done to
the table or to its folder's name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from streamdp.errors import SourceError
from streamdp.files import file_at
from streamdp.lakes.folders import MARK
from streamdp.types import File

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

HIVE = True
"""Names of folders tell columns that the files do not have."""

READ = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "domainMetadata"})
"""Features of a table under which its files are its records, all of them and no others."""


def files_of(folder: str) -> tuple[File, ...]:
    """Files of the newest version, in the order of their paths.

    Raises:
        SourceError: There is no table, or its files alone do not say which its records are.
    """
    table = _table(folder)
    found = []
    for named in table.get_add_actions(flatten=True).column("path").to_pylist():
        place = unquote(named)
        file = file_at(os.path.join(folder, place))
        if "://" in place or os.path.isabs(place) or file is None:
            raise SourceError(
                "a file of the table is not in its folder",
                where=folder,
                hint="was it vacuumed, or is the table a shallow clone of another?",
            )
        found.append(file)
    return tuple(sorted(found, key=lambda file: file.path))


def schema_of(folder: str) -> pa.Schema:
    """Columns that the files of a table have, or would have.

    Raises:
        SourceError: There is no table.
    """
    import pyarrow as pa

    table = _table(folder)
    within = set(table.metadata().partition_columns)
    schema = pa.schema(table.schema().to_arrow())
    return pa.schema([field for field in schema if field.name not in within])


def identity(folder: str) -> str:
    """Text that no other table has.

    Raises:
        SourceError: There is no table.
    """
    return f"delta:{_table(folder).metadata().id}"


def require_columns(folder: str, files: Sequence[File]) -> None:
    """Do nothing: tables whose columns were renamed are refused before."""


def _table(folder: str) -> DeltaTable:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    if not os.path.isdir(os.path.join(folder, MARK["delta"])):
        raise SourceError(
            "there is no Delta table", where=folder, hint="name the folder that has _delta_log"
        )
    try:
        table = DeltaTable(folder)
        features = set(table.protocol().reader_features or ())
        mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    except (DeltaError, OSError, ValueError):
        raise SourceError(
            "this Delta table cannot be read", where=folder, hint="is its log whole and readable?"
        ) from None
    unread = sorted(features - READ) + (["columnMapping"] if mapping != "none" else [])
    if unread:
        raise SourceError(
            f"this Delta table uses {', '.join(unread)}: its files alone do not tell its records",
            where=folder,
            hint="name it in Spark's catalog and read it with engine: spark, or write it without",
        )
    return table
