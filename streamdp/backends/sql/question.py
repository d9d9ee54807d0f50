"""The SQL of a question: of cells, of a scan of tables or sums, and of keys.

**Cells.** Groups and cells are one integer, their code: group number times the width of the grid,
plus the cell above the first. So one scan with one GROUP BY answers for all groups, and a unit's
records are in one order. What comes back is a row for each occupied code, and one for records that
have no cell, of which it counts none. Codes that fit 16 bits are grouped as such, which an engine
may do by an array.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from streamdp.backends.sql.bound import bounded
from streamdp.backends.sql.cells import LARGEST, SMALL, cell_sql, key, public_groups
from streamdp.backends.sql.dialect import SqlDialect
from streamdp.backends.sql.scan import HALF, Scan, ScanQuery, fields_of, in_halves, shift
from streamdp.errors import ConfigurationError
from streamdp.types import (
    CellCounts,
    CellQuery,
    Dimension,
    IntArray,
    KeyCounts,
    KeyQuery,
    Query,
    TableQuery,
    Term,
    UnitBound,
    UnitQuery,
)
from streamdp.zones import offsets


def question(
    dialect: SqlDialect, query: CellQuery, kinds: Mapping[str, str], table: str, within: str
) -> str:
    """SQL whose rows are (code, records).

    Args:
        dialect: Of the engine.
        query: What is asked.
        kinds: The engine's types by the aliases of `scan.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    value = next(fields_of(query))
    wanted = [f"{dialect.number(value.sql(dialect), kinds['value'])} AS v"]
    if query.bound is not None:
        wanted.append(f"{dialect.unit(query.bound.column, kinds['unit'])} AS u")
    wanted += [f"{key(dialect, query, i, kinds)} AS b{i}" for i in range(len(query.by))]
    source = _records(dialect, query, wanted, table, within)
    if query.by:
        source += f" JOIN {public_groups(dialect, query)}"
    kind, shift = _stored(dialect, query)
    code = _code(dialect, query, kind, shift)
    if query.bound is not None:
        known = f"{_finite(dialect, 'v')} AND u IS NOT NULL"
        coded = f"SELECT {code} AS code, u FROM {source} WHERE {known}"
        return bounded(dialect, query.bound, kinds["unit"], coded)
    return (
        f"SELECT coalesce(CAST(code AS {dialect.whole}), 0) + ({shift}) AS code,"
        " count(code) AS records"
        f" FROM (SELECT {code} AS code FROM {source}) AS coded GROUP BY code"
    )


def _records(
    dialect: SqlDialect, query: Query, columns: Sequence[str], table: str, within: str
) -> str:
    """SQL behind FROM: columns made of the records that the question is about."""
    where = within if query.where is None else f"{within} AND {dialect.tried(query.where)}"
    return f"(SELECT {', '.join(columns) or '1 AS one'} FROM {table} WHERE {where}) AS record"


def _code(dialect: SqlDialect, query: CellQuery, kind: str, shift: int) -> str:
    """The code of a record less the shift; null if it has no cell."""
    if not query.by and not shift:
        return cell_sql("v", query.grid, dialect.double_literal, kind)
    code = cell_sql("v", query.grid, dialect.double_literal, dialect.whole)
    if query.by:
        code = f"part * {_width(query)} + {code} - ({query.grid.lower})"
    return f"CAST({code} - ({shift}) AS {kind})"


def _stored(dialect: SqlDialect, query: CellQuery) -> tuple[str, int]:
    """The type in which codes are grouped, and what is taken off them so that they fit."""
    first = 0 if query.by else query.grid.lower
    last = first + _width(query) * len(query.groups) - 1
    if query.bound is not None or last - first >= 2 * SMALL:
        return dialect.whole, 0
    return dialect.small, 0 if first >= -SMALL and last < SMALL else first + SMALL


def counts_of(query: CellQuery, rows: IntArray) -> tuple[CellCounts, ...]:
    """Rows of the answer, in any order, as one `CellCounts` a group."""
    rows = rows[rows[:, 1] > 0]
    codes, records = rows[np.argsort(rows[:, 0])].T
    if not query.by:
        return (CellCounts(codes, records),)
    width = _width(query)
    edges = np.searchsorted(codes, width * np.arange(len(query.groups) + 1))
    return tuple(
        CellCounts(codes[first:stop] - width * part + query.grid.lower, records[first:stop])
        for part, (first, stop) in enumerate(pairwise(edges))
    )


