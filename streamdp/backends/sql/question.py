"""The SQL of a question: of cells, of a scan of tables or sums, and of keys.

**Cells.** Groups and cells are one integer, their code: group number times the width of the grid,
plus the cell above the first. So one scan with one GROUP BY answers for all groups, and a unit's
records are in one order. What comes back is a row for each occupied code, and one for records that
have no cell, of which it counts none. Codes that fit 16 bits are grouped as such where records are
many, which an engine may do by an array.

**Scans.** Records as small integers, bounded by unit, counted and summed by grouping.

**Keys.** Records are grouped by the bytes of their texts, so no collation merges two keys or
chooses which spelling of one appears. Known keys stand in the question as a table. Texts come back
as bytes, so that none of them can fail where it is read.

With a bound of k, pairs of unit and key are made distinct. Units with k keys or fewer count for all
of them; of the others the pairs beyond k are taken off again, and only theirs are put in order:
keys that are not known first, then by a hash of key of the choice, unit and key.

Privacy: the order looks at the unit, its keys and public facts, so one unit more changes the counts
of at most k keys, each by one. Which rows come back depends on counts that the question itself
makes, and they reach `draw` alone.

**Parts of a time**, by the clocks of a zone, are arithmetic on seconds since 1970 UTC. An engine's
own conversions differ: some need tables that may be missing, or end a query at a time that is out
of range, which one record must not be able to cause. So each is given the same steps between public
moments. A date is a day already, and no clock moves it. The calendar is the Gregorian one, with
years before its introduction counted as it would have counted them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from streamdp.backends.sql.bound import bounded
from streamdp.backends.sql.cells import LARGEST, SMALL, cell_sql, key, public_groups
from streamdp.backends.sql.dialect import SqlDialect
from streamdp.backends.sql.scan import (
    HALF,
    Scan,
    ScanQuery,
    answer_of,
    fields_of,
    in_halves,
    shift,
)
from streamdp.errors import ConfigurationError
from streamdp.types import (
    CellCounts,
    CellQuery,
    Dimension,
    IntArray,
    KeyCounts,
    KeyQuery,
    Query,
    Statistic,
    TableQuery,
    Term,
    UnitBound,
    UnitQuery,
)
from streamdp.zones import offsets

MANY_ROWS = 1_000_000
"""Records from which on an array of all codes that fit 16 bits is made and read in less time than
it saves."""

Asked = TypeVar("Asked", CellQuery, KeyQuery, ScanQuery)


@dataclass(frozen=True)
class SqlQuestion(ABC, Generic[Asked]):
    """A question about the records of a batch, in the SQL of an engine.

    Args:
        dialect: Of the engine.
        query: What is asked.
        kinds: The engine's types by the aliases of `scan.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """

    dialect: SqlDialect
    query: Asked
    kinds: Mapping[str, str]
    table: str
    within: str

    @abstractmethod
    def sql(self) -> str:
        """The question."""

    @abstractmethod
    def answers(self, rows: Any) -> tuple[Statistic, ...]:
        """Rows of the answer, in any order, as one statistic a group."""

    def records(self, columns: Sequence[str]) -> str:
        """SQL behind FROM: columns made of the records that the question is about."""
        where = self.within
        if self.query.where is not None:
            where += f" AND {self.dialect.tried(self.query.where)}"
        made = ", ".join(columns) or "1 AS one"
        return f"(SELECT {made} FROM {self.table} WHERE {where}) AS record"

    def unit(self, bound: UnitBound) -> str:
        """The column of a record's unit."""
        return f"{self.dialect.unit(bound.column, self.kinds['unit'])} AS u"

    def keys(self, query: CellQuery | ScanQuery) -> list[str]:
        """Columns of what a record's group is known by."""
        return [f"{key(self.dialect, query, i, self.kinds)} AS b{i}" for i in range(len(query.by))]

    def grouped(self, source: str, query: CellQuery | ScanQuery) -> str:
        """Records with the numbers of their groups, where there are any."""
        return f"{source} JOIN {public_groups(self.dialect, query)}" if query.by else source

    def bounded(self, bound: UnitBound, coded: str, columns: Sequence[str] = ("code",)) -> str:
        """SQL whose rows are (codes…, records), of some records of a unit; see `bound`."""
        return bounded(self.dialect, bound, self.kinds["unit"], coded, columns)

    def finite(self, value: str, largest: float = LARGEST) -> str:
        """Condition that a double is a number, and no larger."""
        low, high = self.dialect.double_literal(-largest), self.dialect.double_literal(largest)
        return f"{value} BETWEEN {low} AND {high}"

    def as_whole(self, value: str) -> str:
        """A cast to whole numbers of 64 bits."""
        return f"CAST({value} AS {self.dialect.whole})"


