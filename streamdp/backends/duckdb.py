"""DuckDB: files read where they lie, or a table of a DuckDB database; the embedded default."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from streamdp.backends.duckdb_files import Files, columns_named
from streamdp.backends.duckdb_words import DuckDBWords, quoted
from streamdp.backends.limits import NO_LIMITS, Limits, ended_after
from streamdp.backends.relation import Relation
from streamdp.backends.sql import SqlBackend
from streamdp.errors import SourceError
from streamdp.types import Batch, CellQuery, Format, IntArray

if TYPE_CHECKING:
    import duckdb

SPILL_NOTHING: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
"""In memory, nothing spilled to disk, nothing fetched from the network."""


@dataclass(slots=True)
class DuckDBBackend(SqlBackend):
    """Reads files or a database with DuckDB; the rows never enter Python.

    A connection belongs to one thread: make a backend where it is used. A database file is opened
    for reading while a question is asked and closed after it, so that others can write.

    Args:
        path: File or glob of a source cut by time, or a database file; a batch that is a file
            brings its own.
        format: Of the files.
        time_column: Column whose UTC value puts a record in a window; None for files as batches.
        limits: Memory, time and threads of one question.
        relation: Table or query of a database file.
    """

    path: str
    format: Format | Literal["duckdb"]
    time_column: str | None = None
    limits: Limits = NO_LIMITS
    relation: Relation | None = None
    _connection: duckdb.DuckDBPyConnection | None = field(default=None, init=False, repr=False)
    _files: Files | None = field(default=None, init=False, repr=False)

    opening_hint = "is it there, complete, readable, and of the configured format?"
    reading_hint = "look at the engine's memory and at whether files change while being read"

    def __post_init__(self) -> None:
        if self.format != "duckdb":
            self._files = Files(self.format)

    @contextmanager
    def session(self) -> Iterator[None]:
        """A database file is attached as long as a question is asked."""
        if self.format != "duckdb":
            yield
            return
        connection = self._connect()
        try:
            connection.execute(f"ATTACH {quoted(self.path, chr(39))} AS records (READ_ONLY)")
            connection.execute("USE records")
        except self.failures():
            raise SourceError(
                "a DuckDB database cannot be opened",
                where=self.path,
                hint="is it there and readable, and does no other process write to it now?",
            ) from None
        try:
            yield
        finally:
            connection.execute("USE memory")
            connection.execute("DETACH records")

    def words(self) -> DuckDBWords:
        """DuckDB's, with text as numbers in formats that have no types."""
        return DuckDBWords(untyped=self.format in ("csv", "jsonl"))

    def table(self, query: CellQuery, batch: Batch) -> str:
        """SQL of the files, or of the table."""
        if self._files is None:
            return (self.relation or Relation()).sql(self.words())
        return self._files.table(self._connect(), self.place(batch), self.named(query))

    def place(self, batch: Batch) -> str:
        """What the engine is asked to open: a file whatever its name, or the parts in a folder."""
        if batch.path is None:
            return self.path
        if os.path.isdir(batch.path):
            below = Path(self.path).parts[len(Path(batch.path).parts) :]
            return str(Path(glob.escape(batch.path), *below))
        return glob.escape(batch.path)

    def describe(self, select: str) -> dict[str, str]:
        """Names and types."""
        found = self._connect().execute(f"DESCRIBE {select}").fetchall()
        return {name: kind for name, kind, *_ in found}

    def look_further(self, query: CellQuery, batch: Batch, columns: Mapping[str, str]) -> None:
        """Every file of a pattern must have the columns."""
        if self._files is not None:
            named = [name for name in self.named(query) if name in columns]
            self._files.require_everywhere(self._connect(), self.place(batch), named, batch.source)

    def run(self, statement: str) -> tuple[IntArray, IntArray]:
        """Arrays, straight from the engine."""
        connection = self._connect()
        with ended_after(self.limits.seconds, connection.interrupt):
            arrays = connection.execute(statement).fetchnumpy()
        codes, records = (np.asarray(arrays[name], dtype=np.int64) for name in ("code", "records"))
        return codes, records

    def named_in(self, expression: str) -> list[str]:
        """As DuckDB's parser tells."""
        return columns_named(self._connect(), expression)

    def moment(self, at: datetime) -> str:
        """A timestamp in UTC, the time zone of the session."""
        return f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'"

    def time(self) -> str:
        """SQL of the time; a text with an offset is its instant, one without is UTC."""
        name = self.words().name(self.time_column or "")
        return f"TRY_CAST({name} AS TIMESTAMPTZ)" if self.words().untyped else name

    def failures(self) -> tuple[type[Exception], ...]:
        """All of DuckDB's."""
        import duckdb

        return (duckdb.Error,)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            settings = dict(SPILL_NOTHING)
            if self.limits.memory is not None:
                settings["memory_limit"] = f"{self.limits.memory}B"
            if self.limits.threads is not None:
                settings["threads"] = self.limits.threads
            self._connection = duckdb.connect(config=settings)
            self._connection.execute("SET TimeZone = 'UTC'")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection
