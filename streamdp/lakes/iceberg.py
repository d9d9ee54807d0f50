"""Iceberg tables: which files hold the records of the newest version of a table in a folder.

The manifests of a snapshot say which files are its records; others in the folder are older. A table
is known by the UUID in its metadata. Columns are known by field identifiers: a file that is older
than the renaming of a column has it under its former name.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamdp.errors import SourceError
from streamdp.files import file_at
from streamdp.lakes import MARK, iceberg_metadata
from streamdp.types import File

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

_NUMBERS = (r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?", r"(\d+)-[^/]*\.metadata\.json(\.gz)?")
"""Names of metadata files: of tables without a catalog, and of tables of a catalog."""

_BROKEN = (
    *(OSError, ValueError, TypeError, LookupError, EOFError, AttributeError, ArithmeticError),
    *(AssertionError, NotImplementedError, RecursionError, MemoryError, struct.error, zlib.error),
    SystemError,  # its compiled decoder, of a text whose length is below zero
)
"""Exceptions of the library at bytes that are no metadata or manifest."""

_ID = b"PARQUET:field_id"

_REWRITE = "rewrite the table's data files (rewrite_data_files in Spark, overwrite in PyIceberg)"


def files_of(folder: str) -> tuple[File, ...]:
    """Files of the newest version, in the order of their paths.

    Raises:
        SourceError: There is no table, or its files alone do not say which its records are.
    """
    found: dict[str, File] = {}
    for each in _data_files(folder):
        place = _within(folder, each.file_path)
        file = file_at(place)
        if file is None:
            raise SourceError(
                "a file of the table is not in its folder", where=folder, hint="was it deleted?"
            )
        found[file.id] = file
    return tuple(sorted(found.values(), key=lambda file: file.path))


def schema_of(folder: str) -> pa.Schema:
    """Columns of the newest version, each with its field identifier.

    Raises:
        SourceError: There is no table.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    try:
        found: pa.Schema = schema_to_pyarrow(_metadata(folder).schema())
    except _BROKEN:
        raise _unreadable(folder) from None
    if len({name.lower() for name in found.names}) < len(found.names):
        raise SourceError(
            "two columns of this Iceberg table differ in capitals only",
            where=folder,
            hint="rename one of them, and then " + _REWRITE,
        )
    return found


def partition_columns(
    folder: str, paths: Sequence[str]
) -> Mapping[str, tuple[pa.DataType, Mapping[str, str | None]]]:
    """None: columns are in the files, and the names of folders spell their values otherwise."""
    return {}


def identity(folder: str) -> str:
    """Text that no other table has.

    Raises:
        SourceError: There is no table.
    """
    return f"iceberg:{_metadata(folder).table_uuid}"


def require_columns(folder: str, files: Sequence[File]) -> None:
    """Refuse files in which a name means another column than in the table.

    Raises:
        SourceError: A column of a file was renamed or dropped since, or has no identifier.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    known = set(_columns(schema_of(folder)))
    for file in files:
        try:
            inside = pq.read_schema(file.path)
        except (pa.ArrowException, OSError):
            raise SourceError(
                "this Parquet file cannot be opened", where=file.path, hint="is it whole?"
            ) from None
        for name, number in _columns(inside):
            if number is None or (name, number) not in known:
                raise SourceError(
                    f"column {name!r} of this file is no column of the table today",
                    where=file.path,
                    hint=f"it was renamed or dropped since: {_REWRITE}",
                )


def _columns(fields: Any, above: str = "") -> Iterator[tuple[str, int | None]]:
    """Names and identifiers of columns and of what is in them."""
    for field in fields:
        name = f"{above}{field.name}"
        number = (field.metadata or {}).get(_ID)
        yield name, None if number is None else int(number)
        yield from _beneath(field.type, f"{name}.")


def _beneath(kind: Any, above: str) -> Iterator[tuple[str, int | None]]:
    """Names of the columns within a type; what a list or a map holds has no name that counts."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        yield from _columns(kind, above)
    elif pa.types.is_map(kind):
        yield from _beneath(kind.key_type, f"{above}key.")
        yield from _beneath(kind.item_type, f"{above}value.")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _beneath(kind.value_type, f"{above}item.")