def question_of(
    dialect: SqlDialect, query: Query, kinds: Mapping[str, str], table: str, within: str
) -> CellQuestion | KeyQuestion | ScanQuestion:
    """The question that a query puts; see `SqlQuestion`."""
    if isinstance(query, CellQuery):
        return CellQuestion(dialect, query, kinds, table, within)
    if isinstance(query, KeyQuery):
        return KeyQuestion(dialect, query, kinds, table, within)
    return ScanQuestion(dialect, query, kinds, table, within)


class CellQuestion(SqlQuestion[CellQuery]):
    """Counts of cells; its rows are (code, records)."""

    def sql(self) -> str:
        """The question."""
        value, bound = next(fields_of(self.query)), self.query.bound
        number = self.dialect.number(value.sql(self.dialect), self.kinds["value"])
        columns = [f"{number} AS v", *([] if bound is None else [self.unit(bound)])]
        source = self.records([*columns, *self.keys(self.query)])
        source = self.grouped(source, self.query)
        kind, shift = self._stored()
        code = self._code(kind, shift)
        if bound is not None:
            known = f"{self.finite('v')} AND u IS NOT NULL"
            return self.bounded(bound, f"SELECT {code} AS code, u FROM {source} WHERE {known}")
        return (
            f"SELECT coalesce({self.as_whole('code')}, 0) + ({shift}) AS code,"
            " count(code) AS records"
            f" FROM (SELECT {code} AS code FROM {source}) AS coded GROUP BY code"
        )

    def answers(self, rows: IntArray) -> tuple[CellCounts, ...]:
        """One `CellCounts` a group, of integers of shape (r, 2)."""
        rows = rows[rows[:, 1] > 0]
        codes, records = rows[np.argsort(rows[:, 0])].T
        if not self.query.by:
            return (CellCounts(codes, records),)
        width, lower = self._width(), self.query.grid.lower
        edges = np.searchsorted(codes, width * np.arange(len(self.query.groups) + 1))
        return tuple(
            CellCounts(codes[first:stop] - width * part + lower, records[first:stop])
            for part, (first, stop) in enumerate(pairwise(edges))
        )

    def _code(self, kind: str, shift: int) -> str:
        """The code of a record less the shift; null if it has no cell."""
        grid, whole = self.query.grid, self.dialect.whole
        if not self.query.by and not shift:
            return cell_sql("v", grid, self.dialect.double_literal, kind)
        code = cell_sql("v", grid, self.dialect.double_literal, whole)
        if self.query.by:
            code = f"part * {self._width()} + {code} - ({grid.lower})"
        return f"CAST({code} - ({shift}) AS {kind})"

    def _stored(self) -> tuple[str, int]:
        """The type in which codes are grouped, and what is taken off them so that they fit."""
        first = 0 if self.query.by else self.query.grid.lower
        last = first + self._width() * len(self.query.groups) - 1
        few = self.query.rows * len(self.query.groups) < MANY_ROWS
        if few or self.query.bound is not None or last - first >= 2 * SMALL:
            return self.dialect.whole, 0
        return self.dialect.small, 0 if first >= -SMALL and last < SMALL else first + SMALL

    def _width(self) -> int:
        width = self.query.grid.upper - self.query.grid.lower + 1
        if width * len(self.query.groups) >= 2**62:
            raise ConfigurationError(
                f"{len(self.query.groups)} groups of {width} cells are too many to count in one"
                " scan",
                hint="make the resolution coarser, or the bounds narrower",
            )
        return width