def _width(query: CellQuery) -> int:
    width = query.grid.upper - query.grid.lower + 1
    if width * len(query.groups) >= 2**62:
        raise ConfigurationError(
            f"{len(query.groups)} groups of {width} cells are too many to count in one scan",
            hint="make the resolution coarser, or the bounds narrower",
        )
    return width


BETWEEN = "\x1f"
"""Stands between texts of a key where they are hashed: two keys may share a hash."""


def key_question(
    dialect: SqlDialect, query: KeyQuery, kinds: Mapping[str, str], table: str, within: str
) -> str:
    """SQL whose rows are (text as bytes…, units).

    Args:
        dialect: Of the engine.
        query: What is asked.
        kinds: The engine's types by the aliases of `scan.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    names = [f"k{i}" for i in range(len(query.columns))]
    texts = [
        f"{dialect.as_text(dialect.name(column), kinds[f'group{i}'])} AS t{i}"
        for i, column in enumerate(query.columns)
    ]
    keys = [f"{dialect.short(f't{i}', query.longest)} AS {name}" for i, name in enumerate(names)]
    fit = [f"{dialect.bytes(f't{i}')} BETWEEN 1 AND {query.longest}" for i in range(len(names))]
    if query.bound is not None:
        texts.append(f"{dialect.unit(query.bound.column, kinds['unit'])} AS u")
        keys.append("u")
        fit.append("u IS NOT NULL")
    records = _records(dialect, query, texts, table, within)
    held = f"SELECT {', '.join(keys)} FROM {records} WHERE {' AND '.join(fit)}"
    known = dialect.text_table(
        [[key[i] for key in query.known] for i in range(len(names))], "known"
    )
    group = ", ".join(names)
    if query.bound is None:
        parts = [
            f"counted AS (SELECT {group}, count(*) AS n FROM ({held}) AS held GROUP BY {group})"
        ]
    else:
        parts = _of_units(dialect, query.bound, kinds["unit"], held, names, known)
    same = _same(names, "counted")
    shown = ", ".join(f"{dialect.blob(f'counted.{name}')} AS {name}" for name in names)
    return (
        f"WITH {', '.join(parts)} SELECT {shown}, n FROM counted LEFT JOIN {known} ON {same}"
        f" WHERE n >= {query.least} OR g0 IS NOT NULL"
    )


def _of_units(
    dialect: SqlDialect, bound: UnitBound, kind: str, held: str, names: Sequence[str], known: str
) -> list[str]:
    """Tables behind WITH, the last of them `counted`, of at most k keys of a unit."""
    group = ", ".join(names)
    of_pairs = ", ".join(f"pairs.{name}" for name in names)
    unit = f"coalesce({dialect.canonical('pairs.u', kind)}, '')"
    said = f", {dialect.literal(BETWEEN)}, ".join(f"pairs.{name}" for name in names)
    start = dialect.start(
        f"concat({dialect.literal(bound.key + ':')}, {unit}, {dialect.literal(':')}, {said})"
    )
    order = f"CASE WHEN g0 IS NULL THEN 0 ELSE 1 END, {start}, {of_pairs}"
    return [
        f"pairs AS (SELECT DISTINCT u, {group} FROM ({held}) AS held)",
        f"large AS (SELECT u FROM pairs GROUP BY u HAVING count(*) > {bound.rows})",
        f"ranked AS (SELECT {of_pairs}, row_number() OVER (PARTITION BY pairs.u ORDER BY {order})"
        f" AS place FROM pairs JOIN large ON pairs.u = large.u"
        f" LEFT JOIN {known} ON {_same(names, 'pairs')})",
        f"tallied AS (SELECT {group}, count(*) AS c FROM pairs GROUP BY {group} UNION ALL"
        f" SELECT {group}, -count(*) AS c FROM ranked WHERE place > {bound.rows} GROUP BY {group})",
        f"counted AS (SELECT {group}, CAST(sum(c) AS {dialect.whole}) AS n FROM tallied"
        f" GROUP BY {group} HAVING sum(c) > 0)",
    ]


def _same(names: Sequence[str], table: str) -> str:
    return " AND ".join(f"{table}.{name} = g{i}" for i, name in enumerate(names))


def key_counts(rows: Iterable[Sequence[Any]]) -> KeyCounts:
    """Rows of the answer, in any order; bytes that are no UTF-8 become lone surrogates."""
    return KeyCounts(
        {
            tuple(bytes(text).decode("utf-8", "surrogateescape") for text in row[:-1]): int(row[-1])
            for row in rows
        }
    )


def scan_of(dialect: SqlDialect, query: ScanQuery, kinds: Mapping[str, str]) -> Scan:
    """The scan of a question, in an engine that has these types; `scan_sql` is its SQL."""
    return Scan.of(query).by_value(lambda axis: dialect.is_whole(kinds[f"d{axis}"]))


def scan_sql(
    dialect: SqlDialect,
    query: ScanQuery,
    scan: Scan,
    kinds: Mapping[str, str],
    table: str,
    within: str,
) -> str:
    """SQL whose rows are (grouping, code, records, n_1, sum_1, …); see `scan`.

    Args:
        dialect: Of the engine.
        query: What is asked.
        scan: The question as a scan: `scan_of`.
        kinds: The engine's types by the aliases of `scan.fields_of`.
        table: What stands behind FROM.
        within: Condition that a record belongs to the batch.
    """
    rows = _placed(dialect, query, scan, kinds, table, within)
    if query.bound is None:
        return _grouped(dialect, scan, rows, weighted=False)
    if not scan.units:
        return _of_records(dialect, scan, query.bound, kinds["unit"], rows)
    answers = []
    if scan.counts_records():
        answers.append(_of_records(dialect, scan, query.bound, kinds["unit"], rows))
    for number, part in enumerate(scan.units, start=len(scan.groupings())):
        counted = _units(dialect, scan, part, query.bound, kinds["unit"], rows)
        none = [f"CAST(0 AS {dialect.whole})"] * sum(2 + in_halves(term) for term in scan.terms)
        row = ", ".join([f"{number} AS grouped", "code", "records", *none])
        answers.append(f"SELECT {row} FROM ({counted}) AS counted{number}")
    return " UNION ALL ".join(answers)


def _of_records(dialect: SqlDialect, scan: Scan, bound: UnitBound, kind: str, rows: str) -> str:
    """SQL that counts and sums at most so many records of a unit."""
    counting = f"SELECT * FROM ({rows}) AS placed WHERE u IS NOT NULL AND ({_counts(scan)})"
    columns = ["part", *(f"d{i}" for i in range(len(scan.dimensions)))]
    columns += [f"w{i}" for i in range(len(scan.terms))]
    return _grouped(dialect, scan, bounded(dialect, bound, kind, counting, columns), weighted=True)


def _units(
    dialect: SqlDialect, scan: Scan, part: UnitQuery, bound: UnitBound, kind: str, rows: str
) -> str:
    """SQL whose rows are (code, records): units by how many records they have, or by group.

    The records are read once more, in the same statement: a name for them by WITH is none that
    MariaDB knows within another WITH.

    Privacy: a unit without cuts is in as many rows of (group, unit) as it has groups, and `bounded`
    keeps k of them at most, by that unit and its groups alone; where there are no more than k
    groups all of them are kept. With cuts it is one row of one cell.
    """
    known = f"FROM ({rows}) AS placed WHERE u IS NOT NULL"
    if part.cuts:
        ends = " ".join(f"WHEN n < {cut} THEN {cell}" for cell, cut in enumerate(part.cuts))
        code = f"CAST(CASE {ends} ELSE {len(part.cuts)} END AS {dialect.whole})"
        of_units = f"SELECT u, count(*) AS n {known} GROUP BY u"
        coded = f"SELECT {code} AS code FROM ({of_units}) AS of_units"
        return f"SELECT code, count(*) AS records FROM ({coded}) AS coded GROUP BY code"
    pairs = f"SELECT DISTINCT part, u {known}"
    if scan.groups <= bound.rows:
        return f"SELECT part AS code, count(*) AS records FROM ({pairs}) AS pairs GROUP BY part"
    kept = bounded(dialect, bound, kind, pairs, ("part",))
    return f"SELECT part AS code, records FROM ({kept}) AS kept"


def _placed(
    dialect: SqlDialect,
    query: ScanQuery,
    scan: Scan,
    kinds: Mapping[str, str],
    table: str,
    within: str,
) -> str:
    """SQL whose rows are (part, d_0, …, w_0, …, u): one a record of a public group."""
    wanted, columns, joins = [], ["part" if query.by else f"CAST(0 AS {dialect.whole}) AS part"], ""
    stages: list[list[str]] = []
    for i, axis in enumerate(scan.dimensions):
        value = dialect.name(axis.name) if axis.sql is None else dialect.tried(axis.sql)
        if i in scan.ranges:
            wanted.append(f"{value} AS x{i}")
            columns.append(f"{scan.ranges[i].sql(f'x{i}', dialect.whole)} AS d{i}")
        elif axis.clock is not None:
            kind = kinds[f"d{i}"]
            wanted.append(f"{dialect.number(value, kind)} AS x{i}")
            for depth, (name, step) in enumerate(clock_steps(dialect, axis, f"x{i}", kind)):
                stages += [[]] * (depth == len(stages))
                stages[depth] = [*stages[depth], f"{step} AS {name}"]
            columns.append(f"{clock_cell(dialect, axis, f'x{i}')} AS d{i}")
        elif axis.values is None:
            wanted.append(f"{dialect.number(value, kinds[f'd{i}'])} AS x{i}")
            columns.append(f"{_cut(dialect, axis, f'x{i}')} AS d{i}")
        else:
            wanted.append(f"{dialect.as_text(value, kinds[f'd{i}'])} AS x{i}")
            columns.append(f"{_listed(dialect, axis, i)} AS d{i}")
            joins += _list_join(dialect, axis.values, i)
    for i, term in enumerate(scan.terms):
        value = dialect.name(term.name) if term.sql is None else dialect.tried(term.sql)
        wanted.append(f"{dialect.number(value, kinds[f'w{i}'])} AS y{i}")
        columns.append(f"{_summand(dialect, term, f'y{i}')} AS w{i}")
    if query.bound is not None:
        wanted.append(f"{dialect.unit(query.bound.column, kinds['unit'])} AS u")
        columns.append("u")
    wanted += [f"{key(dialect, query, i, kinds)} AS b{i}" for i in range(len(query.by))]
    source = _records(dialect, query, wanted, table, within)
    for made in stages:
        source = f"(SELECT record.*, {', '.join(made)} FROM {source}) AS record"
    if query.by:
        source += f" JOIN {public_groups(dialect, query)}"
    return f"SELECT {', '.join(columns)} FROM {source}{joins}"


def _finite(dialect: SqlDialect, value: str, largest: float = LARGEST) -> str:
    low, high = dialect.double_literal(-largest), dialect.double_literal(largest)
    return f"{value} BETWEEN {low} AND {high}"


def _null_code(axis: Dimension) -> int:
    return axis.size if axis.null_cell is None else axis.null_cell


def _cut(dialect: SqlDialect, axis: Dimension, value: str) -> str:
    """Cell of a number."""
    cells = _below(dialect, axis.cuts or (), value, 0)
    finite = _finite(dialect, value)
    return f"CAST(CASE WHEN {finite} THEN {cells} ELSE {_null_code(axis)} END AS {dialect.whole})"


def _below(dialect: SqlDialect, cuts: Sequence[float], value: str, first: int) -> str:
    """SQL of the number of cuts at most the value, by halving."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    low = _below(dialect, cuts[:middle], value, first)
    high = _below(dialect, cuts[middle + 1 :], value, first + middle + 1)
    return f"CASE WHEN {value} < {dialect.double_literal(cuts[middle])} THEN {low} ELSE {high} END"


