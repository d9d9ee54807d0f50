"""Public tables and files, read as they are: what priors may start from and depend on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from streamdp.backends.sql.dialect import quoted
from streamdp.errors import SourceError
from streamdp.files import file_format, format_of
from streamdp.types import Batch, CellCounts, CellQuery, Format


class PublicFiles:
    """Reads public files with the embedded engine."""

    def counts(self, path: str, format: Format | None, query: CellQuery) -> CellCounts:
        """Rows of a file by cell."""
        from streamdp.backends.duckdb.engine import DuckDBBackend

        whole, form = Batch("public", path), format_of(path, format)
        typed = query.expression is not None or form in ("parquet", "arrow")
        types = {} if typed else {query.column: "number"}
        backend = DuckDBBackend(path, form, None, types=types)
        backend.check(query, whole)
        found: CellCounts = backend.answer(query, whole)
        return found

    def numbers(
        self, path: str, format: Format | None, key: str, columns: Sequence[str]
    ) -> Mapping[str, tuple[float, ...]]:
        """Numbers of each key; NaN where a value is none, the last row where a key comes twice.

        Raises:
            SourceError: The table cannot be read, or lacks a column.
        """
        import duckdb

        form = format or file_format(path) or "csv"
        reader = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_ndjson"}[form]
        numbers = ", ".join(f"TRY_CAST({quoted(name, chr(34))} AS DOUBLE)" for name in columns)
        select = f"SELECT CAST({quoted(key, chr(34))} AS VARCHAR), {numbers} FROM {reader}(?)"
        try:
            with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
                rows = connection.execute(select, [path]).fetchall()
        except duckdb.Error:
            raise SourceError(
                "this public table cannot be read",
                where=path,
                hint=f"is it there, of format {form}, with columns {', '.join((key, *columns))}?",
            ) from None
        return {
            str(name): tuple(math.nan if number is None else float(number) for number in row)
            for name, *row in rows
        }
