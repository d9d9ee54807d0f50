"""Files as tables of DuckDB: Parquet, CSV, JSON lines, Arrow; checked before they are counted."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamdp.backends.dialect import Dialect, dialect_of
from streamdp.backends.duckdb_words import quoted
from streamdp.errors import SourceError
from streamdp.types import Format

if TYPE_CHECKING:
    import duckdb

_Seen = tuple[str, int, int]
"""Name, time of change and size of a file."""

_WITHOUT_COLUMN = (
    "SELECT min(file_name) FROM (SELECT file_name FROM parquet_schema(?)"
    " GROUP BY file_name HAVING NOT bool_or(name = ?))"
)
_FIRST_LINE = (
    "SELECT line FROM read_csv(?, columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '',"
    " escape = '', header = false, auto_detect = false, ignore_errors = true, strict_mode = false)"
    " LIMIT 1"
)


@dataclass(slots=True)
class Files:
    """The files of a source.

    In CSV and JSON lines every value is text and a value that is no number is dropped, as a null
    is: types guessed from rows would let one record decide how the others are read.

    Args:
        format: Of all of them.
    """

    format: Format
    _dialects: dict[_Seen, Dialect] = field(default_factory=dict, init=False, repr=False)

    def table(self, connection: duckdb.DuckDBPyConnection, path: str, named: Iterable[str]) -> str:
        """SQL of the table in a file or glob.

        Args:
            connection: To look at first lines with.
            path: File or glob.
            named: Columns that will be named; JSON lines and Arrow files have no others.
        """
        if self.format == "arrow":
            from streamdp.backends import arrow

            return arrow.register(connection, _files(connection, path), list(named))
        file = quoted(path, "'")
        if self.format == "parquet":
            return f"read_parquet({file}, union_by_name = true)"
        if self.format == "jsonl":
            return f"read_ndjson({file}, columns = {_as_text(named)}, ignore_errors = true)"
        dialect = self._dialect(connection, path)
        return (
            f"read_csv({file}, columns = {_as_text(dialect.columns)}, header = true,"
            f" delim = {quoted(dialect.delimiter, chr(39))}, quote = '\"', escape = '\"',"
            " auto_detect = false, ignore_errors = true, strict_mode = false)"
        )

    def require_everywhere(
        self, connection: duckdb.DuckDBPyConnection, path: str, columns: Iterable[str], source: str
    ) -> None:
        """Look into every Parquet file: one without a column would fail after the charge is spent.

        Raises:
            SourceError: A file has no such column.
        """
        if self.format != "parquet" or not glob.has_magic(path):
            return
        for column in columns:
            found = connection.execute(_WITHOUT_COLUMN, [path, column]).fetchone()
            if found is not None and found[0] is not None:
                raise SourceError(
                    f"a file of source {source} has no column {column!r}",
                    where=found[0],
                    hint="files of one source need the configured columns; move this one away",
                    source=source,
                )

    def _dialect(self, connection: duckdb.DuckDBPyConnection, path: str) -> Dialect:
        """The one dialect of all files of a path; a first line is read anew if its file changed."""
        seen = [_seen(file) for file in _files(connection, path)]
        for file in seen:
            if file not in self._dialects:
                found = connection.execute(_FIRST_LINE, [glob.escape(file[0])]).fetchone()
                self._dialects[file] = dialect_of(found[0] if found else "")
        dialects = {self._dialects[file] for file in seen}
        if len(dialects) != 1:
            raise SourceError(
                "the files do not all have one header line",
                where=path,
                hint="files of one source need the same columns in the same order",
            )
        return dialects.pop()


def _files(connection: duckdb.DuckDBPyConnection, path: str) -> list[str]:
    """Files of a glob, in the order of their names.

    Raises:
        SourceError: There are none.
    """
    found = connection.execute("SELECT file FROM glob(?) ORDER BY file", [path]).fetchall()
    if not found:
        raise SourceError("there is no file", where=path, hint="is the path right?")
    return [file for (file,) in found]


def columns_named(connection: duckdb.DuckDBPyConnection, expression: str) -> list[str]:
    """Columns that an expression names, as DuckDB parses it; none if it cannot be parsed."""
    select = f"SELECT ({expression})"
    found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [select]).fetchone()
    return list(dict.fromkeys(_column_names(json.loads(found[0] if found else "null"))))


def _column_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"][-1]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _column_names(child)


def _seen(file: str) -> _Seen:
    try:
        facts = os.stat(file)
    except OSError:
        return file, 0, 0
    return file, facts.st_mtime_ns, facts.st_size


def _as_text(columns: Iterable[str]) -> str:
    return "{" + ", ".join(f"{quoted(name, chr(39))}: 'VARCHAR'" for name in columns) + "}"