def _listed(dialect: SqlDialect, axis: Dimension, i: int) -> str:
    """Cell of a text x_i."""
    position = dialect.position(f"x{i}", axis.values or ()) or f"p{i}"
    unlisted = axis.listed if axis.other else axis.size
    found = f"coalesce({position}, {unlisted})"
    if _null_code(axis) != unlisted:
        found = f"CASE WHEN x{i} IS NULL THEN {_null_code(axis)} ELSE {found} END"
    return f"CAST({found} AS {dialect.whole})"


def _list_join(dialect: SqlDialect, values: Sequence[str], i: int) -> str:
    """A list of texts as a table, for engines that cannot look one up by itself."""
    if not values or dialect.position("x", values) is not None:
        return "" if values else f" LEFT JOIN (SELECT NULL AS p{i}) AS list{i} ON true"
    rows = [[dialect.literal(value), str(position)] for position, value in enumerate(values)]
    return f" LEFT JOIN {dialect.rows(rows, f'list{i}', [f't{i}', f'p{i}'])} ON x{i} = t{i}"


def _summand(dialect: SqlDialect, term: Term, value: str) -> str:
    """SQL of a record's summand, from 0 up; null if it adds nothing."""
    cell = cell_sql(value, term.grid, dialect.double_literal, dialect.whole)
    added = f"{cell} - ({term.centre + shift(term)})"
    if term.square:
        added = f"({added}) * ({added})"
    return added


