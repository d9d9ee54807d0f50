"""Parquet files as SQL of their records: the footers alone say which reader reads which file.

One record cannot fail the reading, and cannot change how another is read:

- DuckDB reads a file, with `?` for bytes of a text that are no UTF-8. It cannot tell two such texts
  apart, it ends a question at a time in milliseconds or of 96 bits that has no microseconds and at
  a text that is no JSON. A file with such a column in the question, or with a text that bounds
  units, is read by Arrow's reader, which makes null of what is no UTF-8 and of what has no
  microseconds. So are instants of nanoseconds, for which DuckDB has a type of its own.
- What neither reads totally is refused by its type: nested columns, times of day, decimals of more
  than 38 digits. A column that is not named may be of any type.
- Files of one source have one type of each named column; whole and floating numbers of different
  widths are one type, and so is a column without values.
- A folder `column=value` is a text, the same for all records of its files (`PartitionColumn`).

The footer of a file says names and types of its columns. It is read field by field, and no further
than the schema. Statistics of records stand behind it, and none of them is looked at.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import SEEK_END, BytesIO
from math import log10
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.sql.dialect import quoted
from streamdp.errors import SourceError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


LARGEST_CHUNK = 2**34
"""Bytes of a named column in one row group, unpacked, beyond which a file is refused."""

PART_OF_MEMORY = 8
"""Part of the engine's memory that a named column of texts may be in one row group, unpacked.

