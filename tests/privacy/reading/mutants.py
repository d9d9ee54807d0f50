"""Readers that have to be told apart: DuckDB's own of CSV and of lines, and others, put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import duckdb

from streamdp.backends.duckdb import arrow, lines
from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.files import VIEW
from streamdp.backends.duckdb.lines import TextFiles, dialect_of, header_of
from streamdp.backends.duckdb.parquet import LONGEST, Parquet
from streamdp.backends.mariadb import MariaDBDialect
from streamdp.backends.postgres import PostgresDialect
from streamdp.types import File, IntArray


def _own_reader(
    self: TextFiles,
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    named: Sequence[str],
    **_: bool,
) -> str:
    """All columns as text, cut by DuckDB, which reads stretches of 64 MiB beside each other."""
    header = header_of(files[0].path)
    assert header is not None
    self.columns = dialect_of(header).columns
    texts = ", ".join(f"'{name}': 'VARCHAR'" for name in self.columns)
    columns = ", ".join(self._typed(f'"{name}"', name) for name in self.columns)
    paths = ", ".join(f"'{file.path}'" for file in files)
    return (
        f"SELECT {columns} FROM read_csv([{paths}], columns = {{{texts}}}, header = true,"
        " delim = ',', quote = '\"', escape = '\"', auto_detect = false, ignore_errors = true,"
        f" strict_mode = false, max_line_size = {2**24})"
    )


class _OwnLines:
    """Lines as DuckDB's reader of CSV finds them if nothing is a delimiter or a quote."""

    def __init__(self, files: tuple[str, ...]) -> None:
        self._files = files

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        paths = ", ".join(f"'{path}'" for path in self._files)
        found = duckdb.connect().sql(
            f"FROM read_csv([{paths}], columns = {{'field_0': 'VARCHAR'}}, delim = '\x01',"
            " quote = '', escape = '', header = false, auto_detect = false, ignore_errors = true,"
            f" strict_mode = false, max_line_size = {2**24}) WHERE strlen(field_0) > 0"
        )
        return found.to_arrow_table().__arrow_c_stream__(requested_schema)


@contextmanager
def duckdb_reads_csv() -> Iterator[None]:
    """Read CSV with DuckDB's own reader."""
    with patch.object(TextFiles, "select", _own_reader):
        yield


@contextmanager
def expressions_are_raw() -> Iterator[None]:
    """Hand expressions to PostgreSQL and MariaDB as they are written."""

    def tried(self: object, expression: str) -> str:
        return f"({expression})"

    with (
        patch.object(MariaDBDialect, "tried", tried),
        patch.object(PostgresDialect, "tried", tried),
    ):
        yield


@contextmanager
def mariadb_converts_texts() -> Iterator[None]:
    """Tell texts of MariaDB apart by their UTF-8, which some have only a `?` for."""

    def stored(self: MariaDBDialect, column: str, charset: str | None) -> str:
        return self.bytewise(column)

    with patch.object(MariaDBDialect, "stored", stored):
        yield


@contextmanager
def duckdb_finds_lines() -> Iterator[None]:
    """Find the lines of JSON lines files with DuckDB's own reader of CSV."""
    with patch.object(lines, "LineStream", _OwnLines):
        yield


def _duckdbs(self: Parquet, connection: duckdb.DuckDBPyConnection) -> tuple[str, list[str]]:
    """DuckDB's reader, left to itself: it types folders by the names of all of them."""
    paths = ", ".join(f"'{path}'" for path in self.files)
    return f"FROM read_parquet([{paths}], union_by_name = true)", []


@contextmanager
def duckdb_types_folders() -> Iterator[None]:
    """Read Parquet with DuckDB's own reader, which fails at a text that is no UTF-8."""
    with patch.object(Parquet, "select", _duckdbs):
        yield


@contextmanager
def arrow_takes_over() -> Iterator[None]:
    """Read Parquet with Arrow's reader where DuckDB's fails, and cast it to DuckDB's types."""
    run, view = DuckDBBackend.run, DuckDBBackend.table
    asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def table(self: DuckDBBackend, query: Any, batch: Any) -> str:
        files = tuple(file.path for file in self._files_of(batch))
        asked.append((files, tuple(self.named(query))))
        return view(self, query, batch)

    def again(self: DuckDBBackend, statement: str) -> IntArray:
        try:
            return run(self, statement)
        except duckdb.Error:
            connection, (files, named) = self._connect(), asked[-1]
            kinds = connection.execute(f"DESCRIBE {VIEW}").fetchall()
            with (
                patch.object(arrow, "stored_type", lambda kind: kind),
                patch.object(arrow, "stored", lambda values: values),
            ):
                tables = arrow.register_parquet(connection, files, named, None, LONGEST)
                cast = (
                    f'CAST("{name}" AS {kind}) AS "{name}"'
                    for name, kind, *_ in kinds
                    if name in named
                )
                select = f"SELECT {', '.join(cast)} FROM"
                made = " UNION ALL ".join(f"{select} {each}" for each in tables)
                connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {made}")
                return run(self, statement)

    with (
        patch.object(Parquet, "select", _duckdbs),
        patch.object(DuckDBBackend, "table", table),
        patch.object(DuckDBBackend, "run", again),
    ):
        yield


@contextmanager
def expressions_are_untried() -> Iterator[None]:
    """Hand expressions to DuckDB as they are written."""
    with patch.object(DuckDBDialect, "tried", lambda _, expression: f"({expression})"):
        yield


@contextmanager
def arrow_is_handed_on() -> Iterator[None]:
    """Hand values of Arrow files to DuckDB as they are."""
    with patch.object(arrow, "plain", lambda values, kind: values):
        yield


@contextmanager
def decimals_are_as_stored() -> Iterator[None]:
    """Read decimals of DuckDB tables whatever their bits are."""
    with patch.object(DuckDBDialect, "plain_decimal", lambda self, value, kind: None):
        yield