BETWEEN = "\x1f"
"""Stands between texts of a key where they are hashed: two keys may share a hash."""


class KeyQuestion(SqlQuestion[KeyQuery]):
    """Units of each key; its rows are (text as bytes…, units)."""

    def sql(self) -> str:
        """The question."""
        query, dialect = self.query, self.dialect
        names = [f"k{i}" for i in range(len(query.columns))]
        texts = [
            f"{dialect.as_text(dialect.name(column), self.kinds[f'group{i}'])} AS t{i}"
            for i, column in enumerate(query.columns)
        ]
        keys = [f"{dialect.short(f't{i}', query.longest)} AS k{i}" for i in range(len(names))]
        fit = [f"{dialect.bytes(f't{i}')} BETWEEN 1 AND {query.longest}" for i in range(len(names))]
        if query.bound is not None:
            texts.append(self.unit(query.bound))
            keys.append("u")
            fit.append("u IS NOT NULL")
        held = f"SELECT {', '.join(keys)} FROM {self.records(texts)} WHERE {' AND '.join(fit)}"
        listed = [[key[i] for key in query.known] for i in range(len(names))]
        known = dialect.text_table(listed, "known")
        if query.bound is None:
            group = ", ".join(names)
            counted = f"SELECT {group}, count(*) AS n FROM ({held}) AS held GROUP BY {group}"
            parts = [f"counted AS ({counted})"]
        else:
            parts = self._of_units(query.bound, held, names, known)
        shown = ", ".join(f"{dialect.blob(f'counted.{name}')} AS {name}" for name in names)
        return (
            f"WITH {', '.join(parts)} SELECT {shown}, n FROM counted"
            f" LEFT JOIN {known} ON {_same(names, 'counted')}"
            f" WHERE n >= {query.least} OR g0 IS NOT NULL"
        )

    def answers(self, rows: Iterable[Sequence[Any]]) -> tuple[KeyCounts, ...]:
        """The counts; bytes that are no UTF-8 become lone surrogates."""
        return (
            KeyCounts(
                {
                    tuple(bytes(text).decode("utf-8", "surrogateescape") for text in texts): int(n)
                    for *texts, n in rows
                }
            ),
        )

    def _of_units(self, bound: UnitBound, held: str, names: Sequence[str], known: str) -> list[str]:
        """Tables behind WITH, the last of them `counted`, of at most k keys of a unit."""
        text, group = self.dialect.literal, ", ".join(names)
        of_pairs = ", ".join(f"pairs.{name}" for name in names)
        unit = f"coalesce({self.dialect.canonical('pairs.u', self.kinds['unit'])}, '')"
        said = f", {text(BETWEEN)}, ".join(f"pairs.{name}" for name in names)
        hashed = f"concat({text(bound.key + ':')}, {unit}, {text(':')}, {said})"
        order = f"CASE WHEN g0 IS NULL THEN 0 ELSE 1 END, {self.dialect.start(hashed)}, {of_pairs}"
        place = f"row_number() OVER (PARTITION BY pairs.u ORDER BY {order}) AS place"
        beyond = f"FROM ranked WHERE place > {bound.rows}"
        return [
            f"pairs AS (SELECT DISTINCT u, {group} FROM ({held}) AS held)",
            f"large AS (SELECT u FROM pairs GROUP BY u HAVING count(*) > {bound.rows})",
            f"ranked AS (SELECT {of_pairs}, {place} FROM pairs JOIN large ON pairs.u = large.u"
            f" LEFT JOIN {known} ON {_same(names, 'pairs')})",
            f"tallied AS (SELECT {group}, count(*) AS c FROM pairs GROUP BY {group} UNION ALL"
            f" SELECT {group}, -count(*) AS c {beyond} GROUP BY {group})",
            f"counted AS (SELECT {group}, {self.as_whole('sum(c)')} AS n FROM tallied"
            f" GROUP BY {group} HAVING sum(c) > 0)",
        ]


