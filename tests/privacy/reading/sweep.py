"""Expressions over hostile records: no value of a record reaches another, nor ends a question.

Random expressions of the admitted language over whole, decimal and floating numbers, dates, times
and texts of a Parquet file, an Arrow file or a DuckDB table, with repeated parts, are measures,
axes, values and conditions of one question. It is asked of ordinary records, of the same with one
hostile record more, and with all of them, in groups of one record and without groups. What `check`
admits must be answered, and every record must count as it does by itself.

python -m tests.privacy.reading.sweep [SEEDS [EXPRESSIONS]]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import (
    Batch,
    CellQuery,
    CompoundQuery,
    Dimension,
    Grid,
    SumQuery,
    TableQuery,
    Term,
)


def _words(text: str) -> list[str]:
    return text.split()


NUMBERS = _words(
    "0 1 2 -1 0.5 1e308 127 128 32768 65536 2147483648 9223372036854775808 99999999999 100.25 -0.0"
    " 1e-320 99999999999999999999999999999999999999"
)
PARTS = _words(
    "year quarter month week day hour minute second dow isodow doy epoch millisecond microsecond"
    " decade century millennium isoyear yearweek era julian timezone timezone_hour nanosecond"
)
"""Of times; the last few are refused."""

UNITS = _words("year quarter month week day hour minute second decade")
TYPES = _words(
    "TINYINT SMALLINT INTEGER BIGINT HUGEINT FLOAT DOUBLE DECIMAL(4,2) DECIMAL(18,3) DECIMAL(38,0)"
)
Form = Literal["parquet", "arrow", "duckdb"]
BATCH = Batch("s", "b")
GRID = Grid(Fraction(1), -100, 100)
NAN, INFINITY = float("nan"), float("inf")


@dataclass(frozen=True)
class Column:
    """A column of the records.

    Args:
        name: Of it.
        family: What the grammar takes it for.
        kind: Its Arrow type.
        plain: Values of ordinary records.
        hostile: Extreme ones; a date or a time as the integer it is stored as.
    """

    name: str
    family: str
    kind: pa.DataType
    plain: Sequence[Any]
    hostile: Sequence[Any]

    def array(self, values: Sequence[Any]) -> pa.Array:
        """An array of stored values."""
        if pa.types.is_date(self.kind):
            return pa.array(values, pa.int32()).view(self.kind)
        if pa.types.is_timestamp(self.kind):
            return pa.array(values, pa.int64()).view(self.kind)
        return pa.array(values, self.kind)


def _whole(name: str, kind: pa.DataType) -> Column:
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    root = int(high**0.5) + 1
    return Column(name, "number", kind, (1, 2, 3, 7), (low, low + 1, high, high - 1, root, 0, None))


def _decimal(name: str, digits: int, scale: int) -> Column:
    high = Decimal((0, (9,) * digits, -scale))
    least = Decimal(1).scaleb(-scale)
    plain = tuple(Decimal(each).scaleb(-scale) for each in (10**scale, 25, 99))
    return Column(
        name,
        "number",
        pa.decimal128(digits, scale),
        plain,
        (high, high.copy_negate(), least, Decimal(0), None),
    )


_TEXTS = ("", " ", "x", "A", "1e400", "-", "0", "nan", "infinity", "9" * 40, "1.5", "2024-02-30")
COLUMNS = (
    _whole("tiny", pa.int8()),
    _whole("small", pa.int16()),
    _whole("qty", pa.int32()),
    _whole("price", pa.int32()),
    _whole("big", pa.int64()),
    _whole("byte", pa.uint8()),
    _whole("huge", pa.uint64()),
    _decimal("rate", 4, 2),
    _decimal("amount", 9, 2),
    _decimal("money", 18, 4),
    _decimal("wide", 38, 10),
    Column("ratio", "number", pa.float64(), (0.5, 2.0, -3.0),
           (NAN, INFINITY, -INFINITY, 1e308, -1e308, 5e-324, -0.0, 0.0, None)),
    Column("single", "number", pa.float32(), (0.5, 2.0), (NAN, INFINITY, -INFINITY, 3e38, 0.0)),
    Column("day", "time", pa.date32(), (19_723, 0),
           (2**31 - 1, -(2**31) + 1, -(2**31), 2**31 - 2, 106_751_991, 2_932_896, None)),
    Column("at", "time", pa.timestamp("us"), (1_704_067_200_000_000, 0),
           (2**63 - 1, -(2**63) + 1, -(2**63), 2**63 - 2, 2**62, None)),
    Column("zoned", "time", pa.timestamp("us", "UTC"), (1_704_067_200_000_000, 0),
           (2**63 - 1, -(2**63) + 1, -(2**63), 2**62, None)),
    Column("name", "text", pa.string(), ("A", "7", "2024-01-01"),
           (*_TEXTS, "%", "\\", "\0", "ß" * 9, "x" * 5000, "\U0010ffff", None)),
    Column("late", "condition", pa.bool_(), (True, False), (None,)),
)  # fmt: skip


@dataclass
class Grammar:
    """Random expressions; a part that was said before is said again with chance one half."""

    chance: random.Random
    said: dict[str, list[str]] = field(default_factory=dict)

    def of(self, family: str, depth: int) -> str:
        """An expression of a family."""
        before = self.said.setdefault(family, [])
        if before and self.chance.random() < 0.3:
            return self.chance.choice(before)
        made: str = getattr(self, f"_{family}")(depth)
        if depth < 3:
            before.append(made)
        return made

    def _column(self, family: str) -> str:
        return self.chance.choice([each.name for each in COLUMNS if each.family == family])

    def _number(self, depth: int) -> str:
        if depth <= 0:
            if self.chance.random() < 0.75:
                return self._column("number")
            return self.chance.choice(NUMBERS)
        one: Callable[[], str] = partial(self.of, "number", depth - 1)
        two = self.chance.choice("+-*/%")
        forms = [
            lambda: f"({one()} {two} {one()})",
            lambda: f"({one()} {two} {one()})",
            lambda: self._repeated(depth),
            lambda: (
                f"{self.chance.choice(['ln', 'sqrt', 'abs', 'floor', 'ceil', 'round'])}({one()})"
            ),
            lambda: f"round({one()}, {self.chance.choice(['0', '2', '-3', '400', one()])})",
            lambda: f"(- {one()})",
            lambda: f"{self.chance.choice(['greatest', 'least'])}({one()}, {one()})",
            lambda: f"coalesce({one()}, {one()})",
            lambda: f"nullif({one()}, {one()})",
            lambda: f"CASE WHEN {self.of('condition', depth - 1)} THEN {one()} ELSE {one()} END",
            lambda: f"CAST({self._any(depth - 1)} AS {self.chance.choice(TYPES)})",
            lambda: f"length({self.of('text', depth - 1)})",
            lambda: f"extract({self.chance.choice(PARTS)} FROM {self.of('time', depth - 1)})",
            lambda: f"{self.chance.choice(['year', 'month', 'day'])}({self.of('time', depth - 1)})",
            lambda: f"CASE {one()} WHEN {one()} THEN {one()} WHEN {one()} THEN {one()} END",
        ]
        return self.chance.choice(forms)()

    def _repeated(self, depth: int) -> str:
        part = self.of("number", depth - 1)
        return self.chance.choice(
            [
                f"({part} * {part})",
                f"({part} / {part})",
                f"({part} + {part} * {part})",
                f"ln({part} * {part})",
                f"(1 / ({part} * {part} - {part}))",
            ]
        )

    def _either(self, one: str, other: str, depth: int) -> str:
        return self.of(self.chance.choice((one, other)), depth - 1)

    def _any(self, depth: int) -> str:
        return self.of(self.chance.choice(["number", "number", "text", "condition"]), depth)

    def _time(self, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.4:
            return self._column("time")
        one: Callable[[], str] = partial(self.of, "time", depth - 1)
        unit = self.chance.choice(UNITS)
        forms = [
            lambda: f"date_trunc('{unit}', {one()})",
            lambda: f"({one()} + INTERVAL '1' {unit})",
            lambda: f"({one()} - INTERVAL 400 day)",
            lambda: f"CAST({self._either('time', 'text', depth)} AS DATE)",
            lambda: f"CAST({self.of('time', depth - 1)} AS TIMESTAMP)",
            lambda: f"CAST({self.of('time', depth - 1)} AS TIMESTAMPTZ)",
            lambda: f"coalesce({one()}, {one()})",
            lambda: f"greatest({one()}, {one()})",
        ]
        return self.chance.choice(forms)()

    def _text(self, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.3:
            return self.chance.choice(["name", "name", "'A'", "''", "'x%'"])
        one: Callable[[], str] = partial(self.of, "text", depth - 1)
        number: Callable[[], str] = partial(self.of, "number", depth - 2)
        forms = [
            lambda: f"{self.chance.choice(['lower', 'upper', 'trim'])}({one()})",
            lambda: f"substring(name, {number()}, {number()})",
            lambda: f"substring(name, {number()})",
            lambda: (
                f"CAST({self.of(self.chance.choice(['number', 'time']), depth - 1)} AS VARCHAR)"
            ),
            lambda: f"coalesce({one()}, {one()})",
            lambda: f"CASE WHEN {self.of('condition', depth - 1)} THEN {one()} END",
        ]
        return self.chance.choice(forms)()

    def _condition(self, depth: int) -> str:
        if depth <= 0:
            return "late"
        family = self.chance.choice(["number", "number", "number", "time", "text"])
        one: Callable[[], str] = partial(self.of, family, depth - 1)
        two: Callable[[], str] = partial(self.of, "condition", depth - 1)
        compared = self.chance.choice(["=", "<>", "<", ">=", "IS NOT DISTINCT FROM"])
        forms = [
            lambda: f"({one()} {compared} {one()})",
            lambda: f"({one()} BETWEEN {one()} AND {one()})",
            lambda: f"({one()} BETWEEN {self.of(family, 0)} AND {self.of(family, 0)})",
            lambda: f"({one()} IN ({', '.join(one() for _ in range(self.chance.randint(1, 3)))}))",
            lambda: f"({one()} IN ({', '.join(self._constant(family) for _ in range(9))}))",
            lambda: f"({one()} IS NULL)",
            lambda: f"({two()} {self.chance.choice(['AND', 'OR'])} {two()})",
            lambda: f"(NOT {two()})",
            lambda: f"({self.of('text', depth - 1)} LIKE {self.of('text', 0)})",
            lambda: f"CAST({self.of('text', depth - 1)} AS BOOLEAN)",
            lambda: f"coalesce({two()}, late)",
            lambda: f"({one()} {compared} {self._constant(family)})",
        ]
        return self.chance.choice(forms)()

    def _constant(self, family: str) -> str:
        if family == "number":
            return self.chance.choice(NUMBERS)
        if family == "text":
            return self.chance.choice(["'A'", "'x'", "''", "'1e400'"])
        return self.chance.choice(
            ["DATE '2024-01-01'", "TIMESTAMP '2024-01-01 12:00:00'", "'2024-01-01'"]
        )


def _to_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def _to_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE records AS FROM arrow")


WRITE: dict[Form, Callable[[pa.Table, Path], None]] = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=5),
    "arrow": _to_arrow,
    "duckdb": _to_duckdb,
}

PLAIN = 3
"""Ordinary records, the first ones."""


@dataclass(frozen=True)
class Records:
    """Files of the same records.

    Args:
        form: Of the files: parquet, arrow or duckdb.
        paths: Of all records, of the ordinary ones, and of these with one hostile one each.
        numbers: Text of each record's number.
    """

    form: Form
    paths: dict[str, Path]
    numbers: tuple[str, ...]

    def backend(self, name: str) -> DuckDBBackend:
        """A reader of one of the files."""
        path = str(self.paths[name])
        if self.form == "duckdb":
            return DuckDBBackend(path, self.form, relation=Relation(table="records"))
        return DuckDBBackend(path, self.form)


def write(
    folder: Path, chance: random.Random, hostile: int = 15, form: Form = "parquet"
) -> Records:
    """Write ordinary records and hostile ones, whose columns are extreme together or by chance."""
    stored: dict[str, list[Any]] = {}
    for column in COLUMNS:
        plain = [column.plain[i % len(column.plain)] for i in range(PLAIN)]
        ends = [column.hostile[i % len(column.hostile)] for i in range(hostile // 3)]
        other = [
            chance.choice((*column.hostile, *column.plain)) for _ in range(hostile - len(ends))
        ]
        stored[column.name] = plain + ends + other
    numbers = tuple(map(str, range(PLAIN + hostile)))
    arrays = {column.name: column.array(stored[column.name]) for column in COLUMNS}
    table = pa.table({**arrays, "n": pa.array(numbers)})
    ordinary = list(range(PLAIN))
    chosen = {"all": list(range(len(numbers))), "ordinary": ordinary}
    chosen |= {str(i): [*ordinary, i] for i in range(PLAIN, len(numbers))}
    paths = {}
    for name, rows in chosen.items():
        paths[name] = folder / f"{name}.{form}"
        WRITE[form](table.take(rows), paths[name])
    return Records(form, paths, numbers)


Expression = tuple[str, str]
"""A role and SQL."""

ROLES = {
    "sum": ("number", "number", "time"),
    "cuts": ("number", "number", "time"),
    "values": ("condition", "text", "condition"),
    "cells": ("number", "number", "time"),
    "where": ("condition",),
}
"""Roles of an expression in a question, and families that may play them."""


def question(
    asked: Sequence[Expression], numbers: Sequence[str]
) -> CompoundQuery | CellQuery | TableQuery:
    """One question with all expressions in their roles; a condition is that of all of it."""
    by: tuple[str, ...] = ("n",) if numbers else ()
    groups = tuple((each,) for each in numbers) or ((),)
    where = next((sql for role, sql in asked if role == "where"), None)
    terms = tuple(
        Term(f"e{i}", GRID, sql=sql) for i, (role, sql) in enumerate(asked) if role == "sum"
    )
    axes = tuple(
        Dimension(f"e{i}", sql, cuts=(-1.5, 0.0, 10.0), nulls="cell")
        if role == "cuts"
        else Dimension(f"e{i}", sql, ("true", "false", "A", "1"), nulls="cell", other=True)
        for i, (role, sql) in enumerate(asked)
        if role in ("cuts", "values")
    )
    cells = [sql for role, sql in asked if role == "cells"]
    if cells:
        return CellQuery("e", GRID, cells[0], where, by=by, groups=groups)
    marginals = tuple((i,) for i in range(len(axes))) or ((),)
    table = TableQuery(axes, marginals, where, by=by, groups=groups)
    if not terms:
        return table
    return CompoundQuery((table, SumQuery(terms, where, by=by, groups=groups)))


def _numbers_of(statistic: Any) -> np.ndarray:
    """An answer as one vector that adds up over records."""
    if hasattr(statistic, "parts"):
        return np.concatenate([_numbers_of(part) for part in statistic.parts])
    if hasattr(statistic, "marginals"):
        return np.concatenate([np.ravel(each) for each in statistic.marginals])
    if hasattr(statistic, "values"):
        return np.array(statistic.values, dtype=np.int64)
    counts = np.zeros(GRID.upper - GRID.lower + 1, dtype=np.int64)
    counts[statistic.cells - GRID.lower] = statistic.counts
    return counts


@dataclass
class Sweep:
    """Asks about the same records again and again.

    Args:
        records: Their files.
    """

    records: Records
    refused: int = 0
    asked: int = 0
    _readers: dict[str, DuckDBBackend] = field(default_factory=dict)

    def _reader(self, name: str) -> DuckDBBackend:
        """One that stays, and with all others asks one engine."""
        if name not in self._readers:
            self._readers[name] = self.records.backend(name)
            first = next(iter(self._readers.values()))
            self._readers[name].instance = first.instance
        return self._readers[name]

    def admitted(self, asked: Sequence[Expression]) -> list[Expression]:
        """Expressions that the check admits; halves of what it refuses are looked at again."""
        try:
            self._reader("ordinary").check(question(asked, ()), BATCH)
        except SourceError:
            if len(asked) == 1:
                return []
            middle = len(asked) // 2
            return self.admitted(asked[:middle]) + self.admitted(asked[middle:])
        return list(asked)

    def _answer(self, name: str, asked: Sequence[Expression], grouped: bool) -> np.ndarray:
        """Answers by record, shape (records, …), or of all."""
        asked_of = question(asked, self.records.numbers if grouped else ())
        found = self._reader(name).answer(asked_of, BATCH)
        each = found if isinstance(found, tuple) else (found,)
        return np.stack([_numbers_of(one) for one in each])

    def fault(self, asked: Sequence[Expression], one: str) -> str | None:
        """What tells neighbours apart in a question, or None."""
        try:
            every = self._answer("all", asked, True)
            plain = self._answer("ordinary", asked, True)
            more = self._answer(one, asked, True)
            total = self._answer("all", asked, False)
        except SourceError as error:
            return f"raises: {error}"
        if (every[:PLAIN] != plain[:PLAIN]).any() or (more[:PLAIN] != plain[:PLAIN]).any():
            return "an ordinary record counts otherwise"
        if (more[int(one)] != every[int(one)]).any():
            return "a hostile record counts otherwise beside others"
        if (every.sum(axis=0) != total[0]).any():
            return "groups do not add up to all"
        return None

    def run(self, chance: random.Random, expressions: int, together: int = 16) -> Iterator[str]:
        """Sweep; yields what is wrong, with the expressions that show it."""
        while self.asked < expressions:
            asked = self._chosen(Grammar(chance), chance, together)
            if not asked:
                continue
            one = str(chance.randrange(PLAIN, len(self.records.numbers)))
            if self.fault(asked, one) is None:
                continue
            alone = [each for each in asked if self.fault([each], one) is not None] or asked
            shown = alone[:1] if len(alone) < len(asked) else asked
            yield f"{self.fault(shown, one)} at {one}: {shown}"

    def _chosen(self, grammar: Grammar, chance: random.Random, together: int) -> list[Expression]:
        """Expressions for one question, of which at most one is its condition."""
        roles = ["sum", "cuts", "values"] if chance.random() < 0.8 else ["cells"]
        wanted = [chance.choice(roles) for _ in range(together if len(roles) > 1 else 1)]
        wanted += ["where"] if chance.random() < 0.5 else []
        wished: list[Expression] = []
        for role in wanted:
            text = grammar.of(chance.choice(ROLES[role]), chance.randint(1, 3))
            with suppress(ValueError):
                wished.append((role, expression(text)))
        found = self.admitted(wished) if wished else []
        self.asked += len(found)
        self.refused += len(wanted) - len(found)
        return found


def sweep(
    folder: Path, seed: int, expressions: int, form: Form = "parquet"
) -> tuple[Sweep, list[str]]:
    """The sweep over files of a form, and what it found."""
    chance = random.Random(seed)
    sweep = Sweep(write(folder, chance, form=form))
    return sweep, list(sweep.run(chance, expressions))


if __name__ == "__main__":
    import sys
    from tempfile import TemporaryDirectory

    seeds, expressions = (int(each) for each in (*sys.argv[1:], "1", "4000")[:2])
    found: list[str] = []
    for form in WRITE:
        for seed in range(seeds):
            with TemporaryDirectory() as folder:
                done, faults = sweep(Path(folder), seed, expressions, form)
            counts = f"{done.asked} answered, {done.refused} refused, {len(faults)} faults"
            print(f"{form}, seed {seed}: {counts}", flush=True)
            found += faults
    print(*found, sep="\n")
    sys.exit(bool(found))
