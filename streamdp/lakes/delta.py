"""Delta tables: which files hold the records of the newest version of a table in a folder.

The log of a table says which files are its records; others in its folder are older versions, and to
read them too would count a record twice. A rewritten file holds the same records, so files do not
tell a table from another: its identifier does, which is in the log and stays whatever is done to
the table or to its folder's name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from streamdp.errors import SourceError
from streamdp.files import file_at
from streamdp.lakes import MARK
from streamdp.types import File

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

READ = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "domainMetadata"})
"""Features of a table under which its files are its records, all of them and no others."""


def files_of(folder: str) -> tuple[File, ...]:
    """Files of the newest version, in the order of their paths.

    Raises:
        SourceError: There is no table, or its files alone do not say which its records are.
    """
    found: dict[str, File] = {}
    home = os.path.realpath(folder)
    table = _table(folder)
    places = _places(table)
    if not _with_deletions(folder, table.version()).isdisjoint(places):
        raise _unread(folder, ["deletionVectors"])
    for place in places:
        path = os.path.join(folder, place)
        file = file_at(path)
        outside = os.path.commonpath([os.path.realpath(path), home]) != home
        if "://" in place or os.path.isabs(place) or file is None or outside:
            raise SourceError(
                "a file of the table is not in its folder",
                where=folder,
                hint="was it vacuumed, or is the table a shallow clone of another?",
            )
        if file.id in found:
            raise SourceError(
                "the log of the table names one file by two names, so its records count twice",
                where=folder,
                hint="write the table anew, with a writer that names each file once",
            )
        found[file.id] = file
    return tuple(sorted(found.values(), key=lambda file: file.path))


def schema_of(folder: str) -> pa.Schema:
    """Columns of the table, those that divide it into folders too.

    Raises:
        SourceError: There is no table.
    """
    import pyarrow as pa

    return pa.schema(_table(folder).schema().to_arrow())


def partition_columns(
    folder: str, paths: Sequence[str]
) -> Mapping[str, tuple[pa.DataType, Mapping[str, str | None]]]:
    """Columns by which the table is divided, whose values stand in its log and in no file.

    The name of a folder is none of them: writers choose it as they like, and the log has the type.

    Raises:
        SourceError: There is no table, or a file is none of its newest version.
    """
    import pyarrow as pa

    table = _table(folder)
    within = list(table.metadata().partition_columns)
    if not within:
        return {}
    schema = pa.schema(table.schema().to_arrow())
    actions = pa.table(table.get_add_actions(flatten=True))
    known = [os.path.realpath(os.path.join(folder, place)) for place in _places(table)]
    if not set(paths) <= set(known):
        raise SourceError(
            "the table was rewritten since its files were looked up",
            where=folder,
            hint="nothing is charged; the next run reads the newest version",
        )
    found = {}
    for name in within:
        column = actions.column(f"partition.{name}")
        try:
            texts = column.cast(pa.string()).to_pylist()
        except pa.ArrowException:
            raise SourceError(
                f"the Delta table is divided by column {name!r} of type {column.type}",
                where=folder,
                hint="divide it by text, numbers, dates or timestamps",
            ) from None
        found[name] = (schema.field(name).type, dict(zip(known, texts, strict=True)))
    return found


def _places(table: DeltaTable) -> list[str]:
    """Paths of the files of a version, below the table's folder."""
    named = table.get_add_actions(flatten=True).column("path").to_pylist()
    return [unquote(each) for each in named]


def _with_deletions(folder: str, version: int) -> set[str]:
    """Paths of files of which the log deletes records, whether or not its protocol says so.

    The library tells them too, but ends in an error where it cannot read a statistic, which one
    record may bring about. Commits that the newest checkpoint of a single file holds are not read.

    Raises:
        SourceError: The log cannot be read.
    """
    log = Path(folder, MARK["delta"])
    names = sorted(str(path.relative_to(log)) for path in log.rglob("*"))
    whole = [name for name in names if _CHECKPOINT.fullmatch(name) and int(name[:20]) <= version]
    names = [name for name in names if not whole or name >= whole[-1] or not name[:20].isdigit()]
    found: set[str] = set()
    try:
        for name in names:
            if name.endswith(".json"):
                found |= _deletions_of_commit(log / name)
            elif name.endswith(".parquet"):
                found |= _deletions_of_checkpoint(log / name)
    except (OSError, ValueError):
        raise _unreadable(folder) from None
    return found


_CHECKPOINT = re.compile(r"\d{20}\.checkpoint\.parquet")


def _deletions_of_commit(path: Path) -> set[str]:
    content = path.read_bytes()
    if b"deletionVector" not in content:
        return set()
    added = [json.loads(line).get("add") or {} for line in content.splitlines() if line.strip()]
    return {unquote(each["path"]) for each in added if each.get("deletionVector")}


def _deletions_of_checkpoint(path: Path) -> set[str]:
    from pyarrow import parquet

    kind = "add.deletionVector.storageType"
    with parquet.ParquetFile(path) as file:
        if all(file.schema.column(place).path != kind for place in range(len(file.schema))):
            return set()
        added = file.read(["add.path", kind]).flatten().flatten().flatten()
    pairs = zip(added["add.path"].to_pylist(), added[kind].to_pylist(), strict=True)
    return {unquote(place) for place, vector in pairs if vector is not None}


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
        raise _unreadable(folder) from None
    unread = sorted(features - READ) + (["columnMapping"] if mapping != "none" else [])
    if unread:
        raise _unread(folder, unread)
    return table


def _unreadable(folder: str) -> SourceError:
    return SourceError(
        "this Delta table cannot be read", where=folder, hint="is its log whole and readable?"
    )


def _unread(folder: str, features: Sequence[str]) -> SourceError:
    return SourceError(
        f"this Delta table uses {', '.join(features)}: its files alone do not tell its records",
        where=folder,
        hint="name it in Spark's catalog and read it with engine: spark, or write it without",
    )