def _same(names: Sequence[str], table: str) -> str:
    return " AND ".join(f"{table}.{name} = g{i}" for i, name in enumerate(names))


class _Ways(NamedTuple):
    """SQL by which one GROUP BY counts records in one way or in several.

    Args:
        source: Behind FROM.
        keys: Columns of the source that are grouped by, each with its alias.
        number: Of the way that a row of the answer is of.
        code: Of its cell.
        groups: Behind GROUP BY.
    """

    source: str
    keys: list[str]
    number: str
    code: str
    groups: str


@dataclass(frozen=True)
class ScanQuestion(SqlQuestion[ScanQuery]):
    """Tables, sums and units by one scan; rows are (grouping, code, records, n_1, sum_1, …)."""

    scan: Scan = field(init=False)

    def __post_init__(self) -> None:
        whole = [self.dialect.is_whole(kind) for kind in self._kinds_of_axes()]
        scan = Scan.of(self.query).by_value(whole.__getitem__)
        object.__setattr__(self, "scan", scan)

    def sql(self) -> str:
        """The question."""
        scan, bound, rows = self.scan, self.query.bound, self._placed()
        if bound is None:
            return self._counted(rows, weighted=False)
        answers = []
        if scan.counts_records():
            answers.append(self._of_records(bound, rows))
        for number, part in enumerate(scan.units, start=len(scan.groupings())):
            none = [self.as_whole("0")] * sum(2 + in_halves(term) for term in scan.terms)
            row = ", ".join([f"{number} AS grouped", "code", "records", *none])
            counted = self._of_units(part, bound, rows)
            answers.append(f"SELECT {row} FROM ({counted}) AS counted{number}")
        return " UNION ALL ".join(answers)

    def answers(self, rows: IntArray) -> tuple[Statistic, ...]:
        """One answer a group, of the rows as integers."""
        return tuple(answer_of(self.query, each) for each in self.scan.answers(rows))

    def _kinds_of_axes(self) -> list[str]:
        return [self.kinds[f"d{i}"] for i in range(len(Scan.of(self.query).dimensions))]

    def _of_records(self, bound: UnitBound, rows: str) -> str:
        """SQL that counts and sums at most so many records of a unit."""
        counts = f"u IS NOT NULL AND ({self._counts()})"
        columns = ["part", *(f"d{i}" for i in range(len(self.scan.dimensions)))]
        columns += [f"w{i}" for i in range(len(self.scan.terms))]
        counting = f"SELECT * FROM ({rows}) AS placed WHERE {counts}"
        return self._counted(self.bounded(bound, counting, columns), weighted=True)

    def _of_units(self, part: UnitQuery, bound: UnitBound, rows: str) -> str:
        """SQL whose rows are (code, records): units by how many records they have, or by group.

        The records are read once more, in the same statement: a name for them by WITH is none that
        MariaDB knows within another WITH.

        Privacy: a unit without cuts is in as many rows of (group, unit) as it has groups, and
        `bounded` keeps k of them at most, by that unit and its groups alone; where there are no
        more than k groups all of them are kept. With cuts it is one row of one cell.
        """
        known = f"FROM ({rows}) AS placed WHERE u IS NOT NULL"
        if part.cuts:
            ends = " ".join(f"WHEN n < {cut} THEN {cell}" for cell, cut in enumerate(part.cuts))
            code = self.as_whole(f"CASE {ends} ELSE {len(part.cuts)} END")
            of_units = f"SELECT u, count(*) AS n {known} GROUP BY u"
            coded = f"SELECT {code} AS code FROM ({of_units}) AS of_units"
            return f"SELECT code, count(*) AS records FROM ({coded}) AS coded GROUP BY code"
        pairs = f"SELECT DISTINCT part, u {known}"
        if self.scan.groups <= bound.rows:
            return f"SELECT part AS code, count(*) AS records FROM ({pairs}) AS pairs GROUP BY part"
        kept = self.bounded(bound, pairs, ("part",))
        return f"SELECT part AS code, records FROM ({kept}) AS kept"

    def _placed(self) -> str:
        """SQL whose rows are (part, d_0, …, w_0, …, u): one a record of a public group."""
        query, dialect, scan = self.query, self.dialect, self.scan
        wanted, joins = [], ""
        columns = ["part" if query.by else f"{self.as_whole('0')} AS part"]
        stages: list[list[str]] = []
        for i, axis in enumerate(scan.dimensions):
            x, kind = f"x{i}", self.kinds[f"d{i}"]
            value = dialect.name(axis.name) if axis.sql is None else dialect.tried(axis.sql)
            if i in scan.ranges:
                cell = scan.ranges[i].sql(x, dialect.whole)
            elif axis.values is not None:
                value, cell = dialect.as_text(value, kind), self._listed(axis, i)
                joins += self._list_join(axis.values, i)
            elif axis.clock is None:
                value, cell = dialect.number(value, kind), self._cut(axis, x)
            else:
                value, cell = dialect.number(value, kind), self._clock_cell(axis, x)
                for depth, (name, step) in enumerate(clock_steps(dialect, axis, x, kind)):
                    stages += [[]] * (depth == len(stages))
                    stages[depth] = [*stages[depth], f"{step} AS {name}"]
            wanted.append(f"{value} AS {x}")
            columns.append(f"{cell} AS d{i}")
        for i, term in enumerate(scan.terms):
            value = dialect.name(term.name) if term.sql is None else dialect.tried(term.sql)
            wanted.append(f"{dialect.number(value, self.kinds[f'w{i}'])} AS y{i}")
            columns.append(f"{self._summand(term, f'y{i}')} AS w{i}")
        if query.bound is not None:
            wanted.append(self.unit(query.bound))
            columns.append("u")
        source = self.records([*wanted, *self.keys(query)])
        for made in stages:
            source = f"(SELECT record.*, {', '.join(made)} FROM {source}) AS record"
        return f"SELECT {', '.join(columns)} FROM {self.grouped(source, query)}{joins}"

    def _cut(self, axis: Dimension, value: str) -> str:
        """Cell of a number."""
        cells = self._below(axis.cuts or (), value, 0)
        return self.as_whole(
            f"CASE WHEN {self.finite(value)} THEN {cells} ELSE {_null_code(axis)} END"
        )

    def _below(self, cuts: Sequence[float], value: str, first: int) -> str:
        """SQL of the number of cuts at most the value, by halving."""
        if not cuts:
            return str(first)
        middle = len(cuts) // 2
        cut = self.dialect.double_literal(cuts[middle])
        low = self._below(cuts[:middle], value, first)
        high = self._below(cuts[middle + 1 :], value, first + middle + 1)
        return f"CASE WHEN {value} < {cut} THEN {low} ELSE {high} END"

    def _listed(self, axis: Dimension, i: int) -> str:
        """Cell of a text x_i."""
        position = self.dialect.position(f"x{i}", axis.values or ()) or f"p{i}"
        unlisted = axis.listed if axis.other else axis.size
        found = f"coalesce({position}, {unlisted})"
        if _null_code(axis) != unlisted:
            found = f"CASE WHEN x{i} IS NULL THEN {_null_code(axis)} ELSE {found} END"
        return self.as_whole(found)

    def _list_join(self, values: Sequence[str], i: int) -> str:
        """A list of texts as a table, for engines that cannot look one up by itself."""
        if not values:
            return f" LEFT JOIN (SELECT NULL AS p{i}) AS list{i} ON true"
        if self.dialect.position("x", values) is not None:
            return ""
        rows = [[self.dialect.literal(value), str(place)] for place, value in enumerate(values)]
        table = self.dialect.rows(rows, f"list{i}", [f"t{i}", f"p{i}"])
        return f" LEFT JOIN {table} ON x{i} = t{i}"

    def _clock_cell(self, axis: Dimension, x: str) -> str:
        cell, near = clock_cell(self.dialect, axis, x), self.finite(x, FARTHEST)
        return self.as_whole(f"CASE WHEN {near} THEN {cell} ELSE {_null_code(axis)} END")

    def _summand(self, term: Term, value: str) -> str:
        """SQL of a record's summand, from 0 up; null if it adds nothing."""
        cell = cell_sql(value, term.grid, self.dialect.double_literal, self.dialect.whole)
        added = f"{cell} - ({term.centre + shift(term)})"
        return f"({added}) * ({added})" if term.square else added

    def _counts(self) -> str:
        """Condition that a record counts in some part; others take no place among a unit's."""
        found, first = [f"w{i} IS NOT NULL" for i in range(len(self.scan.terms))], 0
        for part in self.scan.parts:
            if isinstance(part, TableQuery):
                for marginal in part.marginals:
                    cells = [f"d{first + i} < {part.dimensions[i].size}" for i in marginal]
                    found.append(f"({' AND '.join(cells) or 'true'})")
                first += len(part.dimensions)
        return " OR ".join(found)

    def _counted(self, rows: str, *, weighted: bool) -> str:
        """SQL that counts and sums by grouping.

        Args:
            rows: SQL whose rows are (part, d_0, …, w_0, …), and `records` if they are weighted.
            weighted: Whether a row stands for several records.
        """
        ways = self._ways(f"({rows}) AS chosen", weighted=weighted)
        values = [f"w{i}" for i in range(len(self.scan.terms))]
        kept = [*ways.keys, *values, *(["records"] * weighted)]
        coded = f"SELECT {', '.join(kept)} FROM {ways.source}"
        shown = [f"{self._sum('records')} AS records" if weighted else "count(*) AS records"]
        for term, value in zip(self.scan.terms, values, strict=True):
            shown += self._sums(term, value, weighted=weighted)
        columns = ", ".join([f"{ways.number} AS grouped", f"{ways.code} AS code", *shown])
        return f"SELECT {columns} FROM ({coded}) AS coded GROUP BY {ways.groups}"

    def _ways(self, source: str, *, weighted: bool) -> _Ways:
        """One table, whose codes may fit small integers; else a grouping set or a join for each.

        Of grouping sets a row of the answer has the code of its own alone. Engines without them
        take each record once for each table.
        """
        groupings, dialect = self.scan.groupings(), self.dialect
        codes = [self._table_code(axes) for axes in groupings]
        m0 = self.as_whole("m0")
        if len(codes) == 1:
            off = 0 if weighted or self.scan.codes(groupings[0]) > 2 * SMALL else SMALL
            kept = f"CAST({codes[0]} - {off} AS {dialect.small})" if off else codes[0]
            return _Ways(source, [f"{kept} AS m0"], "0", f"{m0} + {off}", "m0")
        if dialect.grouping_sets:
            names = [f"m{i}" for i in range(len(codes))]
            keys = [f"{code} AS {name}" for code, name in zip(codes, names, strict=True)]
            which = " ".join(f"WHEN {name} IS NOT NULL THEN {i}" for i, name in enumerate(names))
            sets = f"GROUPING SETS ({', '.join(f'({name})' for name in names)})"
            return _Ways(source, keys, f"CASE {which} END", f"coalesce({', '.join(names)})", sets)
        numbers = dialect.rows([[str(i)] for i in range(len(codes))], "ways", ["way"])
        which = " ".join(f"WHEN {i} THEN {code}" for i, code in enumerate(codes))
        keys = ["way AS number", f"CASE way {which} END AS m0"]
        return _Ways(f"{source} JOIN {numbers} ON true", keys, "number", m0, "number, m0")

    def _table_code(self, axes: Sequence[int]) -> str:
        """Number of a record's cell in a table over some axes of one part."""
        code = "part"
        for axis in axes:
            code = f"({code} * {self.scan.digits(axis)} + d{axis})"
        return code

    def _sums(self, term: Term, value: str, *, weighted: bool) -> list[str]:
        """How many records have a summand, and its sum: whole, or in a high and a low half."""
        times = " * records" if weighted else ""
        one = f"CASE WHEN {value} IS NOT NULL THEN records END"
        count = self._sum(one) if weighted else f"count({value})"
        halves = [value]
        if in_halves(term):
            low = f"{value} % {HALF}"
            high = f"({value} - {low}) * {self.dialect.double_literal(1 / HALF)}"
            halves = [self.as_whole(high), f"({low})"]
        sums = [f"{self._sum(half + times)} AS {value}_{i}" for i, half in enumerate(halves)]
        return [f"{count} AS {value}_n", *sums]

    def _sum(self, value: str) -> str:
        return self.as_whole(f"coalesce(sum({value}), 0)")


