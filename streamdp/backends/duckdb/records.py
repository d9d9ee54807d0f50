"""Records in memory, read by a DuckDB of their own.

Data frames and arrays become Arrow tables; a DuckDB relation is streamed from its own connection,
whose settings therefore do not matter here. Arrow's values are made plain as those of files are
(`backends.duckdb.arrow`), so that one record cannot fail the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.backends.duckdb import arrow
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql.dialect import quoted
from streamdp.backends.sql.scan import Field
from streamdp.errors import SourceError
from streamdp.types import Batch, Query

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_TAKEN = "give a DuckDB relation, a data frame, an Arrow table, or arrays of numbers, text or times"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class MemoryRecords:
    """Columns that can be read again for each scan. Private: the repr shows nothing.

    Args:
        schema: All columns.
        read: Record batches of the named columns.
    """

    schema: pa.Schema
    read: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]

    def __repr__(self) -> str:
        return "MemoryRecords(<private>)"


@dataclass(slots=True, repr=False)
class RecordsBackend(DuckDBBackend):
    """Answers questions about records in memory."""

    records: MemoryRecords = field(kw_only=True)
    _made: tuple[object, list[str], str] | None = field(default=None, init=False, repr=False)

    opening_hint = _TAKEN
    reading_hint = "can the data still be read, and is there enough memory?"

    def table(self, query: Query, batch: Batch) -> str:
        """The Arrow stream of the columns that are named; it can be read again."""
        read, connection, named = self.records.read, self._connect(), self.named(query)
        if self._made is None or self._made[:2] != (connection, named):
            table = arrow.register_records(
                connection, self.records.schema, lambda _, names: read(names), named
            )
            self._made = connection, named, table
        return self._made[2]

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """There is nothing else: the schema is that of all records."""
        return

    def type_hint(self, source: str, field: Field) -> str:
        """A column has the type that it was handed over with."""
        return "name another column, or cast it in an expression"

    def place(self, batch: Batch) -> str:
        """Return an empty text: records in memory have no file."""
        return ""


def records_of(data: Any, name: str) -> MemoryRecords:
    """Records of whatever holds them.

    Args:
        data: A relation of DuckDB, what has the Arrow stream interface and columns, a mapping from
            names to arrays, or one array.
        name: Of the column that one array is.

    Raises:
        SourceError: It is none of these, or has columns that Arrow has no type for.
    """
    import duckdb

    if isinstance(data, duckdb.DuckDBPyRelation):
        return _of_relation(data)
    table = _table(data, name)
    if not table.schema.names:
        raise SourceError("the data have no columns", hint=_TAKEN)
    return MemoryRecords(table.schema, lambda names: iter(table.select(list(names)).to_batches()))


def _of_relation(relation: duckdb.DuckDBPyRelation) -> MemoryRecords:
    import duckdb

    def read(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(quoted(name, '"') for name in names)
        yield from relation.project(columns).to_arrow_reader(arrow.ROWS)

    try:
        schema = relation.limit(0).to_arrow_table().schema
    except duckdb.Error:
        raise SourceError("this relation cannot be read", hint=_TAKEN) from None
    return MemoryRecords(schema, read)


def _table(data: Any, name: str) -> pa.Table:
    """An Arrow table; Arrow's own errors are dropped, since they quote values."""
    import pyarrow as pa

    try:
        if isinstance(data, Mapping):
            return pa.table({str(each): _array(values) for each, values in data.items()})
        if hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns"):
            return pa.table(data)
        return pa.table({name: _array(data)})
    except (pa.ArrowException, TypeError, ValueError):
        odd = _unreadable(data)
        raise SourceError(
            "these data cannot be read as columns of one type and one length each"
            if odd is None
            else f"column {odd!r} of these data has values of several types, or of one not read",
            hint=_TAKEN if odd is None else "leave it out if the release does not name it",
        ) from None


def _unreadable(data: Any) -> str | None:
    """The first column of a frame or mapping that cannot be read by itself."""
    import pyarrow as pa

    names = data if isinstance(data, Mapping) else getattr(data, "columns", ())
    for name in names if hasattr(data, "__getitem__") else ():
        try:
            _array(data[name])
        except (pa.ArrowException, TypeError, ValueError):
            return str(name)
    return None


def _array(values: Any) -> Any:
    """One column. A masked array keeps its mask: what is masked is null."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    return pa.array(values if hasattr(values, "dtype") else np.asarray(values))


def backend_of_records(data: Any, name: str) -> RecordsBackend:
    """The engine that reads records in memory.

    Args:
        data: Columns, as a data frame, a table, arrays or a relation.
        name: Of the column that one array is.

    Raises:
        SourceError: The data are no columns.
    """
    from streamdp.backends.duckdb.instance import kept

    return RecordsBackend("", "arrow", instance=kept(), records=records_of(data, name))
