"""One scan that answers table and sum queries: its groupings, and answers from their rows.

A record is reduced to small integers: its group, one cell a dimension, one value a term. The scan
groups by the cells of all dimensions at once where that makes few rows, and marginals are summed
up from these; else by the cells of each marginal (GROUPING SETS). Either way every record is read
once. A row of the answer is (grouping, code, records, n_1, sum_1, …): the code numbers group and
cells by mixed radix, a dimension's last digit standing for a value without a cell. Units are
counted by themselves, under numbers of groupings behind those of records.

A field is a column or an expression that a question reads of a record, and its part in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from streamdp.backends.sql.dialect import Role, SqlDialect
from streamdp.errors import ConfigurationError, SourceError
from streamdp.types import (
    CellQuery,
    CompoundAnswer,
    CompoundQuery,
    Dimension,
    IntArray,
    KeyQuery,
    Query,
    Statistic,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
    UnitQuery,
)
from streamdp.types.questions import MOST_CODES

FARTHEST = 2**31
"""Cuts beyond are compared as doubles."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Public ends of a whole number, which is counted by its value and put in a cell afterwards.

    A cell among many cuts takes some ten comparisons a record. A whole number x needs two where the
    cuts lie close together: clipped to [⌈c_1⌉ - 1, ⌈c_m⌉] it stays in its cell, records are counted
    by what is left of it, and the cuts are looked up once for each value that there can be.

    Args:
        low: Below the first cut.
        high: At the last cut or above.
    """

    low: int
    high: int

    @classmethod
    def of(cls, axis: Dimension) -> ValueRange | None:
        """Ends that leave every whole number in its cell; None without cuts, or with far ones."""
        cuts = axis.cuts or ()
        if not cuts or max(map(abs, cuts)) > FARTHEST:
            return None
        return cls(math.ceil(cuts[0]) - 1, math.ceil(cuts[-1]))

    @property
    def digits(self) -> int:
        """The values there can be, and one more digit for null."""
        return self.high - self.low + 2

    def sql(self, value: str, whole: str) -> str:
        """The digit of a whole number, as a number of the type `whole`."""
        above = f"CAST(least({value}, {self.high}) AS {whole}) - ({self.low})"
        if self.digits == 3:
            above = "1"
        return (
            f"CASE WHEN {value} > {self.low} THEN {above}"
            f" WHEN {value} <= {self.low} THEN 0 ELSE {self.digits - 1} END"
        )

    def cells(self, axis: Dimension) -> IntArray:
        """Cell of each digit, shape (digits,); that of a null is the size of the axis if none."""
        values = np.arange(self.low, self.high + 1)
        null = axis.size if axis.null_cell is None else axis.null_cell
        return np.append(np.searchsorted(np.array(axis.cuts), values, side="right"), null)


ScanQuery = TableQuery | SumQuery | UnitQuery | CompoundQuery

FEW_ROWS = 2**18
"""The most combinations of cells and groups that come back as rows."""

HALF = 2**26
"""Summands of more than this are summed in two parts, which cannot overflow 64 bits."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Table and sum queries as one.

    Args:
        parts: The questions, whose dimensions and terms stand one after another.
        groups: How many public groups there are.
        bounded: Whether a unit's records are chosen in the order of their cells.
        ranges: Axes that are counted by value.
    """

    parts: tuple[TableQuery | SumQuery | UnitQuery, ...]
    groups: int
    bounded: bool = False
    ranges: Mapping[int, ValueRange] = field(default_factory=dict)

    @classmethod
    def of(cls, query: ScanQuery) -> Scan:
        """The scan that answers a question."""
        parts = query.parts if isinstance(query, CompoundQuery) else (query,)
        return cls(parts, len(query.groups), query.bound is not None)

    def by_value(self, is_whole: Callable[[int], bool]) -> Scan:
        """Return the scan that counts by value where that makes few rows and no unit is bounded.

        Args:
            is_whole: Whether a dimension's values are whole numbers.
        """
        found: dict[int, ValueRange] = {}
        for axis, dimension in enumerate(self.dimensions):
            within = None if self.bounded or not is_whole(axis) else ValueRange.of(dimension)
            if within is not None:
                tried = replace(self, ranges={**found, axis: within})
                if tried.codes(tuple(range(len(self.dimensions)))) <= FEW_ROWS:
                    found[axis] = within
        return replace(self, ranges=found)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Dimensions of all parts, one after the other."""
        tables = [part for part in self.parts if isinstance(part, TableQuery)]
        return tuple(axis for part in tables for axis in part.dimensions)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms of all parts, one after the other."""
        sums = [part for part in self.parts if isinstance(part, SumQuery)]
        return tuple(term for part in sums for term in part.terms)

    @property
    def units(self) -> tuple[UnitQuery, ...]:
        """Parts that count units of several records; without a bound each record is one."""
        return tuple(part for part in self.parts if isinstance(part, UnitQuery) and self.bounded)

    def counts_records(self) -> bool:
        """Whether a part asks about records."""
        return len(self.units) < len(self.parts)

    def digits(self, axis: int) -> int:
        """Cells of a dimension, and one more for values that have none; or clipped values."""
        within = self.ranges.get(axis)
        return self.dimensions[axis].size + 1 if within is None else within.digits

    def marginals(self) -> tuple[tuple[int, ...], ...]:
        """Marginals of records that are asked for, as axes; sums are asked for beside no axis."""
        found: list[tuple[int, ...]] = []
        first = 0
        for part in self.parts:
            if isinstance(part, TableQuery):
                found += [tuple(first + axis for axis in each) for each in part.marginals]
                first += len(part.dimensions)
            elif isinstance(part, SumQuery) or not self.bounded:
                found.append(())
        return tuple(found)

    def groupings(self) -> tuple[tuple[int, ...], ...]:
        """Axes of each grouping: all axes that are asked for, or those of each marginal.

        Raises:
            ConfigurationError: A marginal has more cells than can be numbered.
        """
        marginals = self.marginals() or ((),)
        every = tuple(sorted({axis for each in marginals for axis in each}))
        chosen = (every,) if self.codes(every) <= FEW_ROWS else tuple(dict.fromkeys(marginals))
        if any(self.codes(axes) > MOST_CODES for axes in chosen):
            raise ConfigurationError("a table has too many cells: leave out dimensions or groups")
        return chosen

    def codes(self, axes: tuple[int, ...]) -> int:
        """Combinations of groups and digits."""
        return self.groups * math.prod(self.digits(axis) for axis in axes)

    def answers(self, rows: IntArray) -> tuple[CompoundAnswer, ...]:
        """One answer a group.

        Args:
            rows: Of the scan, in any order, shape (r, 3 + 2·terms), or three columns a term that is
                summed in two parts.
        """
        groupings = self.groupings()
        found = [self._counts(rows, groupings, axes) for axes in self.marginals()]
        sums = self._sums(rows, groupings.index(()) if () in groupings else 0)
        units = [self._units(rows, len(groupings) + i, u) for i, u in enumerate(self.units)]
        answers: list[CompoundAnswer] = []
        for group in range(self.groups):
            tables, terms, counted = iter(found), iter(sums[group]), iter(units)
            parts: list[TableCounts | Sums] = []
            for part in self.parts:
                if isinstance(part, TableQuery):
                    parts.append(TableCounts(tuple(next(tables)[group] for _ in part.marginals)))
                elif isinstance(part, UnitQuery):
                    each = next(counted) if self.bounded else _alone(next(tables), part)
                    parts.append(TableCounts((each[group],)))
                else:
                    next(tables)
                    parts.append(Sums(tuple(next(terms) for _ in part.terms)))
            answers.append(CompoundAnswer(tuple(parts)))
        return tuple(answers)

    def _counts(
        self, rows: IntArray, groupings: tuple[tuple[int, ...], ...], wanted: tuple[int, ...]
    ) -> IntArray:
        """Counts of each group and cell of a marginal, shape (groups, …)."""
        number = next(i for i, axes in enumerate(groupings) if set(wanted) <= set(axes))
        here = rows[rows[:, 0] == number]
        group, cells = self._decoded(here[:, 1], groupings[number])
        shape = (self.groups, *(self.dimensions[axis].size for axis in wanted))
        counts = np.zeros(shape, dtype=np.int64)
        kept = np.ones(len(here), dtype=np.bool_)
        for axis in wanted:
            kept &= cells[axis] < self.dimensions[axis].size
        where = (group[kept], *(cells[axis][kept] for axis in wanted))
        np.add.at(counts, where, here[kept, 2])
        return counts

    def _units(self, rows: IntArray, number: int, part: UnitQuery) -> IntArray:
        """Units of each group and cell, shape (groups, cells)."""
        here = rows[rows[:, 0] == number]
        counts = np.zeros(self.groups * part.cells, dtype=np.int64)
        np.add.at(counts, here[:, 1], here[:, 2])
        return counts.reshape(self.groups, part.cells)

    def _decoded(
        self, codes: IntArray, axes: tuple[int, ...]
    ) -> tuple[IntArray, dict[int, IntArray]]:
        """Groups, and cells by axis."""
        cells: dict[int, IntArray] = {}
        for axis in reversed(axes):
            codes, cells[axis] = np.divmod(codes, self.digits(axis))
            if axis in self.ranges:
                cells[axis] = self.ranges[axis].cells(self.dimensions[axis])[cells[axis]]
        return codes, cells

    def _sums(self, rows: IntArray, number: int) -> list[list[int]]:
        """Exact sums of each group."""
        groupings = self.groupings()
        here = rows[rows[:, 0] == number]
        group, _ = self._decoded(here[:, 1], groupings[number])
        found: list[list[int]] = [[] for _ in range(self.groups)]
        widths = [2 + in_halves(term) for term in self.terms]
        starts = [0, *accumulate(widths)]
        for term, start in zip(self.terms, starts, strict=False):
            columns = np.zeros((self.groups, 2 + in_halves(term)), dtype=np.int64)
            np.add.at(columns, group, here[:, 3 + start : 3 + start + columns.shape[1]])
            for one, (records, *sums) in zip(found, columns.tolist(), strict=True):
                total = sums[0] * HALF + sums[1] if in_halves(term) else sums[0]
                one.append(total + records * shift(term))
        return found


def _alone(records: IntArray, part: UnitQuery) -> IntArray:
    """Numbers of records, shape (groups,), as units that have one each, shape (groups, cells)."""
    counts = np.zeros((len(records), part.cells), dtype=np.int64)
    counts[:, 0] = records
    return counts


def answer_of(query: ScanQuery, answer: CompoundAnswer) -> Statistic:
    """The answer of a question that has one part, or of all its parts."""
    return answer if isinstance(query, CompoundQuery) else answer.parts[0]


def shift(term: Term) -> int:
    """Amount that is taken off each summand, so that none is negative."""
    return 0 if term.square else term.span[0]


def in_halves(term: Term) -> bool:
    """Whether a summand may be so large that it is summed in two parts."""
    return term.span[1] - shift(term) > HALF


_WANTED: Mapping[Role, str] = {
    "value": "a number, a time or a duration",
    "unit": "a scalar",
    "group": "text, a whole number, a date or a truth value",
    "listed": "text, a whole number, a date or a truth value",
    "time": "a date or a timestamp",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One column or expression that a question needs.

    Args:
        alias: Its name in the SQL.
        role: What it is for; decides which types it may have.
        column: Column, or the name of what `expression` derives.
        expression: SQL of one record.
    """

    alias: str
    role: Role
    column: str
    expression: str | None = None

    def sql(self, dialect: SqlDialect) -> str:
        """SQL of its value."""
        return (
            dialect.name(self.column) if self.expression is None else dialect.tried(self.expression)
        )


