"""Readers that have to be told apart: DuckDB's own of CSV and of lines, and others, put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import duckdb

from streamdp.backends.duckdb import text_files
from streamdp.backends.duckdb.dialect import dialect_of, header_of
from streamdp.backends.duckdb.text_files import TextFiles
from streamdp.backends.mariadb.words import MariaDBWords
from streamdp.backends.postgres.words import PostgresWords
from streamdp.types import File


def _own_reader(
    self: TextFiles,
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    named: Sequence[str],
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

    with patch.object(MariaDBWords, "tried", tried), patch.object(PostgresWords, "tried", tried):
        yield


@contextmanager
def mariadb_converts_texts() -> Iterator[None]:
    """Tell texts of MariaDB apart by their UTF-8, which some have only a `?` for."""

    def stored(self: MariaDBWords, column: str, charset: str | None) -> str:
        return self.bytewise(column)

    with patch.object(MariaDBWords, "stored", stored):
        yield


@contextmanager
def duckdb_finds_lines() -> Iterator[None]:
    """Find the lines of JSON lines files with DuckDB's own reader of CSV."""
    with patch.object(text_files, "LineStream", _OwnLines):
        yield
