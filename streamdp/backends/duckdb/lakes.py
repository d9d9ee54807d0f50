"""Tables in folders, read by DuckDB from the Parquet files that their logs name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamdp.backends.duckdb.arrow import TABLE
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.files import Files
from streamdp.backends.duckdb.parquet import PartitionColumn, footer_without_records
from streamdp.lakes import Lake, delta
from streamdp.types import Batch, File, Query

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class LakeBackend(DuckDBBackend):
    """Reads the files that the source found; the path is the folder of the table.

    Args:
        lake: Reader of the table's format.
    """

    lake: Lake = delta
    _values: dict[tuple[str, ...], dict[str, PartitionColumn]] = field(
        default_factory=dict, init=False, repr=False
    )
    _empty: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._files = Files("parquet")

    def origins(self, batch: Batch) -> tuple[str, ...]:
        """The table's own identifier, since its files may be rewritten.

        Raises:
            SourceError: The table cannot be read.
        """
        return (self.lake.identity(self.path),)

    def check(self, query: Query, batch: Batch) -> None:
        """Check the columns; those of an empty table are kept until it is answered.

        Raises:
            SourceError: See `SqlBackend.check`.
        """
        self._empty.pop((batch.key, *self.named(query)), None)
        DuckDBBackend.check(self, query, batch)

    def let_go(self) -> None:
        """Forget the columns of empty tables, and what the log says of files."""
        self._empty.clear()
        self._values.clear()

    def table(self, query: Query, batch: Batch) -> str:
        """The view of the files; a table without a record has none, and is a batch like others.

        Privacy: that a file is there follows from the records, so nothing may fail without one.
        """
        if self._listed(batch):
            return DuckDBBackend.table(self, query, batch)
        self._read = None
        self._known.clear()
        asked = (batch.key, *self.named(query))
        self._empty[asked] = self._empty.get(asked) or self.lake.schema_of(self.path)
        schema = self._empty[asked]
        footer = footer_without_records(schema, self.path)
        names = footer.named(self.named(query))
        for name in names:
            footer.kind(name)
        self._connect().register(TABLE, schema.empty_table().select(names or schema.names[:1]))
        return TABLE

    def look_further(self, query: Query, batch: Batch, columns: Mapping[str, str]) -> None:
        """Require the columns in every file, with the meaning they have in the table."""
        files = self._listed(batch)
        if files:
            self.lake.require_columns(self.path, files)
            DuckDBBackend.look_further(self, query, batch, columns)

    def _partitions(self, files: Sequence[File]) -> Mapping[str, PartitionColumn]:
        """Partition columns by the table's log; found by the check, and kept until let go."""
        paths = tuple(file.path for file in files)
        if paths not in self._values:
            partitions = self.lake.partition_columns(self.path, paths)
            kinds = self._kinds_of([kind for kind, _ in partitions.values()])
            self._values[paths] = {
                name: PartitionColumn(kind, values)
                for (name, (_, values)), kind in zip(partitions.items(), kinds, strict=True)
            }
        return self._values[paths]

    def _kinds_of(self, types: Sequence[pa.DataType]) -> list[str]:
        """DuckDB's names of types."""
        import pyarrow as pa

        if not types:
            return []
        fields = [pa.field(f"column {number}", kind) for number, kind in enumerate(types)]
        self._connect().register(TABLE, pa.schema(fields).empty_table())
        described = self._connect().execute(f"DESCRIBE {TABLE}").fetchall()
        return [kind for _, kind, *_ in described]

    def _files_of(self, batch: Batch) -> tuple[File, ...]:
        listed = self._listed(batch)
        return DuckDBBackend._files_of(self, Batch(batch.source, batch.key, files=listed))

    def _listed(self, batch: Batch) -> tuple[File, ...]:
        """Files of the version that the source found: a window stays at it, even at an empty one.

        Raises:
            SourceError: The table cannot be read.
        """
        if batch.files or batch.start is not None:
            return batch.files
        return self.lake.files_of(self.path)