One value may be all of it, and DuckDB holds a value some eight times while it groups by it."""

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

LONGEST = 2**20
"""Bytes of a value of bytes, and of a text that bounds units; a longer one is null."""

FIRST_MOMENT = "TIMESTAMP '290309-12-22 (BC) 00:00:00'"
"""DuckDB ends at earlier ones in a cast."""

DIGITS = 38
"""Digits of a decimal."""

NOWHERE = "__HIVE_DEFAULT_PARTITION__"
"""Name of the folder of records without a value."""

_TEXTS = ("STRING", "ENUM", "JSON")
_UNREAD = ("TIME", "LIST", "MAP", "BSON", "VARIANT", "GEOMETRY", "GEOGRAPHY")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A column that a file does not hold: one value for all records of the file.

    Args:
        kind: DuckDB's type.
        values: Text of the value by the file's path, or None.
    """

    kind: str
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column in one row group that has rows, by the footer."""

    name: str
    rows: int
    values: int
    physical: str
    data: int
    dictionary: int
    packed: int
    unpacked: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself.

    Args:
        path: Of the file.
        names: All columns, nested ones too.
        leaves: Those that are not nested, by name.
        start: Where in the file its footer begins.
        length: Bytes of the footer.
    """

    path: str
    names: tuple[str, ...]
    leaves: Mapping[str, ParquetColumn]
    start: int
    length: int

    def chunks(self) -> tuple[int, list[Chunk]]:
        """Rows of the file, and all columns of all row groups; nested ones have their paths' names.

        Raises:
            SourceError: It is no footer.
        """
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start)
                said = ThriftReader(file.read(self.length)).struct()
            groups = (group for group in said.get(4, []) if group[3])
            return said[3], [_chunk(column, group[3]) for group in groups for column in group[1]]
        except NO_FOOTER:
            raise unopened(self.path) from None

    def named(self, names: Sequence[str]) -> list[str]:
        """Columns of the file among names; expressions may spell them in other capitals.

        Raises:
            SourceError: Two columns of the file differ in capitals only.
        """
        wanted = {name.lower() for name in names}
        found = [name for name in self.names if name.lower() in wanted]
        if len({name.lower() for name in found}) < len(found):
            raise SourceError(
                "two of its columns have one name, or differ in capitals only",
                where=self.path,
                hint="rename one of them",
            )
        return found

    def kind(self, name: str, *, exact: bool = False) -> str:
        """Type of a column in words, the same for types that are cast to each other without fail.

        Args:
            name: Of the column.
            exact: Whether whole and floating numbers of all widths differ: units are compared.

        Raises:
            SourceError: It is one that is not read.
        """
        if name not in self.leaves:
            raise self._unread(name, "is nested")
        column = self.leaves[name]
        logical, physical = column.logical, column.physical
        if logical in _UNREAD:
            raise self._unread(name, f"has type {column.described}")
        if logical == "DECIMAL" and column.precision > DIGITS:
            raise self._unread(name, f"has {column.precision} digits")
        if logical == "UNKNOWN":
            return "nothing"
        floating = logical == "FLOAT16" or physical in ("FLOAT", "DOUBLE")
        if floating or (logical in ("INT", "NONE") and physical in ("INT32", "INT64")):
            return f"{logical} {physical} {column.described}" if exact else "number"
        if logical == "DECIMAL":
            return f"decimal({column.precision}, {column.scale})"
        if logical == "TIMESTAMP":
            return column.described.replace("milli", "micro")
        if logical in _TEXTS:
            return "text"
        return f"{logical} {physical} {column.length}"

    def needs_arrow(self, names: Iterable[str], unit: str | None) -> bool:
        """Whether DuckDB's own reader is not total for one of the columns."""
        for name in names:
            column = self.leaves[name]
            apart = column.logical == "JSON" or column.physical == "INT96"
            if apart or "milliseconds" in column.described or column.described == _INSTANT_NS:
                return True
            if column.logical in _TEXTS and unit is not None and name.lower() == unit.lower():
                return True
        return False

    def require_sound(self, names: Sequence[str], memory: int) -> None:
        """Look whether what a footer says of columns can be true of the file.

        Args:
            names: Of the columns.
            memory: Bytes that the engine has.

        Raises:
            SourceError: It cannot, or a column is larger than what is read.
        """
        total, found = self.chunks()
        chunks = [chunk for chunk in found if chunk.name in names]
        for chunk in chunks:
            texts = chunk.physical == "BYTE_ARRAY"
            largest = min(LARGEST_CHUNK, memory // PART_OF_MEMORY if texts else LARGEST_CHUNK)
            if chunk.unpacked > largest:
                raise SourceError(
                    f"column {chunk.name!r} has {chunk.unpacked} bytes in one row group, and"
                    f" {largest} are read",
                    where=self.path,
                    hint="write smaller row groups, or give the engine more memory: of texts an"
                    f" {PART_OF_MEMORY}th of it is read at once, since one may be all of them",
                )
            column = self.leaves.get(chunk.name)
            starts = [each for each in (chunk.dictionary, chunk.data) if each]
            sound = (
                column is not None
                and chunk.physical == column.physical
                and 0 < chunk.rows == chunk.values
                and min(starts, default=0) >= len(MARK)
                and chunk.unpacked >= 0
                and 0 <= chunk.packed <= self.start - min(starts)
            )
            if not sound:
                raise unopened(self.path)
        for name in {chunk.name for chunk in chunks}:
            rows = sum(chunk.rows for chunk in chunks if chunk.name == name)
            if rows != total:
                raise unopened(self.path)

    def _unread(self, name: str, how: str) -> SourceError:
        return SourceError(
            f"column {name!r} {how}, which is not read",
            where=self.path,
            hint="write numbers, decimals of up to 38 digits, text, dates or timestamps",
        )


def _chunk(column: Any, rows: int) -> Chunk:
    said = column[3]
    return Chunk(
        name=".".join(each.decode() for each in said[3]),
        rows=int(rows),
        values=int(said[5]),
        physical=PHYSICAL[said[1]],
        data=int(said[9]),
        dictionary=int(said.get(11, 0)),
        packed=int(said[7]),
        unpacked=int(said[6]),
    )


def footer_of(path: str) -> Footer:
    """The footer of a file.

    It is read field by field, and no further than the schema: Arrow ends the process at some
    damaged ones, and DuckDB fails at statistics that one record can write.

    Raises:
        SourceError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return read_footer(file, path)
    except NO_FOOTER:
        raise unopened(path) from None


def footer_without_records(schema: pa.Schema, path: str) -> Footer:
    """The footer of a file of such columns, by which a table without a file is judged alike."""
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(schema.empty_table(), file)
    return read_footer(file, path)


def unopened(path: str) -> SourceError:
    """The error for a file whose footer cannot be."""
    return SourceError(
        "this Parquet file cannot be opened", where=path, hint="is it complete and readable?"
    )


def memory_of(connection: duckdb.DuckDBPyConnection) -> int:
    """Bytes that an engine may take: as configured, otherwise most of the machine's."""
    ((said,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    number, unit = str(said).split()
    return int(float(number) * _UNITS[unit])


def folder_values(path: str) -> dict[str, str | None]:
    """Columns that the folders of a file name, and their texts.

    >>> folder_values("/data/day=2013-01-01/g=a%20b/x.parquet")
    {'day': '2013-01-01', 'g': 'a b'}
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if name and equals:
            found[unquote(name)] = None if value == NOWHERE else unquote(value, errors="replace")
    return found


@dataclass(frozen=True, slots=True)
class Parquet:
    """Files of one source, and what a question names of them.

    Args:
        files: In order.
        named: Columns that are named; others are not looked at.
        unit: Column that bounds units.
        inside: Columns that stand in expressions.
        partitions: Columns that files do not hold, by a table's log; otherwise folders tell them.
    """

    files: tuple[str, ...]
    named: tuple[str, ...]
    unit: str | None = None
    inside: tuple[str, ...] = ()
    partitions: Mapping[str, PartitionColumn] | None = None

    def select(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, list[str]]:
        """SQL of all records, and the names of all columns of the first file.

        Raises:
            SourceError: A footer cannot be read, a file lacks a column that others have, or has
                another type of it, or a column is of a type that is not read.
        """
        footers = [footer_of(path) for path in self.files]
        if not self.named:
            return f"FROM {_read_parquet(self.files)}", list(footers[0].names)
        partitions = self._partitions(footers)
        apart = {name.lower() for name in partitions}
        wanted = [name for name in self.named if name.lower() not in apart]
        columns = self._columns(footers, wanted)
        native: list[str] = []
        streamed: list[str] = []
        memory = memory_of(connection)
        for footer in footers:
            names = footer.named(columns)
            footer.require_sound(names, memory)
            (streamed if footer.needs_arrow(names, self.unit) else native).append(footer.path)
        parts = []
        if native:
            parts.append(self._native(connection, native, columns, partitions))
        if streamed:
            parts += self._streamed(connection, streamed, columns, partitions)
        names = list(dict.fromkeys([*footers[0].names, *partitions]))
        return " UNION ALL ".join(parts), names

    def _columns(self, footers: Sequence[Footer], wanted: Sequence[str]) -> list[str]:
        """Columns that all files hold, spelled as the first one does.

        Raises:
            SourceError: A file lacks one that another has, or has it in another type.
        """
        first = footers[0]
        columns = first.named(wanted)
        known = {
            name.lower(): (first.kind(name, exact=self._is_unit(name)), first.path)
            for name in columns
        }
        for footer in footers[1:]:
            found = {name.lower(): name for name in footer.named(wanted)}
            odd = sorted(known.keys() ^ found.keys())
            if odd:
                without = footer if odd[0] in known else first
                name = next(name for name in wanted if name.lower() == odd[0])
                raise SourceError(
                    f"this file has no column {name!r}",
                    where=without.path,
                    hint="files of one source need the configured columns; move this one away",
                )
            for lower, name in found.items():
                kind = footer.kind(name, exact=self._is_unit(name))
                before, path = known[lower]
                if "nothing" in (kind, before):
                    known[lower] = (before, path) if kind == "nothing" else (kind, footer.path)
                elif kind != before:
                    raise SourceError(
                        f"column {name!r} of this file is {kind}, and {before} in {path}",
                        where=footer.path,
                        hint="files of one source need the same columns of the same types",
                    )
        return columns

    def _is_unit(self, name: str) -> bool:
        return self.unit is not None and name.lower() == self.unit.lower()

    def _partitions(self, footers: Sequence[Footer]) -> dict[str, PartitionColumn]:
        """Named columns of the table's log, or of folders.

        Raises:
            SourceError: A folder is called as a column of a file in it, or not all files lie in
                such a folder.
        """
        wanted = {name.lower() for name in self.named}
        if self.partitions is not None:
            return {name: each for name, each in self.partitions.items() if name.lower() in wanted}
        folders = {footer.path: folder_values(footer.path) for footer in footers}
        found: dict[str, PartitionColumn] = {}
        for name in dict.fromkeys(name for each in folders.values() for name in each):
            if name.lower() not in wanted:
                continue
            for footer in footers:
                inside = footer.named([name])
                if not inside and name in folders[footer.path]:
                    continue
                what = f"holds column {name!r} itself" if inside else f"is in no folder {name}="
                raise SourceError(
                    f"the folders of this source name a column, and this file {what}",
                    where=footer.path,
                    hint="rename the folders or the column, or leave one of them out",
                )
            values = {path: each[name] for path, each in folders.items()}
            found[name] = PartitionColumn("VARCHAR", values)
        return found

    def _native(
        self,
        connection: duckdb.DuckDBPyConnection,
        paths: Sequence[str],
        columns: Sequence[str],
        partitions: Mapping[str, PartitionColumn],
    ) -> str:
        """SQL of files that DuckDB reads.

        Raises:
            SourceError: A column is in the way of the number of a file.
        """
        read = _read_parquet(paths)
        described = connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()
        kinds = {name.lower(): kind for name, kind, *_ in described}
        taken = [f"{self._total(name, kinds[name.lower()])} AS {_name(name)}" for name in columns]
        if partitions and "file_index" in kinds:
            raise SourceError(
                "a column is called file_index, as DuckDB calls the number of a file",
                where=paths[0],
                hint="rename it, or leave out what the folders name",
            )
        taken += _partition_values("file_index", paths, partitions)
        return f"SELECT {', '.join(taken) or '1 AS one'} FROM {read}"

    def _total(self, name: str, kind: str) -> str:
        """SQL of a column without the values at which DuckDB ends in a cast.

        The nearest value takes the place of such a one. A condition would not do: a cast is made of
        all entries of a dictionary, those that a condition leaves out too.

        What statistics of a file say of many records decides about none: a text is compared as it
        is read, which may not be as it is stored.
        """
        column = _name(name)
        if kind == "VARCHAR":
            return f"CASE WHEN {column} IS NULL THEN NULL ELSE {column} END"
        if kind == "BLOB":
            return f"CASE WHEN octet_length({column}) <= {LONGEST} THEN {column} END"
        if kind.startswith("DECIMAL"):
            return DuckDBDialect().plain_decimal(column, kind) or column
        moments = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
        if kind in moments and name.lower() in {each.lower() for each in self.inside}:
            within = f"greatest({column}, CAST({FIRST_MOMENT} AS {kind}))"
            return f"CASE WHEN {column} IS NULL THEN NULL ELSE {within} END"
        return column

    def _streamed(
        self,
        connection: duckdb.DuckDBPyConnection,
        paths: Sequence[str],
        columns: Sequence[str],
        partitions: Mapping[str, PartitionColumn],
    ) -> list[str]:
        """SQL of files that Arrow's reader reads, one after another."""
        from streamdp.backends.duckdb import arrow

        tables = arrow.register_parquet(connection, paths, columns, self.unit, LONGEST)
        selects = []
        for path, table in zip(paths, tables, strict=True):
            taken = [_name(name) for name in columns] + _partition_values("0", [path], partitions)
            selects.append(f"SELECT {', '.join(taken) or '1 AS one'} FROM {table}")
        return selects


def _read_parquet(paths: Sequence[str]) -> str:
    """SQL of all columns of files that DuckDB reads; without a named one it counts records."""
    handed = ", ".join(quoted(handed_over(path), "'") for path in paths)
    return (
        f"read_parquet([{handed}], union_by_name = true, hive_partitioning = false,"
        " utf8_validation = 'replace')"
    )


def handed_over(path: str) -> str:
    """A path that the engine reads as this one file and no pattern.

    Raises:
        SourceError: No way of writing it is safe.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SourceError(
            "the name of a file is no UTF-8",
            where=path.encode("utf-8", "replace").decode(),
            hint="rename it",
        ) from None
    if "\\" in path and glob.has_magic(path):
        raise SourceError(
            "the name of a file holds a backslash beside * ? or [", where=path, hint="rename it"
        )
    return glob.escape(path)


def _partition_values(
    number: str, paths: Sequence[str], partitions: Mapping[str, PartitionColumn]
) -> list[str]:
    """SQL of columns that hang on the number of a file."""
    found = []
    for name, each in partitions.items():
        values = (each.values[path] for path in paths)
        texts = ", ".join("NULL" if text is None else quoted(text, "'") for text in values)
        value = f"list_extract(CAST([{texts}] AS VARCHAR[]), CAST({number} AS BIGINT) + 1)"
        found.append(f"TRY_CAST({value} AS {each.kind}) AS {_name(name)}")
    return found


def _name(column: str) -> str:
    return quoted(column, '"')


MARK = b"PAR1"
"""Bytes that a file begins and ends with."""

NO_FOOTER = (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Errors in which the reading of bytes ends that are no footer."""

PHYSICAL = {
    0: "BOOLEAN",
    1: "INT32",
    2: "INT64",
    3: "INT96",
    4: "FLOAT",
    5: "DOUBLE",
    6: "BYTE_ARRAY",
    7: "FIXED_LEN_BYTE_ARRAY",
}
"""How values are stored, by the numbers of the format."""

_LOGICAL = {
    1: "STRING",
    2: "MAP",
    3: "LIST",
    4: "ENUM",
    5: "DECIMAL",
    6: "DATE",
    7: "TIME",
    8: "TIMESTAMP",
    10: "INT",
    11: "UNKNOWN",
    12: "JSON",
    13: "BSON",
    14: "UUID",
    15: "FLOAT16",
    16: "VARIANT",
    17: "GEOMETRY",
    18: "GEOGRAPHY",
}
"""Meanings of values, by the numbers of the format."""

_INSTANT_NS = "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds)"
"""What pandas writes of times with a zone; DuckDB has a type of its own for it."""

_LOGICAL_UNITS = {1: "milliseconds", 2: "microseconds", 3: "nanoseconds"}

_CONVERTED = dict(
    enumerate(
        (
            *(("STRING",), ("MAP",), ("MAP",), ("LIST",), ("ENUM",), ("DECIMAL",), ("DATE",)),
            *(("TIME", True, "milliseconds"), ("TIME", True, "microseconds")),
            *(("TIMESTAMP", True, "milliseconds"), ("TIMESTAMP", True, "microseconds")),
            *(("INT", bits, signed) for signed in (False, True) for bits in (8, 16, 32, 64)),
            *(("JSON",), ("BSON",), ("INTERVAL",)),
        )
    )
)
"""Converted types, in files of older writers."""

_OF_BYTES = ("STRING", "ENUM", "JSON", "BSON", "VARIANT", "GEOMETRY", "GEOGRAPHY")
_LENGTHS = {"FLOAT16": 2, "UUID": 16, "INTERVAL": 12}
_INT32_DIGITS, _INT64_DIGITS = 9, 18
_REPEATED = 2
_LAST = 8
"""Bytes behind the footer: its length, and the mark."""


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A column that is not nested, by the schema.

    Args:
        physical: How its values are stored.
        length: Bytes of each value where all have as many by their type; otherwise zero.
        logical: What they mean: the name of a type, `NONE` where nothing is said.
        described: The same with all that is said of it.
        wide: Whether a whole number or a time of day has 64 bits.
        precision: Digits of a decimal; otherwise zero.
        scale: Those behind its point.
    """

    physical: str
    length: int
    logical: str = "NONE"
    described: str = "None"
    precision: int = 0
    scale: int = 0
    wide: bool = False

    @property
    def sound(self) -> bool:
        """Whether what values mean goes with how they are stored."""
        physical, logical = self.physical, self.logical
        if physical == "FIXED_LEN_BYTE_ARRAY" and self.length <= 0:
            return False
        if logical == "DECIMAL":
            return 0 <= self.scale <= self.precision and 0 < self.precision <= self._digits
        if logical in _OF_BYTES:
            return physical == "BYTE_ARRAY"
        if logical in _LENGTHS:
            return self.length == _LENGTHS[logical]
        if logical in ("INT", "TIME"):
            return physical == ("INT64" if self.wide else "INT32")
        wanted = {"DATE": "INT32", "TIMESTAMP": "INT64"}.get(logical, physical)
        return physical == wanted and logical not in ("MAP", "LIST")

    @property
    def _digits(self) -> float:
        """Most digits of a decimal that is stored so."""
        if self.length:
            return int((8 * self.length - 1) * log10(2))
        most = {"INT32": _INT32_DIGITS, "INT64": _INT64_DIGITS, "BYTE_ARRAY": float("inf")}
        return most.get(self.physical, 0)


def read_footer(file: BinaryIO, path: str) -> Footer:
    """The footer of an open file.

    Raises:
        ValueError: It has none; the other errors of `NO_FOOTER` say the same.
    """
    end = file.seek(-_LAST, SEEK_END)
    last = file.read(_LAST)
    length = int.from_bytes(last[: -len(MARK)], "little")
    start = end - length
    if not last.endswith(MARK) or start < len(MARK):
        raise ValueError("the file does not end in a footer")
    file.seek(start)
    for number, elements in ThriftReader(file.read(length)).fields():
        if number == 2:
            return Footer(path, *_columns(elements[0], iter(elements[1:])), start, length)
    raise ValueError("the footer has no schema")


def _columns(
    root: Mapping[int, Any], elements: Iterator[Mapping[int, Any]]
) -> tuple[tuple[str, ...], dict[str, ParquetColumn]]:
    """Names of all columns, and what is said of those that are not nested.

    Args:
        root: Of the tree of columns.
        elements: All of the tree below it, each before those in it.
    """
    names: dict[str, None] = {}
    leaves = {}
    for _ in range(root.get(5, 0)):
        element = next(elements, {})
        name = element[4].decode()
        if _inside(element, elements):
            names[name] = None
        if _is_leaf(element):
            column = _column(element)
            if element[3] != _REPEATED:
                leaves[name] = column
    if next(elements, None) is not None:
        raise ValueError("the schema has columns that are in no other")
    return tuple(names), leaves


def _is_leaf(element: Mapping[int, Any]) -> bool:
    return 1 in element and not element.get(5)


def _inside(element: Mapping[int, Any], elements: Iterator[Mapping[int, Any]]) -> int:
    """How many columns of values an element has, itself included."""
    if _is_leaf(element):
        return 1
    found = 0
    for _ in range(element[5]):
        found += _inside(next(elements, {}), elements)
    return found


def _column(element: Mapping[int, Any]) -> ParquetColumn:
    physical = PHYSICAL[element[1]]
    length = element[2] if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    column = _meaning(physical, length, *_said(element))
    if not column.sound:
        raise ValueError("a type does not go with how its values are stored")
    return column


def _meaning(physical: str, length: int, logical: str, *said: Any) -> ParquetColumn:
    """A column of a type, of which the footer may say more than its name."""
    if logical == "DECIMAL":
        return ParquetColumn(physical, length, logical, "Decimal", *said)
    name, wide = logical.title(), False
    if logical in ("TIME", "TIMESTAMP"):
        name += f"(isAdjustedToUTC={str(said[0]).lower()}, timeUnit={said[1]})"
        wide = said[1] != "milliseconds"
    if logical == "INT":
        name += f"(bitWidth={said[0]}, isSigned={str(said[1]).lower()})"
        wide = said[0] == 64
    return ParquetColumn(physical, length, logical, name, wide=wide)


def _said(element: Mapping[int, Any]) -> tuple[Any, ...]:
    """Name of a type and what is said of it, in the new way of writing it or the old one."""
    if 10 in element:
        number: int = min(element[10], default=0)
        said: Mapping[int, Any] = element[10].get(number, {})
        logical = _LOGICAL.get(number, "UNDEFINED")
        if logical == "DECIMAL":
            return logical, said[2], said[1]
        if logical in ("TIME", "TIMESTAMP"):
            return logical, said[1], _LOGICAL_UNITS[min(said[2])]
        return (logical, said[1], said[2]) if logical == "INT" else (logical,)
    if 6 not in element:
        return ("NONE",)
    old: tuple[Any, ...] = _CONVERTED[element[6]]
    return (*old, element[8], element.get(7, 0)) if old == ("DECIMAL",) else old


_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)


class ThriftReader:
    """Reads structures in Thrift's compact protocol from bytes.

    Each method raises ValueError where the bytes are none, LookupError where they end too early.

    >>> ThriftReader(bytes([0x15, 0x02, 0x18, 0x01, 0x61, 0x00])).struct()
    {1: 1, 2: b'a'}
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, Any]:
        """Fields of a structure by their numbers."""
        return dict(self.fields())

    def fields(self) -> Iterator[tuple[int, Any]]:
        """Numbers and values of the fields of a structure, each read when it is asked for."""
        number = 0
        while header := self._byte():
            step, kind = header >> 4, header & 15
            number = number + step if step else self._whole()
            yield number, kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind)

    def _value(self, kind: int) -> Any:
        if kind in _WHOLE:
            return self._whole()
        if kind == _BINARY:
            return self._bytes(self._natural())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            header = self._byte()
            size = header >> 4
            size = self._natural() if size == 15 else size
            return [self._value(header & 15) for _ in range(self._fitting(size))]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _MAP:
            size = self._fitting(self._natural())
            kinds = self._byte() if size else 0
            return [(self._value(kinds >> 4), self._value(kinds & 15)) for _ in range(size)]
        raise ValueError("a field has a type that the protocol does not have")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        self._at += self._fitting(size)
        return self._data[self._at - size : self._at]

    def _fitting(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise ValueError("something is longer than the bytes that are left")
        return size

    def _natural(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number has too many bytes")
        return found | byte << shift

    def _whole(self) -> int:
        zigzag = self._natural()
        return (zigzag >> 1) ^ -(zigzag & 1)
