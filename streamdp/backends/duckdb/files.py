"""Files as one view of DuckDB: Parquet, CSV, JSON lines, Arrow; one record cannot fail the reading.

The engine is handed a list of files, never a pattern. Reading is total: what an engine would end a
question at is a null or no record, by a rule that looks at one record alone.

- CSV and JSON lines are text. A column has the type that the configuration declares for it, and a
  value that is none of that type is null. A line longer than LONGEST, or that is no UTF-8, is no
  record: the reader's own limit is wider, since next to it the place in the file would decide.
- Parquet is read by DuckDB and, where that fails, by Arrow's reader (`plain_view`), which makes
  null of a text that is no UTF-8 and of a time that has no microseconds. All other values are the
  same in both, so it does not matter which one answers.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamdp.backends.duckdb.dialect import Dialect, dialect_of, header_of
from streamdp.backends.duckdb.text_values import typed
from streamdp.backends.duckdb.words import DuckDBWords
from streamdp.backends.sql.relation import one_by_one
from streamdp.backends.sql.words import quoted
from streamdp.errors import SourceError
from streamdp.types import File, Format

if TYPE_CHECKING:
    import duckdb

VIEW = "batch_records"
"""Name of the view."""

LONGEST = 2**20
"""Bytes of a record as text; with every quote doubled it is still far below READ_AHEAD."""

READ_AHEAD = 2**24
"""Bytes of the longest line that is looked at."""

_WITHOUT_COLUMN = (
    "SELECT min(file_name) FROM (SELECT file_name FROM parquet_schema(?)"
    " GROUP BY file_name HAVING NOT bool_or(name = ?))"
)
_LINES = (
    "columns = {'line': 'VARCHAR'}, delim = '\x01', quote = '', escape = '', header = false,"
    f" auto_detect = false, ignore_errors = true, strict_mode = false, max_line_size = {READ_AHEAD}"
)


@dataclass(slots=True)
class Files:
    """The files of a source as a view of a connection.

    Args:
        format: Of all of them.
        types: Declared types of columns of CSV and JSON lines, by name; other columns are text.
        hive: Whether a folder `column=value` of Parquet files is a column.
    """

    format: Format
    types: Mapping[str, str] = field(default_factory=dict)
    hive: bool = True
    _made: object = field(default=None, init=False, repr=False)

    def view(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
    ) -> str:
        """Make the view of all records in files and return its name.

        Args:
            connection: That has the view.
            files: All that hold records.
            named: Columns that will be named; Arrow files have no others.

        Raises:
            SourceError: A file cannot be handed to the engine, or has other columns than the rest.
        """
        wanted = (tuple(files), tuple(named))
        if wanted != self._made:
            self._made = None
            self._make(connection, self._records(connection, files, named))
            self._made = wanted
        return VIEW

    def plain_view(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
    ) -> None:
        """Make the view anew, of Parquet files that Arrow's reader reads; types stay as they are.

        Raises:
            SourceError: Arrow's reader cannot read a file, or has a column in another type.
        """
        from streamdp.backends.duckdb import arrow

        kinds = {
            name: kind
            for name, kind, *_ in connection.execute(f"DESCRIBE {VIEW}").fetchall()
            if name.lower() in {each.lower() for each in named}
        }
        self._made = None
        tables = arrow.register_parquet(connection, [file.path for file in files], list(kinds))
        columns = ", ".join(
            f"CAST({quoted(name, chr(34))} AS {kind}) AS {quoted(name, chr(34))}"
            for name, kind in kinds.items()
        )
        parts = (f"SELECT {columns or '1 AS one'} FROM {table}" for table in tables)
        self._make(connection, " UNION ALL ".join(parts))

    def require_everywhere(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        columns: Iterable[str],
        source: str,
    ) -> None:
        """Require the columns in every Parquet file: a missing one would fail after the charge.

        Raises:
            SourceError: A file has no such column.
        """
        if self.format != "parquet" or len(files) < 2:
            return
        paths = [_handed_over(file.path) for file in files]
        for column in columns:
            found = connection.execute(_WITHOUT_COLUMN, [paths, column]).fetchall()
            if found and found[0][0] is not None:
                raise SourceError(
                    f"a file of source {source} has no column {column!r}",
                    where=found[0][0],
                    hint="files of one source need the configured columns; move this one away",
                    source=source,
                )

    def _make(self, connection: duckdb.DuckDBPyConnection, select: str) -> None:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {select}")
        described = connection.execute(f"DESCRIBE {VIEW}").fetchall()
        read = one_by_one(DuckDBWords(), {name: kind for name, kind, *_ in described})
        if read:
            columns = ", ".join(f"{value} AS {_name(name)}" for name, value in read.items())
            select = f"SELECT * REPLACE ({columns}) FROM ({select})"
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {select}")

    def _records(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[File], named: Sequence[str]
    ) -> str:
        if self.format == "arrow":
            from streamdp.backends.duckdb import arrow

            read = [file.path for file in files]
            return f"FROM {arrow.register(connection, read, list(named))}"
        paths = [_handed_over(file.path) for file in files]
        if self.format == "parquet":
            hive = "" if self.hive else ", hive_partitioning = false"
            return f"FROM read_parquet({_list(paths)}, union_by_name = true{hive})"
        if self.format == "jsonl":
            return self._json_lines(paths)
        return self._csv(files, named)

    def _json_lines(self, paths: list[str]) -> str:
        """Columns that are declared; each line is parsed by itself, and may have none of them."""
        columns = ", ".join(
            self._typed(f"found[{place}]", name) for place, name in enumerate(self.types, start=1)
        )
        places = ", ".join(quoted(_place(name), "'") for name in self.types)
        return (
            f"SELECT {columns or '1 AS one'} FROM (SELECT TRY(json_extract_string(line,"
            f" [{places}]::VARCHAR[])) AS found FROM read_csv({_list(paths)}, {_LINES})"
            f" WHERE strlen(line) BETWEEN 1 AND {LONGEST}) AS lines"
        )

    def _csv(self, files: Sequence[File], named: Sequence[str]) -> str:
        """All columns of the header; files of no bytes have neither a header nor a record."""
        dialects = {file.path: _dialect(file.path) for file in files}
        kinds = set(dialects.values()) - {None}
        if len(kinds) > 1:
            raise SourceError(
                "the files do not all have one header line",
                where=files[0].path,
                hint="files of one source need the same columns in the same order",
            )
        dialect = next(iter(kinds), None)
        if dialect is None:
            columns = ", ".join(self._typed("CAST(NULL AS VARCHAR)", name) for name in named)
            return f"SELECT {columns or '1 AS one'} WHERE false"
        whole = [_handed_over(path) for path, each in dialects.items() if each is not None]
        texts = ", ".join(f"{quoted(name, chr(39))}: 'VARCHAR'" for name in dialect.columns)
        columns = ", ".join(self._typed(_name(name), name) for name in dialect.columns)
        length = " + ".join(f"coalesce(strlen({_name(name)}), 0)" for name in dialect.columns)
        return (
            f"SELECT {columns} FROM read_csv({_list(whole)}, columns = {{{texts}}}, header = true,"
            f" delim = {quoted(dialect.delimiter, chr(39))}, quote = '\"', escape = '\"',"
            " auto_detect = false, ignore_errors = true, strict_mode = false,"
            f" max_line_size = {READ_AHEAD}) WHERE {length} <= {LONGEST}"
        )

    def _typed(self, text: str, name: str) -> str:
        return f"{typed(text, self.types.get(name, 'text'))} AS {_name(name)}"


def columns_named(connection: duckdb.DuckDBPyConnection, expression: str) -> list[str]:
    """Columns that an expression names, as DuckDB parses it; none if it cannot be parsed."""
    select = f"SELECT ({expression})"
    found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [select]).fetchall()
    return list(dict.fromkeys(_column_names(json.loads(found[0][0] if found else "null"))))


def _column_names(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            yield node["column_names"][-1]
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _column_names(child)


def _dialect(path: str) -> Dialect | None:
    """The dialect of a file, from its first line; None if it has no bytes."""
    header = header_of(path)
    return None if header is None else dialect_of(header, path)


def _handed_over(path: str) -> str:
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


def _list(paths: Iterable[str]) -> str:
    return f"[{', '.join(quoted(path, chr(39)) for path in paths)}]"


def _name(column: str) -> str:
    return quoted(column, '"')


def _place(column: str) -> str:
    """Where in an object a value stands: a JSON path, or a JSON pointer for a name with quotes."""
    if '"' in column or "\\" in column:
        return "/" + column.replace("~", "~0").replace("/", "~1")
    return f'$."{column}"'
