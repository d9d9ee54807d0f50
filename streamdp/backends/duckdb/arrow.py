"""Arrow IPC files (Feather 2) as a table of DuckDB: streamed in batches, types made plain.

DuckDB reads Arrow's memory as it is, and what it cannot represent ends the question: a time in
seconds that has no microseconds would be one record that decides about all. So each value is made
one that DuckDB has, or null, before it is handed over:

- a dictionary- or run-end-encoded value is the value; files encode as many as they have, and a
  place at which a dictionary holds none is null;
- half floats are floats, the same numbers;
- text that is no UTF-8 is null: DuckDB would not answer again on that connection;
- a decimal with more digits than its type is the largest, or the most negative, of the type, and
  one of 32 or 64 bits has 128;
- times and durations in seconds or milliseconds are in microseconds, null where there are none so
  far away; a zone is a way to show an instant, and is dropped for UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from streamdp.errors import SourceError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq


TABLE = "arrow_records"
"""Name in DuckDB."""

DATA = "data"
"""Name of records in memory where a file would be named."""

ROWS = 2**16
"""Records of a batch that is handed over; batches of a file may be as large as the file."""


def _ipc_batches(file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with pa.OSFile(file) as opened:
        reader = pa.ipc.open_file(opened)
        wanted = [reader.schema.get_field_index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
        reader = pa.ipc.open_file(opened, options=options)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


@dataclass(frozen=True, slots=True)
class ArrowStream:
    """Columns of files, one after another, read anew for each scan.

    Args:
        files: In order.
        schema: Columns as they are handed over.
        read: Record batches of these columns of a file.
    """

    files: tuple[str, ...]
    schema: pa.Schema
    read: Callable[[str, Sequence[str]], Iterator[pa.RecordBatch]] = _ipc_batches

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A scan; see the Arrow PyCapsule interface."""
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            for batch in self.read(file, self.schema.names):
                yield from self._plain(batch)

    def _plain(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for first in range(0, batch.num_rows, ROWS):
            part = batch.slice(first, ROWS)
            columns = [plain(part.column(field.name), field.type) for field in self.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def register(
    connection: duckdb.DuckDBPyConnection, files: Sequence[str], named: Sequence[str]
) -> str:
    """Make the named columns of files a table of a connection, and say its name.

    Raises:
        SourceError: A file is none, or lacks a column, or has another type of it than the first.
    """
    import pyarrow as pa

    fields: list[pa.Field] = []
    for file in files:
        schema = _schema(file)
        _require_one_dictionary(schema, named, file)
        found = [_field(schema, name, file) for name in _present(schema, named, file)]
        fields = fields or found
        fields = [_together(*pair, file) for pair in zip(fields, found, strict=True)]
    connection.register(TABLE, ArrowStream(tuple(files), pa.schema(fields), _ipc_batches))
    return TABLE


def register_records(
    connection: duckdb.DuckDBPyConnection,
    schema: pa.Schema,
    read: Callable[[str, Sequence[str]], Iterator[pa.RecordBatch]],
    named: Sequence[str],
) -> str:
    """Make the named columns of records in memory a table of a connection, and say its name.

    Raises:
        SourceError: There is no such column, or it has a type that is not read.
    """
    import pyarrow as pa

    fields = [_field(schema, name, DATA) for name in _present(schema, named, DATA)]
    connection.register(TABLE, ArrowStream((DATA,), pa.schema(fields), read))
    return TABLE


def register_parquet(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    named: Sequence[str],
    unit: str | None,
    longest: int,
) -> list[str]:
    """Make the named columns of each Parquet file a table of a connection, and say their names.

    Args:
        connection: That has the tables.
        files: Whose footers were looked at.
        named: Columns that each of them has, in any capitals.
        unit: Column whose texts are null where they are longer than `longest` bytes.
        longest: Bytes.

    Raises:
        SourceError: A file cannot be opened, or lacks a column.
    """
    import pyarrow as pa

    tables = []
    for number, file in enumerate(files):
        try:
            with _opened_parquet(file) as opened:
                schema = opened.schema_arrow
        except (pa.ArrowException, OSError):
            raise _unopened("Parquet", file) from None
        stored = pa.schema([pa.field(each.name, stored_type(each.type)) for each in schema])
        names = _present(schema, named, file)
        fields = [_field(stored, name, file) for name in names]
        bounded = next((name for name in names if name.lower() == (unit or "").lower()), None)
        tables.append(f"{TABLE}_{number}")
        read = partial(_parquet_batches, bounded, longest)
        connection.register(tables[-1], ArrowStream((file,), pa.schema(fields), read))
    return tables


def millisecond_columns(files: Sequence[str]) -> frozenset[str]:
    """Columns of Parquet files that hold times in milliseconds.

    Raises:
        SourceError: A file cannot be opened, or they are in other units in another file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    units: dict[str, set[str]] = {}
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowException, OSError):
            raise _unopened("Parquet", file) from None
        for field in schema:
            if pa.types.is_timestamp(field.type):
                units.setdefault(field.name, set()).add(field.type.unit)
                if {"ms"} < units[field.name]:
                    raise SourceError(
                        f"column {field.name!r} is in milliseconds here or in another file",
                        where=file,
                        hint="files of one source need the same columns of the same types",
                    )
    return frozenset(name for name, each in units.items() if each == {"ms"})


def _opened_parquet(file: str) -> pq.ParquetFile:
    """A file whose times of 96 bits are microseconds: each of them is a number of these."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")


def _parquet_batches(
    unit: str | None, longest: int, file: str, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of columns, each value as the file stores it."""
    import pyarrow as pa

    with _opened_parquet(file) as opened:
        for batch in opened.iter_batches(ROWS, columns=list(names), use_threads=False):
            columns = [stored(batch.column(name)) for name in names]
            if unit is not None:
                at = list(names).index(unit)
                columns[at] = no_longer(columns[at], longest)
            yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _together(one: pa.Field, other: pa.Field, file: str) -> pa.Field:
    """The common field of two files; a column without values fits every type.

    Raises:
        SourceError: They have different types.
    """
    import pyarrow as pa

    if pa.types.is_null(one.type):
        return other
    if one != other and not pa.types.is_null(other.type):
        raise SourceError(
            f"column {other.name!r} of this file has type {other.type}, before it {one.type}",
            where=file,
            hint="files of one source need the same columns of the same types",
        )
    return one


def _schema(file: str) -> pa.Schema:
    import pyarrow as pa

    try:
        with pa.OSFile(file) as opened:
            return pa.ipc.open_file(opened).schema
    except (pa.ArrowException, OSError):
        raise _unopened("Arrow", file) from None


def _require_one_dictionary(schema: pa.Schema, named: Sequence[str], file: str) -> None:
    """Refuse dictionaries that grow within a file: Arrow ends at a growth that is no UTF-8.

    Raises:
        SourceError: One of a named column grows.
    """
    import pyarrow as pa

    wanted = {name.lower() for name in named}
    encoded = [
        place
        for place, field in enumerate(schema)
        if pa.types.is_dictionary(field.type) and field.name.lower() in wanted
    ]
    if not encoded:
        return
    options = pa.ipc.IpcReadOptions(included_fields=encoded, use_threads=False)
    try:
        with pa.OSFile(file) as opened:
            reader = pa.ipc.open_file(opened, options=options)
            if reader.num_record_batches:
                reader.get_batch(0)
            grows = reader.stats.num_dictionary_deltas > 0
    except (pa.ArrowException, OSError):
        grows = True
    if grows:
        raise SourceError(
            "the dictionary of a column of this Arrow file grows within the file",
            where=file,
            hint="write it without dictionary deltas, which is what writers do by default",
        )


def _unopened(kind: str, file: str) -> SourceError:
    form = ", and in the IPC file format (Feather 2)" if kind == "Arrow" else ""
    return SourceError(
        f"this {kind} file cannot be opened",
        where=file,
        hint=f"is it complete and readable{form}?",
    )


def _present(schema: pa.Schema, named: Sequence[str], file: str) -> list[str]:
    """Names in the file of what is named; expressions may spell them in other capitals."""
    names = [name for name in schema.names for each in named if name.lower() == each.lower()]
    missing = [each for each in named if each.lower() not in {name.lower() for name in names}]
    if missing:
        raise SourceError(
            f"there is no column {missing[0]!r}",
            where=file,
            hint=f"it has: {', '.join(sorted(schema.names))}",
        )
    present = list(dict.fromkeys(names))
    if len({name.lower() for name in present}) < len(present) or any(
        schema.names.count(name) > 1 for name in present
    ):
        raise SourceError("it has a column twice", where=file, hint="rename one of them")
    return present or schema.names[:1]


def _field(schema: pa.Schema, name: str, file: str) -> pa.Field:
    import pyarrow as pa

    kind = schema.field(name).type
    plain = plain_type(kind)
    if plain is None:
        raise SourceError(
            f"column {name!r} has type {kind}, which is not read",
            where=file,
            hint="write numbers, decimals of up to 38 digits, text, dates or timestamps",
        )
    return pa.field(name, plain)


LARGEST = 2**63 - 1

_LONG_DIGITS = len(str(LARGEST))

FIRST = 9_223_372_022_400_000_000
"""Microseconds before 1970 of the first moment that DuckDB casts."""


def plain_type(kind: Any) -> pa.DataType | None:
    """The type that is handed over, or None if there is none."""
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        inner = kind.value_type
        nested = is_a.is_dictionary(inner) or is_a.is_run_end_encoded(inner)
        view = is_a.is_string_view(inner) or is_a.is_binary_view(inner)
        unread = is_a.is_run_end_encoded(kind) and view
        return None if nested or unread else plain_type(inner)
    if is_a.is_string_view(kind):
        return pa.large_string()
    if is_a.is_binary_view(kind):
        return pa.large_binary()
    if is_a.is_float16(kind):
        return pa.float32()
    if is_a.is_timestamp(kind):
        unit = "ns" if kind.unit == "ns" else "us"
        return pa.timestamp(unit, None if kind.tz is None or unit == "ns" else "UTC")
    if is_a.is_duration(kind):
        return pa.duration("ns" if kind.unit == "ns" else "us")
    if is_a.is_decimal256(kind):
        return None
    if is_a.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, pa.UuidType):
        return kind
    kept: list[Callable[[pa.DataType], bool]] = [
        *(is_a.is_boolean, is_a.is_integer, is_a.is_floating, is_a.is_date32),
        *(is_a.is_string, is_a.is_large_string, is_a.is_null),
        *(is_a.is_binary, is_a.is_large_binary, is_a.is_fixed_size_binary),
    ]
    return kind if any(is_kept(kind) for is_kept in kept) else None


def plain(values: Any, kind: Any) -> Any:
    """Values of one column, of the type that is handed over."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(values.type):
        return pa.nulls(len(values), kind)
    if pa.types.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    if pa.types.is_dictionary(values.type):
        values = _looked_up(values)
    values = _long(values)
    if kind in (pa.string(), pa.large_string()):
        return _text(values)
    if pa.types.is_decimal(kind):
        return _decimal(values, kind)
    moment = pa.types.is_timestamp(kind)
    if values.type == kind and not (moment and kind.unit == "us"):
        return values
    if pa.types.is_float16(values.type):
        return values.cast(kind)
    factor = {"s": 10**6, "ms": 10**3}.get(values.type.unit, 1)
    ticks, far = values.view(pa.int64()), LARGEST // factor
    first = -FIRST // factor if moment else -far
    near = pc.and_(pc.greater_equal(ticks, first), pc.less_equal(ticks, far))
    ticks = pc.if_else(near, ticks, pa.scalar(None, pa.int64()))
    return pc.multiply(ticks, factor).view(kind)


def stored_type(kind: Any) -> pa.DataType:
    """The type of a column of Parquet as it is stored, which is what DuckDB reads.

    Writers note a type of their own beside it; readers that know nothing of it must not differ.
    """
    import pyarrow as pa

    if pa.types.is_duration(kind):
        return pa.int64()
    if isinstance(kind, pa.JsonType):
        return stored_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type)
    return kind


def stored(values: Any) -> Any:
    """Values of a column of Parquet as they are stored."""
    import pyarrow as pa

    if pa.types.is_duration(values.type):
        return values.view(pa.int64())
    return stored(values.storage) if isinstance(values.type, pa.JsonType) else values


def no_longer(values: Any, longest: int) -> Any:
    """Texts or bytes, null where they have more bytes than that; other values as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        words = no_longer(values.dictionary, longest)
        return pa.DictionaryArray.from_arrays(values.indices, words)
    try:
        short = pc.less_equal(pc.binary_length(values), longest)
    except pa.ArrowNotImplementedError:
        return values
    return values if pc.all(short, min_count=0).as_py() else pc.if_else(short, values, None)


def _looked_up(values: Any) -> Any:
    """Values in place of their places in a dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words, places = _long(values.dictionary), values.indices
    if pa.types.is_signed_integer(places.type):
        places = pc.if_else(pc.less(places, 0), None, places)
    places = pc.if_else(pc.less(places, len(words)), places, None)
    return pa.DictionaryArray.from_arrays(places, words).dictionary_decode()


def _decimal(values: Any, kind: Any) -> Any:
    """Replace values of too many digits by the nearest value of the type.

    Those of 32 or 64 bits are widened first, to a type that has room for all of their bits.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    wide = kind if pa.types.is_decimal128(values.type) else pa.decimal128(_LONG_DIGITS, kind.scale)
    low, high = (
        pa.scalar(Decimal((sign, (9,) * kind.precision, -kind.scale)), wide) for sign in (1, 0)
    )
    values = values.cast(wide)
    values = pc.if_else(pc.less(values, low), low, values)
    return pc.if_else(pc.greater(values, high), high, values).cast(kind)


def _long(values: Any) -> Any:
    """Text and bytes in place of views of them, so that they can be looked up by number."""
    import pyarrow as pa

    if pa.types.is_binary_view(values.type):
        return values.cast(pa.large_binary())
    return values.cast(pa.large_string()) if pa.types.is_string_view(values.type) else values


def _text(values: Any) -> Any:
    """Replace texts that are not UTF-8 by nulls."""
    import pyarrow as pa

    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        short = pa.types.is_string(values.type)
        raw = values.view(pa.binary() if short else pa.large_binary())
        raw.validate(full=True)
        return pa.array([_decoded(each) for each in raw.to_pylist()], values.type)
    return values


def _decoded(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None