def _null_code(axis: Dimension) -> int:
    return axis.size if axis.null_cell is None else axis.null_cell


FARTHEST = 1e14
"""Seconds; every time of every engine is nearer to 1970."""

_EPOCH = 719_468
"""Days from the first of March of the year 0 to 1970."""

_CYCLE = 146_097
"""Days in which the calendar repeats."""


def clock_steps(
    dialect: SqlDialect, axis: Dimension, x: str, kind: str
) -> Iterator[tuple[str, str]]:
    """Columns that lead from seconds to the cell of a clock, each made of those before it.

    Args:
        dialect: Of the engine.
        axis: With a clock.
        x: Column with the seconds; null where there is no time.
        kind: The engine's type of the time.
    """
    assert axis.clock is not None, "asked for axes with a clock alone"  # noqa: S101
    double, part = dialect.double_literal, axis.clock.part
    local = x
    if kind.lower() != "date":
        first, moves = offsets(axis.clock.zone)
        local = f"({x} + {_offset(dialect, moves, x, first)})"
    if part == "hour":
        yield f"{x}_hour", f"floor({local} / {double(3600.0)})"
        return
    shift = 3 if part == "weekday" else _EPOCH
    yield f"{x}_day", f"floor({local} / {double(86400.0)}) + {double(float(shift))}"
    if part == "weekday":
        return
    yield f"{x}_left", _modulo(dialect, f"{x}_day", _CYCLE)
    left = f"{x}_left"
    leaps = (f"floor({left} / {double(float(days))})" for days in (1460, 36_524, 146_096))
    fourth, hundredth, last = leaps
    yield (
        f"{x}_year",
        f"floor(({left} - {fourth} + {hundredth} - {last}) / {double(365.0)})",
    )
    year = f"{x}_year"
    past = f"{double(365.0)} * {year} + floor({year} / {double(4.0)})"
    day = f"({left} - ({past} - floor({year} / {double(100.0)})))"
    yield f"{x}_month", f"floor(({double(5.0)} * {day} + {double(2.0)}) / {double(153.0)})"