def _counts(scan: Scan) -> str:
    """Condition that a record counts in some part; others take no place among a unit's records."""
    found, first = [f"w{i} IS NOT NULL" for i in range(len(scan.terms))], 0
    for part in scan.parts:
        if isinstance(part, TableQuery):
            for marginal in part.marginals:
                cells = [f"d{first + i} < {part.dimensions[i].size}" for i in marginal]
                found.append(f"({' AND '.join(cells) or 'true'})")
            first += len(part.dimensions)
    return " OR ".join(found)


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


def _grouped(dialect: SqlDialect, scan: Scan, rows: str, *, weighted: bool) -> str:
    """SQL that counts and sums by grouping.

    Args:
        dialect: Of the engine.
        scan: What is asked.
        rows: SQL whose rows are (part, d_0, …, w_0, …), and `records` if they are weighted.
        weighted: Whether a row stands for several records.
    """
    source, codes = f"({rows}) AS chosen", [_table_code(scan, axes) for axes in scan.groupings()]
    if len(codes) == 1:
        off = 0 if weighted or scan.codes(scan.groupings()[0]) > 2 * SMALL else SMALL
        ways = _one_way(dialect, source, codes[0], off)
    elif dialect.grouping_sets:
        ways = _in_sets(source, codes)
    else:
        ways = _by_join(dialect, source, codes)
    kept = [*ways.keys, *(f"w{i}" for i in range(len(scan.terms))), *(["records"] * weighted)]
    coded = f"SELECT {', '.join(kept)} FROM {ways.source}"
    shown = [f"{_sum(dialect, 'records')} AS records" if weighted else "count(*) AS records"]
    for i, term in enumerate(scan.terms):
        shown += _sums(dialect, term, f"w{i}", weighted=weighted)
    columns = ", ".join([f"{ways.number} AS grouped", f"{ways.code} AS code", *shown])
    return f"SELECT {columns} FROM ({coded}) AS coded GROUP BY {ways.groups}"


