"""Readers that have to be told apart: DuckDB's own reader of CSV, put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import duckdb

from streamdp.backends.duckdb.dialect import dialect_of, header_of
from streamdp.backends.duckdb.text_files import TextFiles
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


@contextmanager
def duckdb_reads_csv() -> Iterator[None]:
    """Read CSV with DuckDB's own reader."""
    with patch.object(TextFiles, "select", _own_reader):
        yield