def clock_cell(dialect: SqlDialect, axis: Dimension, x: str) -> str:
    """Cell of a clock from the last of the steps; months begin with March there."""
    assert axis.clock is not None, "asked for axes with a clock alone"  # noqa: S101
    part = axis.clock.part
    if part == "month":
        found = f"CASE WHEN {x}_month < 10 THEN {x}_month + 2 ELSE {x}_month - 10 END"
    elif part == "hour":
        found = _modulo(dialect, f"{x}_hour", 24)
    else:
        found = _modulo(dialect, f"{x}_day", 7)
    return found


def _modulo(dialect: SqlDialect, value: str, by: int) -> str:
    """SQL of the remainder of a whole number by a positive one, never negative."""
    divisor = dialect.double_literal(float(by))
    return f"({value} - {divisor} * floor({value} / {divisor}))"


def _offset(dialect: SqlDialect, moves: Sequence[tuple[int, int]], x: str, first: int) -> str:
    """Seconds by which clocks are ahead of UTC, by halving."""
    if not moves:
        return dialect.double_literal(float(first))
    middle = len(moves) // 2
    moment, then = moves[middle]
    early = _offset(dialect, moves[:middle], x, first)
    late = _offset(dialect, moves[middle + 1 :], x, then)
    return f"CASE WHEN {x} < {dialect.double_literal(float(moment))} THEN {early} ELSE {late} END"
