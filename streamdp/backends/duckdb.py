"""DuckDB: files read where they lie, or a table of a DuckDB database; the embedded default."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import numpy as np

from streamdp.backends.duckdb_files import Files, Format, columns_named
from streamdp.backends.duckdb_words import DuckDBWords
from streamdp.backends.limits import NO_LIMITS, Limits
from streamdp.backends.question import asked, counts_of, question, require_kinds
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, Query

if TYPE_CHECKING:
    import duckdb


@dataclass(slots=True)
class DuckDBBackend:
    """Reads files with DuckDB; the rows never enter Python.

    A connection belongs to one thread: make a backend where it is used.

    Args:
        path: File or glob of a source cut by time; a batch that is a file brings its own.
        format: Of the files.
        time_column: Column whose UTC value puts a record in a window; None for files as batches.
        limits: Memory, time and threads of one question.
    """

    path: str
    format: Format
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _files: Files = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._files = Files(self.format)

    def check(self, query: Query, batch: Batch) -> None:
        """Look at names and types of the columns.

        Raises:
            SourceError: A file cannot be opened, a column is missing or of another type, or an
                expression cannot be understood.
        """
        words, path, connection = self._words(), self._path(batch), self._connect()
        try:
            named = self._named(query)
            table = self._files.table(connection, path, named)
            columns = self._describe(f"SELECT * FROM {table}", path)
            for name in self._own_columns(query):
                if name not in columns:
                    raise _no_column(name, columns, batch.source)
            in_files = [name for name in named if name in columns]
            self._files.require_everywhere(connection, path, in_files, batch.source)
        except _duckdb_error():
            raise SourceError(
                f"the files of source {batch.source} cannot be opened",
                where=path,
                hint="are they there, complete, readable, and of the configured format?",
                source=batch.source,
            ) from None
        kinds = self._kinds(query, table, path, columns, batch.source)
        if self.format == "parquet" and self.time_column is not None:
            kinds |= {"time": columns[self.time_column]}
        require_kinds(words, query, self.time_column, kinds, batch.source)

    def cell_counts(self, query: Query, batch: Batch) -> CellCounts:
        """One `GROUP BY` of cells over one batch; see `grouped_cell_counts`."""
        (counts,) = self.grouped_cell_counts(query, batch)
        return counts

    def grouped_cell_counts(self, query: Query, batch: Batch) -> tuple[CellCounts, ...]:
        """One scan for all public groups.

        Privacy: one record adds one to one cell of one group, or nothing if its value is null,
        NaN, infinite or (in text formats) no number, if its group is none of the public ones, or
        if the condition is not true of it. Values out of bounds are counted in the end cells. With
        a unit bound of k, one unit changes at most k counts.

        Raises:
            SourceError: The engine failed; its own words are dropped, since they quote rows.
        """
        path, connection = self._path(batch), self._connect()
        parameters: list[object] = [path]
        within = "true"
        if self.time_column is not None and batch.start is not None and batch.end is not None:
            parameters += [_timestamp(batch.start), _timestamp(batch.end)]
            within = f"{self._time()} >= ? AND {self._time()} < ?"
        try:
            table = self._files.table(connection, path, self._named(query))
            kinds = self._described(query, table, path)
            statement = question(self._words(), query, kinds, table, within)
            with self._in_time(connection):
                arrays = connection.execute(statement, parameters).fetchnumpy()
        except _duckdb_error():
            raise SourceError(
                f"source {batch.source} could not be read",
                hint="look at the engine's memory and at whether files change while being read",
                source=batch.source,
            ) from None
        codes, records = (np.asarray(arrays[name], dtype=np.int64) for name in ("code", "records"))
        return counts_of(query, codes, records)

    def _words(self) -> DuckDBWords:
        return DuckDBWords(text_is_number=self.format != "parquet")

    def _own_columns(self, query: Query) -> list[str]:
        """Columns that the configuration names outside of expressions."""
        value = [query.column] if query.expression is None else []
        unit = [query.bound.column] if query.bound else []
        return [*value, *unit, *query.by, *([self.time_column] if self.time_column else [])]

    def _named(self, query: Query) -> list[str]:
        expressions = [each for each in (query.expression, query.where) if each is not None]
        within = columns_named(self._connect(), expressions) if expressions else []
        return list(dict.fromkeys([*self._own_columns(query), *within]))

    def _describe(self, select: str, path: str) -> dict[str, str]:
        found = self._connect().execute(f"DESCRIBE {select}", [path]).fetchall()
        return {name: kind for name, kind, *_ in found}

    def _described(self, query: Query, table: str, path: str) -> dict[str, str]:
        """Types of what is asked; the condition is parsed with it."""
        words = self._words()
        parts = ", ".join(f"{sql} AS {part}" for part, sql in asked(words, query).items())
        where = "true" if query.where is None else query.where
        return self._describe(f"SELECT {parts} FROM {table} WHERE ({where})", path)

    def _kinds(
        self, query: Query, table: str, path: str, columns: Mapping[str, str], source: str
    ) -> dict[str, str]:
        try:
            return self._described(query, table, path)
        except _duckdb_error():
            missing = [name for name in self._named(query) if name not in columns]
            if missing:
                raise _no_column(missing[0], columns, source) from None
            raise SourceError(
                f"an expression for source {source} cannot be understood by DuckDB",
                where=" / ".join(each for each in (query.expression, query.where) if each),
                hint="write one SQL expression over the columns of one record",
                source=source,
            ) from None

    def _path(self, batch: Batch) -> str:
        """What the engine is asked to open: a file whatever its name, or the parts in a folder."""
        if batch.path is None:
            return self.path
        if os.path.isdir(batch.path):
            below = Path(self.path).parts[len(Path(batch.path).parts) :]
            return str(Path(glob.escape(batch.path), *below))
        return glob.escape(batch.path)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """In memory, in UTC, nothing spilled to disk, nothing fetched from the network."""
        if self._connection is None:
            import duckdb

            settings: dict[str, str | bool | int | float | list[str]] = {
                "temp_directory": "",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            }
            if self.limits.memory is not None:
                settings["memory_limit"] = f"{self.limits.memory}B"
            if self.limits.threads is not None:
                settings["threads"] = self.limits.threads
            self._connection = duckdb.connect(config=settings)
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection

    @contextmanager
    def _in_time(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Interrupt a question that takes longer than it may."""
        if self.limits.seconds is None:
            yield
            return
        timer = Timer(self.limits.seconds, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _time(self) -> str:
        """SQL of the time; a text with an offset is its instant, one without is UTC."""
        name = self._words().name(self.time_column or "")
        return name if self.format == "parquet" else f"TRY_CAST({name} AS TIMESTAMPTZ)"


def _no_column(name: str, columns: Mapping[str, str], source: str) -> SourceError:
    return SourceError(
        f"source {source} has no column {name!r}",
        hint=f"it has: {', '.join(sorted(columns))}",
        source=source,
    )


def _timestamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def _duckdb_error() -> type[Exception]:
    import duckdb

    return duckdb.Error
