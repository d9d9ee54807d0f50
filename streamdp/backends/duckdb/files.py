"""Files as one view of DuckDB: Parquet, CSV, JSON lines, Arrow; one record cannot fail the reading.

The engine is handed a list of files, never a pattern. Reading is total: what an engine would end a
question at is a null or no record, by a rule that looks at one record alone.

- CSV and JSON lines are text, a record is a line: see `lines`.
- Parquet has its types in the footer of each file, which says who reads it: see `parquet`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.lines import TextFiles
from streamdp.backends.duckdb.parquet import Parquet, PartitionColumn
from streamdp.backends.sql.dialect import quoted
from streamdp.backends.sql.relation import one_by_one
from streamdp.types import File, Format

if TYPE_CHECKING:
    import duckdb

VIEW = "batch_records"
"""Name of the view."""


@dataclass(slots=True)
class Files:
    """The files of a source as a view of a connection.

    Args:
        format: Of all of them.
        types: Declared types of columns of CSV and JSON lines, by name; other columns are text.
        quoted_newlines: Whether line ends in quotes of CSV are text.
    """

    format: Format
    types: Mapping[str, str] = field(default_factory=dict)
    quoted_newlines: bool = False
    _text: TextFiles | None = field(default=None, init=False, repr=False)
    _stored: tuple[str, ...] = field(default=(), init=False, repr=False)
    _made: object = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.format in ("csv", "jsonl"):
            self._text = TextFiles(self.format == "csv", self.types, self.quoted_newlines)

    def columns(self) -> tuple[str, ...]:
        """All columns of text and Parquet files, of which a view has those that were named."""
        return self._stored if self._text is None else self._text.columns

    def view(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
        unit: str | None = None,
        inside: Sequence[str] = (),
        partitions: Mapping[str, PartitionColumn] | None = None,
    ) -> str:
        """Make the view of all records in files and return its name.

        Args:
            connection: That has the view.
            files: All that hold records.
            named: Columns that will be named; the view has no others.
            unit: Column that bounds units.
            inside: Columns that stand in expressions.
            partitions: Columns of Parquet files that a table's log places; otherwise folders do.

        Raises:
            SourceError: A file cannot be handed to the engine, or has other columns than the rest.
        """
        wanted = (tuple(files), tuple(named), unit, tuple(inside))
        if wanted != self._made:
            self._made = None
            if self.format == "parquet":
                paths = tuple(file.path for file in files)
                read = Parquet(paths, tuple(named), unit, tuple(inside), partitions)
                select, stored = read.select(connection)
                self._stored = tuple(stored)
            else:
                chosen = unit is not None or bool(inside) or len(named) > 1
                select = self._records(connection, files, named, chosen)
            self._make(connection, select)
            self._made = wanted
        return VIEW

    def _make(self, connection: duckdb.DuckDBPyConnection, select: str) -> None:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {select}")
        described = connection.execute(f"DESCRIBE {VIEW}").fetchall()
        read = one_by_one(DuckDBDialect(), {name: kind for name, kind, *_ in described})
        if read:
            columns = ", ".join(f"{value} AS {_name(name)}" for name, value in read.items())
            select = f"SELECT * REPLACE ({columns}) FROM ({select})"
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {select}")

    def _records(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: Sequence[File],
        named: Sequence[str],
        chosen: bool,
    ) -> str:
        if self.format == "arrow":
            from streamdp.backends.duckdb import arrow

            read = [file.path for file in files]
            return f"FROM {arrow.register(connection, read, list(named))}"
        assert self._text is not None  # noqa: S101
        return self._text.select(connection, files, named, chosen=chosen)


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


def _name(column: str) -> str:
    return quoted(column, '"')
