"""Records in memory: the reference that every engine must agree with, and for tests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from streamdp.backends.bound import DIGITS, PARTS
from streamdp.backends.cells import LARGEST, cells_of
from streamdp.backends.question import only_cells
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, CellQuery, Query, UnitBound

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

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
        query = only_cells(query, batch)
        if query.expression is not None or query.where is not None:
            raise SourceError("records in memory cannot be asked in SQL", source=batch.source)
        unit = [query.bound.column] if query.bound else []
        for name in (query.column, *unit, *query.by):
            if name not in self.columns:
                raise SourceError(f"there is no column {name!r}", source=batch.source)

    def answer(self, query: Query, batch: Batch) -> Any:
        """The statistic that answers a question, or one for each of its groups."""
        found = self._cell_counts(only_cells(query, batch), batch)
        return found if query.by else found[0]

    def _cell_counts(self, query: CellQuery, batch: Batch) -> tuple[CellCounts, ...]:
        """Counts of each public group.

        Privacy: as `sql.SqlBackend.answer`.
        """
        self.check(query, batch)
        parts = {group: part for part, group in enumerate(query.groups)}
        found: list[tuple[tuple[int, int], Any]] = []
        for record in self._records(batch):
            part = parts.get(tuple(_text(record[name]) for name in query.by))
            x = double_of(record[query.column])
            if part is not None and x is not None and math.isfinite(x):
                (cell,) = cells_of(np.array([x]), query.grid).tolist()
                unit = record[query.bound.column] if query.bound else None
                found.append(((part, cell), unit))
        if query.bound is not None:
            found = list(_chosen(found, query.bound))
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


def double_of(value: Any) -> float | None:
    """A value as a double, by the rule of `cells`."""
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, datetime):
        return float(_micros(value)) / 1e6
    if isinstance(value, date):
        return float((value - EPOCH.date()).days) * 86400.0
    if isinstance(value, timedelta):
        return float(value // MICROSECOND) / 1e6
    return float(max(-LARGEST, min(LARGEST, value))) if value == value else math.nan


def canonical(unit: Any) -> str:
    """The text of a unit that its starting point hangs on."""
    if isinstance(unit, datetime):
        return str(_micros(unit))
    if isinstance(unit, date):
        return str((unit - EPOCH.date()).days)
    if isinstance(unit, float | Decimal):
        x = float(unit)
        return str(math.floor(max(-1e15, min(1e15, x))) if x == x else 10**15)
    if isinstance(unit, bytes):
        return unit.hex()
    return str(_text(unit))


def _micros(value: datetime) -> int:
    at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (at - EPOCH) // MICROSECOND


def _text(value: Any) -> Any:
    """As engines cast it to text; a null stays one, and is in no group."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _chosen(
    found: list[tuple[tuple[int, int], Any]], bound: UnitBound
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Of a unit's n records in order, number j if floor(j·k/n + r) rises with it."""
    units: dict[Any, list[tuple[int, int]]] = {}
    for code, unit in found:
        if unit is not None:
            same = "nan" if isinstance(unit, float) and math.isnan(unit) else (unit,)
            units.setdefault(same, []).append(code)
    for same, codes in units.items():
        text = f"{bound.key}:{canonical(math.nan if same == 'nan' else same[0])}"
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        start, n = int(digest[:DIGITS], 16), len(codes)
        for j, code in enumerate(sorted(codes)):
            before, after = (
                (i * bound.rows * PARTS + n * start) // (n * PARTS) for i in (j, j + 1)
            )
            if n <= bound.rows or after > before:
                yield code, same
