"""Delta tables, read by DuckDB from the Parquet files that their log names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.backends.duckdb import arrow
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.lakes import files_of, identity, schema_of
from streamdp.types import Batch, File, Query

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class DeltaBackend(DuckDBBackend):
    """Reads the files that the source found; the path is the folder of the table."""

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """The table's own identifier: its files may be written anew.

        Raises:
            SourceError: The table cannot be read.
        """
        return (identity(self.path),)

    def table(self, query: Query, batch: Batch) -> str:
        """The view of the files; a table without a record has none, and is a batch like others.

        Privacy: that a file is there follows from the records, so nothing may fail without one.
        """
        if batch.files or files_of(self.path):
            return DuckDBBackend.table(self, query, batch)
        self._read = (), self.named(query)
        schema = schema_of(self.path)
        return arrow.register_records(self._connect(), schema, _nothing, self.named(query))

    def _files_of(self, batch: Batch) -> tuple[File, ...]:
        files = batch.files or files_of(self.path)
        return DuckDBBackend._files_of(self, Batch(batch.source, batch.key, files=files))


def _nothing(file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    return iter(())