def fields_of(query: Query) -> Iterator[Field]:
    """All of a question: values first, then unit, then columns of groups or of keys."""
    if isinstance(query, CellQuery):
        yield Field("value", "value", query.column, query.expression)
    elif not isinstance(query, KeyQuery):
        scan = Scan.of(query)
        for i, axis in enumerate(scan.dimensions):
            role: Role = "value" if axis.values is None else "listed"
            role = "time" if axis.clock is not None else role
            yield Field(f"d{i}", role, axis.name, axis.sql)
        for i, term in enumerate(scan.terms):
            yield Field(f"w{i}", "value", term.name, term.sql)
    if query.bound is not None:
        yield Field("unit", "unit", query.bound.column)
    columns = query.columns if isinstance(query, KeyQuery) else query.by
    for i, name in enumerate(columns):
        yield Field(f"group{i}", "group", name)


CONDITION_HINT = "a condition is no number: write CASE WHEN … THEN 1 ELSE 0 END"


def _hint(role: Role, kind: str, otherwise: str) -> str:
    return CONDITION_HINT if role == "value" and kind.lower() == "boolean" else otherwise


def require_kinds(
    dialect: SqlDialect,
    query: Query,
    time: str | None,
    kinds: Mapping[str, str],
    source: str,
    hint: Callable[[str, Field], str],
) -> None:
    """Refuse a type that cannot play its part.

    Args:
        dialect: Knows the engine's types.
        query: What is asked.
        time: Column that puts a record in a window.
        kinds: Types by alias; that of the time column under `time`.
        source: Name of the source.
        hint: What to do about a field of a source that has another type.

    Raises:
        SourceError: A column has another type.
    """
    fields = [*fields_of(query), *([Field("time", "time", time)] if time is not None else [])]
    for each in fields:
        if not dialect.takes(each.role, kinds[each.alias]):
            raise SourceError(
                f"column {each.column!r} of source {source} has type {kinds[each.alias]},"
                f" wanted is {_WANTED[each.role]}",
                hint=_hint(each.role, kinds[each.alias], hint(source, each)),
                source=source,
            )
