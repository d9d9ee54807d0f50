"""Files as one view of DuckDB: Parquet, CSV, JSON lines, Arrow; one record cannot fail the reading.

The engine is handed a list of files, never a pattern. Reading is total: what an engine would end a
question at is a null or no record, by a rule that looks at one record alone.

- CSV and JSON lines are text, a record is a line: see `lines` and `text_files`.
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

from streamdp.backends.duckdb.text_files import TextFiles
from streamdp.backends.duckdb.words import DuckDBWords
from streamdp.backends.sql.relation import one_by_one
from streamdp.backends.sql.words import quoted
from streamdp.errors import SourceError
from streamdp.types import File, Format

if TYPE_CHECKING:
    import duckdb

VIEW = "batch_records"
"""Name of the view."""

_WITHOUT_COLUMN = (
    "SELECT min(file_name) FROM (SELECT file_name FROM parquet_schema(?)"
    " GROUP BY file_name HAVING NOT bool_or(name = ?))"
)


@dataclass(slots=True)
class Files:
    """The files of a source as a view of a connection.

    Args:
        format: Of all of them.
        types: Declared types of columns of CSV and JSON lines, by name; other columns are text.
        hive: Whether a folder `column=value` of Parquet files is a column.
        quoted_newlines: Whether line ends in quotes of CSV are text.
    """

    format: Format
    types: Mapping[str, str] = field(default_factory=dict)
    hive: bool = True
    quoted_newlines: bool = False
    _text: TextFiles | None = field(default=None, init=False, repr=False)
    _made: object = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.format in ("csv", "jsonl"):
            self._text = TextFiles(self.format == "csv", self.types, self.quoted_newlines)

    def columns(self) -> tuple[str, ...]:
        """All columns of text files, of which a view has those that were named."""
        return () if self._text is None else self._text.columns

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
            named: Columns that will be named; Arrow and text files have no others.

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
        if self._text is not None:
            return self._text.select(connection, files, named)
        hive = "" if self.hive else ", hive_partitioning = false"
        return f"FROM read_parquet({_list(paths)}, union_by_name = true{hive})"


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
