"""Table and sum queries over records in memory: the reference that every engine must agree with."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamdp.backends.sql.cells import cells_of
from streamdp.backends.sql.scan import Scan, ScanQuery
from streamdp.types import (
    CompoundAnswer,
    Dimension,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
    UnitBound,
    UnitQuery,
)
from tests.contract.memory.values import chosen, double_of, text_of

Code = tuple[int, tuple[int, ...], tuple[tuple[int, ...], ...]]
"""Group, cell of each dimension (its size for none), and each term's summand, if it has one."""


def scan_records(
    query: ScanQuery, records: Iterable[Mapping[str, Any]]
) -> tuple[CompoundAnswer, ...]:
    """One answer a group.

    Privacy: as `sql.SqlBackend.answer`.
    """
    scan, records = Scan.of(query), list(records)
    found: Iterable[tuple[Code, Any]] = _codes(query, scan, records)
    if query.bound is not None:
        found = chosen([each for each in found if _counts(scan, each[0])], query.bound)
    codes = [code for code, _ in found]
    named = [(code[0], unit) for code, unit in _codes(query, scan, records)]
    if query.bound is None:
        named = [(group, number) for number, (group, _) in enumerate(named)]
    return tuple(
        _answer(scan, [code for code in codes if code[0] == group], group, named, query.bound)
        for group in range(scan.groups)
    )


def _of_units(
    part: UnitQuery, group: int, named: Sequence[tuple[int, Any]], bound: UnitBound | None
) -> TableCounts:
    """Units of a group, each named by its key, of all (group, unit) of a batch."""
    counts = np.zeros(part.cells, dtype=np.int64)
    keyed = [((g, "nan" if unit != unit else unit), unit) for g, unit in named if unit is not None]
    if part.cuts:
        for size in Counter(key for (_, key), _ in keyed).values():
            counts[bisect_right(part.cuts, size)] += 1
        return TableCounts((counts,))
    found: Iterable[tuple[tuple[int], Any]]
    found = [((g,), unit) for (g, _), unit in dict(keyed).items()]
    found = found if bound is None else chosen(found, bound)
    counts[0] = sum(g == group for (g,), _ in found)
    return TableCounts((counts,))


def _codes(
    query: ScanQuery, scan: Scan, records: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Code, Any]]:
    parts = {group: part for part, group in enumerate(query.groups)}
    for record in records:
        part = parts.get(tuple(text_of(record[name]) for name in query.by))
        if part is not None:
            cells = tuple(_cell(axis, record[axis.name]) for axis in scan.dimensions)
            added = tuple(_summand(term, record[term.name]) for term in scan.terms)
            yield (part, cells, added), record[query.bound.column] if query.bound else None


def _cell(axis: Dimension, value: Any) -> int:
    if axis.cuts is not None:
        x = double_of(value)
        if x is not None and math.isfinite(x):
            return bisect_right(axis.cuts, x)
    elif (text := text_of(value)) is not None:
        unlisted = axis.listed if axis.other else axis.size
        values = axis.values or ()
        return values.index(text) if text in values else unlisted
    return axis.size if axis.null_cell is None else axis.null_cell


def _summand(term: Term, value: Any) -> tuple[int, ...]:
    x = double_of(value)
    if x is None or not math.isfinite(x):
        return ()
    (cell,) = cells_of(np.array([x]), term.grid).tolist()
    return ((cell - term.centre) ** 2,) if term.square else (cell - term.centre,)


def _counts(scan: Scan, code: Code) -> bool:
    """Whether a record counts in some part."""
    return any(added for added in code[2]) or any(
        _kept(scan, code, first, marginal)
        for first, part in _tables(scan)
        for marginal in part.marginals
    )


def _tables(scan: Scan) -> Iterator[tuple[int, TableQuery]]:
    first = 0
    for part in scan.parts:
        if isinstance(part, TableQuery):
            yield first, part
            first += len(part.dimensions)


def _kept(scan: Scan, code: Code, first: int, marginal: tuple[int, ...]) -> bool:
    return all(code[1][first + i] < scan.dimensions[first + i].size for i in marginal)


def _answer(
    scan: Scan,
    codes: list[Code],
    group: int,
    named: Sequence[tuple[int, Any]],
    bound: UnitBound | None,
) -> CompoundAnswer:
    tables, term = _tables(scan), 0
    parts: list[TableCounts | Sums] = []
    for part in scan.parts:
        if isinstance(part, UnitQuery):
            parts.append(_of_units(part, group, named, bound))
            continue
        if isinstance(part, SumQuery):
            columns = range(term, term + len(part.terms))
            parts.append(Sums(tuple(sum(sum(code[2][i]) for code in codes) for i in columns)))
            term += len(part.terms)
            continue
        first, table = next(tables)
        marginals = []
        for marginal in table.marginals:
            counts = np.zeros(table.shape(marginal), dtype=np.int64)
            for code in codes:
                if _kept(scan, code, first, marginal):
                    counts[tuple(code[1][first + i] for i in marginal)] += 1
            marginals.append(counts)
        parts.append(TableCounts(tuple(marginals)))
    return CompoundAnswer(tuple(parts))