def _data_files(folder: str) -> Iterator[DataFile]:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFileContent, FileFormat

    snapshot = _metadata(folder).current_snapshot()
    if snapshot is None:
        return
    _within(folder, snapshot.manifest_list)
    for each in _entries(folder, snapshot, PyArrowFileIO()):
        if each.content != DataFileContent.DATA:
            raise SourceError(
                "this Iceberg table has delete files: its files alone do not tell its records",
                where=folder,
                hint=f"{_REWRITE}, and set write.delete.mode, write.update.mode and"
                " write.merge.mode to copy-on-write",
            )
        if each.file_format != FileFormat.PARQUET:
            raise SourceError(
                "a file of this Iceberg table is no Parquet", where=folder, hint=_REWRITE
            )
        yield each


def _entries(folder: str, snapshot: Any, io: FileIO) -> Iterator[DataFile]:
    """Files of a snapshot, those of deletes too."""
    try:
        for manifest in snapshot.manifests(io):
            _within(folder, manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(io, discard_deleted=True):
                yield entry.data_file
    except _BROKEN:
        raise _unreadable(folder) from None


def _metadata(folder: str) -> TableMetadata:
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table.metadata import TableMetadataUtil

    path = os.path.join(folder, MARK["iceberg"], _newest(folder))
    try:
        read = Path(path).read_bytes()
        text = gzip.decompress(read) if read[:2] == b"\x1f\x8b" else read
        found = json.loads(text)
        metadata = TableMetadataUtil.parse_obj(found)
    except (*_BROKEN, ValidationError):
        raise _unreadable(folder) from None
    if "table-uuid" not in found:
        raise SourceError(
            "this Iceberg table has no UUID, so it cannot be told from others",
            where=path,
            hint="upgrade it to format version 2",
        )
    _within(folder, f"{metadata.location.rstrip('/')}/{MARK['iceberg']}")
    return metadata


def _newest(folder: str) -> str:
    """Name of the newest metadata file.

    A hint of the version may be older than the table, so it is not read.
    """
    names = iceberg_metadata(folder)
    if not names:
        raise SourceError(
            "there is no Iceberg table",
            where=folder,
            hint="name the folder that has metadata/ with *.metadata.json",
        )
    if os.path.isdir(os.path.join(folder, MARK["delta"])):
        raise SourceError(
            "this folder is a Delta table too", where=folder, hint="read it with format: delta"
        )
    for form in _NUMBERS:
        found = [re.fullmatch(form, name) for name in names]
        numbers = [int(each[1]) for each in found if each is not None]
        if len(numbers) == len(names) and numbers.count(max(numbers)) == 1:
            return names[numbers.index(max(numbers))]
    raise SourceError(
        "names of the table's metadata files do not tell which is the newest",
        where=os.path.join(folder, MARK["iceberg"]),
        hint="move away those that are of no commit, such as that of a writer that came second",
    )


def _within(folder: str, place: str) -> str:
    """A place of the table as a path of this machine.

    Raises:
        SourceError: It is not in the folder of the table.
    """
    path = re.sub(r"^file:(//(?=/))?", "", place)
    real, home = os.path.realpath(path), os.path.realpath(folder)
    if not os.path.isabs(path) or os.path.commonpath([real, home]) != home:
        raise SourceError(
            "a file of the table is not in its folder",
            where=folder,
            hint="its metadata names places elsewhere: was it moved or copied, or is its storage"
            " not a folder of this machine?",
        )
    return real


def _unreadable(folder: str) -> SourceError:
    return SourceError(
        "this Iceberg table cannot be read",
        where=folder,
        hint="are its metadata and manifests whole and readable?",
    )
