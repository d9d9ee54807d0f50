"""DuckDB: Parquet, CSV and JSON-lines files, read where they lie; the embedded default."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from streamdp.backends.dialect import Dialect, dialect_of
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, Query

if TYPE_CHECKING:
    import duckdb

Format = Literal["parquet", "csv", "jsonl"]

_Seen = tuple[str, int, int]
"""Name, time of change and size of a file."""

_NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
)
_TIMES = ("DATE", "TIMESTAMP")
_FIRST_LINE = (
    "SELECT line FROM read_csv(?, columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '',"
    " escape = '', header = false, auto_detect = false, ignore_errors = true, strict_mode = false)"
    " LIMIT 1"
)


@dataclass(slots=True)
class DuckDBBackend:
    """Reads files with DuckDB; the rows never enter Python.

    A connection belongs to one thread: make a backend where it is used.

    Args:
        path: File or glob of a source cut by time; a batch that is a file brings its own.
        format: Of the files.
        time_column: Column whose UTC value puts a record in a window; None for files as batches.
    """

    path: str
    format: Format
    time_column: str | None = None
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _dialects: dict[_Seen, Dialect] = field(default_factory=dict, init=False, repr=False)

    def check(self, query: Query, batch: Batch) -> None:
        """Look at names and types of the columns.

        In CSV and JSON lines every value is text and a value that is no number is dropped, as a
        null is: types guessed from rows would let one record decide how the others are read.

        Raises:
            SourceError: A file cannot be opened, or a column is missing or of another type.
        """
        columns, path = self._columns(query), self._path(batch)
        try:
            schema = self._connect().execute(
                f"DESCRIBE SELECT * FROM {self._table(path, columns)}",  # noqa: S608
                [path],
            )
            types = {name: kind for name, kind, *_ in schema.fetchall()}
        except _duckdb_error():
            raise SourceError(
                f"the files of source {batch.source} cannot be opened",
                where=path,
                hint="are they there, complete, readable, and of the configured format?",
                source=batch.source,
            ) from None
        wanted = ((query.column, _NUMBERS), (self.time_column, _TIMES))
        for column, allowed in wanted:
            if column is not None:
                self._check_column(column, types, allowed, batch.source)

    def cell_counts(self, query: Query, batch: Batch) -> CellCounts:
        """One `GROUP BY` of cells over one batch.

        Privacy: one record adds one to one cell, or nothing if its value is null, NaN, infinite
        or (in text formats) no number. Values out of bounds are counted in the end cells.

        Raises:
            SourceError: The engine failed; its own words are dropped, since they quote rows.
        """
        columns, path = self._columns(query), self._path(batch)
        parameters: list[object] = [path]
        within = "true"
        if self.time_column is not None and batch.start is not None and batch.end is not None:
            parameters += [_timestamp(batch.start), _timestamp(batch.end)]
            within = f"{self._time()} >= ? AND {self._time()} < ?"
        try:
            found = self._connect().execute(
                f"SELECT {_cell(query)} AS cell, count(*) AS records"  # noqa: S608
                f" FROM (SELECT TRY_CAST({_quoted(query.column)} AS DOUBLE) AS x"
                f" FROM {self._table(path, columns)} WHERE {within})"
                f" WHERE isfinite(x) GROUP BY cell ORDER BY cell",
                parameters,
            )
            arrays = found.fetchnumpy()
        except _duckdb_error():
            raise SourceError(
                f"source {batch.source} could not be read",
                hint="look at the engine's memory and at whether files change while being read",
                source=batch.source,
            ) from None
        return CellCounts(
            np.asarray(arrays["cell"], dtype=np.int64),
            np.asarray(arrays["records"], dtype=np.int64),
        )

    def _columns(self, query: Query) -> list[str]:
        return [query.column, *([self.time_column] if self.time_column else [])]

    def _path(self, batch: Batch) -> str:
        """What the engine is asked to open; a batch is one file, whatever its name looks like."""
        return glob.escape(batch.path) if batch.path else self.path

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """In memory, in UTC, nothing spilled to disk, nothing fetched from the network."""
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(
                config={
                    "temp_directory": "",
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                }
            )
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection

    def _table(self, path: str, columns: list[str]) -> str:
        """SQL of the table in a file or glob; in text formats every value is text."""
        if self.format == "parquet":
            return "read_parquet(?)"
        if self.format == "jsonl":
            return f"read_ndjson(?, columns = {_as_text(columns)}, ignore_errors = true)"
        dialect = self._dialect(path)
        return (
            f"read_csv(?, columns = {_as_text(dialect.columns)}, header = true,"
            f" delim = {_quoted(dialect.delimiter, chr(39))}, quote = '\"', escape = '\"',"
            " auto_detect = false, ignore_errors = true, strict_mode = false)"
        )

    def _dialect(self, path: str) -> Dialect:
        """The one dialect of all files of a path; a first line is read anew if its file changed."""
        files = self._connect().execute("SELECT file FROM glob(?) ORDER BY file", [path]).fetchall()
        seen = [_seen(file) for (file,) in files]
        for file in seen:
            if file not in self._dialects:
                found = self._connect().execute(_FIRST_LINE, [glob.escape(file[0])]).fetchone()
                self._dialects[file] = dialect_of(found[0] if found else "")
        dialects = {self._dialects[file] for file in seen}
        if len(dialects) != 1:
            raise SourceError(
                "the files do not all have one header line" if files else "there is no file",
                where=path,
                hint="files of one source need the same columns in the same order",
            )
        return dialects.pop()

    def _time(self) -> str:
        """SQL of the time; a text with an offset is its instant, one without is UTC."""
        name = _quoted(self.time_column or "")
        return name if self.format == "parquet" else f"TRY_CAST({name} AS TIMESTAMPTZ)"

    def _check_column(
        self, column: str, types: dict[str, str], allowed: tuple[str, ...], source: str
    ) -> None:
        kind = types.get(column)
        if kind is None:
            raise SourceError(
                f"source {source} has no column {column!r}",
                hint=f"it has: {', '.join(sorted(types))}",
                source=source,
            )
        if self.format == "parquet" and not kind.upper().startswith(allowed):
            raise SourceError(
                f"column {column!r} of source {source} has type {kind},"
                f" wanted is one of {', '.join(allowed)}",
                hint="name another column, or write the files with a proper type",
                source=source,
            )


def _seen(file: str) -> _Seen:
    try:
        facts = os.stat(file)
    except OSError:
        return file, 0, 0
    return file, facts.st_mtime_ns, facts.st_size


def _cell(query: Query) -> str:
    """SQL of floor(x/resolution + 1/2), clamped; the resolution enters as two exact integers."""
    grid = query.grid
    scaled = f"x * {grid.resolution.denominator} / {grid.resolution.numerator}.0"
    cell = f"greatest({grid.lower}.0, least({grid.upper}.0, floor({scaled} + 0.5)))"
    return f"CAST({cell} AS BIGINT)"


def _as_text(columns: Iterable[str]) -> str:
    return "{" + ", ".join(f"{_quoted(name, chr(39))}: 'VARCHAR'" for name in columns) + "}"


def _quoted(name: str, quote: str = '"') -> str:
    return quote + name.replace(quote, quote * 2) + quote


def _timestamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error