def _table_code(scan: Scan, axes: Sequence[int]) -> str:
    """Number of a record's cell in a table over some axes of one part."""
    code = "part"
    for axis in axes:
        code = f"({code} * {scan.digits(axis)} + d{axis})"
    return code


def _one_way(dialect: SqlDialect, source: str, code: str, off: int) -> _Ways:
    """One table; with an offset its codes fit the small integers, which are grouped faster."""
    kept = f"CAST({code} - {off} AS {dialect.small})" if off else code
    whole = f"CAST(m0 AS {dialect.whole}) + {off}"
    return _Ways(source, [f"{kept} AS m0"], "0", whole, "m0")


def _in_sets(source: str, codes: Sequence[str]) -> _Ways:
    """A grouping set for each table; a row of the answer has the code of its own alone."""
    names = [f"m{i}" for i in range(len(codes))]
    keys = [f"{code} AS {name}" for code, name in zip(codes, names, strict=True)]
    which = " ".join(f"WHEN {name} IS NOT NULL THEN {i}" for i, name in enumerate(names))
    sets = f"GROUPING SETS ({', '.join(f'({name})' for name in names)})"
    return _Ways(source, keys, f"CASE {which} END", f"coalesce({', '.join(names)})", sets)


def _by_join(dialect: SqlDialect, source: str, codes: Sequence[str]) -> _Ways:
    """Each record once for each table, for engines without grouping sets."""
    numbers = dialect.rows([[str(i)] for i in range(len(codes))], "ways", ["way"])
    which = " ".join(f"WHEN {i} THEN {code}" for i, code in enumerate(codes))
    keys = ["way AS number", f"CASE way {which} END AS m0"]
    whole = f"CAST(m0 AS {dialect.whole})"
    return _Ways(f"{source} JOIN {numbers} ON true", keys, "number", whole, "number, m0")


def _sums(dialect: SqlDialect, term: Term, value: str, *, weighted: bool) -> list[str]:
    """How many records have a summand, and its sum: whole, or in a high and a low half."""
    times = " * records" if weighted else ""
    one = f"CASE WHEN {value} IS NOT NULL THEN records END" if weighted else ""
    count = _sum(dialect, one) if weighted else f"count({value})"
    halves = [value]
    if in_halves(term):
        low = f"{value} % {HALF}"
        high = f"CAST(({value} - {low}) * {dialect.double_literal(1 / HALF)} AS {dialect.whole})"
        halves = [high, f"({low})"]
    sums = [f"{_sum(dialect, half + times)} AS {value}_{i}" for i, half in enumerate(halves)]
    return [f"{count} AS {value}_n", *sums]


def _sum(dialect: SqlDialect, value: str) -> str:
    return f"CAST(coalesce(sum({value}), 0) AS {dialect.whole})"


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
    near = _finite(dialect, x, FARTHEST)
    return f"CAST(CASE WHEN {near} THEN {found} ELSE {_null_code(axis)} END AS {dialect.whole})"


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
