"""Records in memory: the reference that every engine must agree with."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamdp.backends.sql.cells import cells_of
from streamdp.backends.sql.scan import answer_of, fields_of
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, CellQuery, KeyQuery, Query
from tests.contract.memory.keys import keys_of
from tests.contract.memory.scan import scan_records
from tests.contract.memory.values import chosen, double_of, text_of

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MemoryBackend:
    """Python values by column; conditions and expressions, which are SQL, it cannot answer.

    Args:
        columns: Values of each column, all of one length.
        time_column: Column whose UTC value puts a record in a window.
    """

    columns: Mapping[str, Sequence[Any]]
    time_column: str | None = None

    def check(self, query: Query, batch: Batch) -> None:
        """Refuse SQL and columns that are not there.

        Raises:
            SourceError: One of these.
        """
        fields = list(fields_of(query))
        if query.where is not None or any(field.expression is not None for field in fields):
            raise SourceError("records in memory cannot be asked in SQL", source=batch.source)
        for field in fields:
            if field.column not in self.columns:
                raise SourceError(f"there is no column {field.column!r}", source=batch.source)

    def answer(self, query: Query, batch: Batch) -> Any:
        """The statistic that answers a question, or one for each of its groups."""
        self.check(query, batch)
        if isinstance(query, CellQuery):
            counts = self._cell_counts(query, batch)
            return counts if query.by else counts[0]
        if isinstance(query, KeyQuery):
            return keys_of(query, self._records(batch))
        found = [answer_of(query, each) for each in scan_records(query, self._records(batch))]
        return tuple(found) if query.by else found[0]

    def _cell_counts(self, query: CellQuery, batch: Batch) -> tuple[CellCounts, ...]:
        """Counts of each public group.

        Privacy: as `sql.SqlBackend.answer`.
        """
        parts = {group: part for part, group in enumerate(query.groups)}
        found: list[tuple[tuple[int, int], Any]] = []
        for record in self._records(batch):
            part = parts.get(tuple(text_of(record[name]) for name in query.by))
            x = double_of(record[query.column])
            if part is not None and x is not None and math.isfinite(x):
                (cell,) = cells_of(np.array([x]), query.grid).tolist()
                unit = record[query.bound.column] if query.bound else None
                found.append(((part, cell), unit))
        if query.bound is not None:
            found = list(chosen(found, query.bound))
        grouped: list[list[int]] = [[] for _ in query.groups]
        for (part, cell), _ in found:
            grouped[part].append(cell)
        unique = [
            np.unique(np.array(cells, dtype=np.int64), return_counts=True) for cells in grouped
        ]
        return tuple(CellCounts(cells, counts.astype(np.int64)) for cells, counts in unique)

    def _records(self, batch: Batch) -> Iterator[Record]:
        names = list(self.columns)
        for values in zip(*self.columns.values(), strict=True):
            record = dict(zip(names, values, strict=True))
            if self._within(record, batch):
                yield record

    def _within(self, record: Record, batch: Batch) -> bool:
        if self.time_column is None or batch.start is None or batch.end is None:
            return True
        at = double_of(record[self.time_column])
        return at is not None and batch.start <= at < batch.end
