"""Tables of counts and clipped sums are the same, whatever the engine, to the last record."""

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql import scan
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.kinds.workload.section import DimensionSection
from streamdp.sections.dialects import Dialect
from streamdp.sections.expressions import expression
from streamdp.types import (
    Batch,
    CompoundAnswer,
    CompoundQuery,
    Dimension,
    Grid,
    Query,
    SumQuery,
    Sums,
    TableCounts,
    TableQuery,
    Term,
    UnitBound,
    UnitQuery,
)
from streamdp.zones import offsets
from tests.contract.engines import Column, Columns, Engine, MariaDB, Memory, Postgres, Spark
from tests.contract.memory.engine import MemoryBackend
from tests.contract.test_contract import BATCH, SOME, reference
from tests.contract.values import HOW_MANY, KINDS, columns, same

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")

TEXTS = ("a", "A", "ä", "", "a b", "it's", "no\\b", "日本", "\U0001f600")
CUTS = (-1e300, -10.5, 0.0, 0.5, 1.0, 3.0, 1e9)
UNIT = Grid(Fraction(1), -1000, 1000)


def shown(statistic: Any) -> Any:
    """An answer as plain lists."""
    match statistic:
        case tuple():
            return [shown(each) for each in statistic]
        case CompoundAnswer(parts):
            return [shown(each) for each in parts]
        case TableCounts(marginals):
            assert all(each.dtype == np.int64 for each in marginals)
            return [each.tolist() for each in marginals]
        case Sums(values):
            assert all(isinstance(value, int) for value in values)
            return list(values)
    raise AssertionError(statistic)


def agree(engine: Engine, table: Columns, query: Query, batch: Batch = BATCH) -> Any:
    """The engine's answer, which is the reference's."""
    backend = engine.load(table)
    backend.check(query, batch)
    found = shown(backend.answer(query, batch))
    assert found == shown(reference(table).answer(query, batch))
    return found


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", list(KINDS))
@SOME
@given(data=st.data())
def test_numbers_are_cut_and_summed(engine: Engine, kind: str, data: st.DataObject) -> None:
    """Every record is a group of its own: its cell, its clipped value and its square."""
    values = same(data.draw(columns(kind)), kind)
    assume(len({str(value) for value in values}) > HOW_MANY // 10)
    names = [str(number) for number in range(HOW_MANY)]
    table = {"x": Column(kind, values), "record": Column("VARCHAR", names)}
    by, groups = ("record",), tuple((name,) for name in names)
    cut = Dimension("x", cuts=CUTS, nulls="cell")
    wide = Grid(Fraction(1, 3), -(2**51), 2**51)
    terms = (Term("x", UNIT, 3), Term("x", UNIT, -7, square=True), Term("x", wide))
    parts = (
        TableQuery((cut,), ((0,),), by=by, groups=groups),
        SumQuery(terms, by=by, groups=groups),
    )
    agree(engine, table, CompoundQuery(parts))


NEAR = (-3.0, math.nextafter(-1.0, 0.0), 0.0, 0.5, 1.5, math.nextafter(7.0, 8.0))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", ["SMALLINT", "BIGINT"])
@pytest.mark.parametrize("cuts", [NEAR, (0.0,), (2.0**31,), (-(2.0**31), 2.5 - 2**31)], ids=str)
def test_whole_numbers_are_counted_by_value(
    engine: Engine, kind: str, cuts: tuple[float, ...]
) -> None:
    """On the cuts, beside them and at the ends of the type, with groups and sums beside."""
    last = 2 ** (15 if kind == "SMALLINT" else 63)
    beside = {int(cut) + step for cut in cuts for step in (-2, -1, 0, 1, 2)}
    values = [*sorted(each for each in beside if -last <= each < last), -last, last - 1, None]
    table = {
        "x": Column(kind, values),
        "half": Column("BOOLEAN", [i % 2 == 0 for i in range(len(values))]),
    }
    axes = tuple(Dimension("x", cuts=cuts, nulls=nulls) for nulls in ("cell", "drop"))
    agree(engine, table, TableQuery(axes, ((0,), (1,), (0, 1), ())))
    by, groups = ("half",), (("true",), ("false",))
    counted = TableQuery(axes, ((0, 1),), by=by, groups=groups)
    agree(
        engine, table, CompoundQuery((counted, SumQuery((Term("x", UNIT),), by=by, groups=groups)))
    )


def test_whole_numbers_that_make_few_groups_are_clipped() -> None:
    """Cuts far apart, numbers with fractions and bounded units keep the comparison of cuts."""
    near, far = Dimension("x", cuts=NEAR), Dimension("x", cuts=(0.0, 2.0**20))
    ranges = scan.Scan.of(TableQuery((near, far), ((0, 1),))).by_value(lambda axis: True).ranges
    assert {axis: (each.low, each.high) for axis, each in ranges.items()} == {0: (-4, 8)}
    assert not scan.Scan.of(TableQuery((near,), ((0,),))).by_value(lambda axis: False).ranges
    bounded = TableQuery((near,), ((0,),), bound=UnitBound("u", 1))
    assert not scan.Scan.of(bounded).by_value(lambda axis: True).ranges


@pytest.mark.thinned(2)
@pytest.mark.parametrize("nulls", ["cell", "other", "drop"])
def test_texts_are_compared_byte_by_byte(engine: Engine, nulls: Any) -> None:
    """Capitals, accents, empty text, quotes; what is not listed has its own cell, or none."""
    chance = np.random.default_rng(1)
    values = [(*TEXTS, None, "other", "B")[i] for i in chance.integers(0, len(TEXTS) + 3, 300)]
    table = {"t": Column("VARCHAR", values)}
    listed = Dimension("t", values=TEXTS[1:], other=nulls == "other", nulls=nulls)
    (found,) = agree(engine, table, TableQuery((listed,), ((0,),)))
    counted = [values.count(text) for text in TEXTS[1:]]
    rest = sum(value in ("a", "other", "B") for value in values)
    none = values.count(None)
    tail = {"cell": [none], "other": [rest + none], "drop": []}[nulls]
    assert found == counted + tail


def mixed() -> Columns:
    """Five columns of 400 records, nulls in each."""
    chance = np.random.default_rng(2)

    def picked(*values: Any) -> list[Any]:
        return [values[i] for i in chance.integers(0, len(values), 400)]

    return {
        "t": Column("VARCHAR", picked("a", "b", "c", None)),
        "n": Column("BIGINT", picked(0, 1, 2, 30, None)),
        "flag": Column("BOOLEAN", picked(True, False, None)),
        "day": Column("DATE", picked(date(2024, 2, 29), date(2024, 3, 1), None)),
        "x": Column("DOUBLE", [*chance.normal(0, 5, 390).tolist(), *[None, float("nan")] * 5]),
        "u": Column("BIGINT", picked(*range(25), None)),
    }


DIMENSIONS = (
    Dimension("t", values=("b", "a"), other=True, nulls="cell"),
    Dimension("n", values=("30", "1")),
    Dimension("flag", values=("true",), other=True, nulls="other"),
    Dimension("day", values=("2024-02-29", "2024-03-01")),
    Dimension("x", cuts=(-1.0, 0.0, 2.5)),
)
MARGINALS = ((), (0,), (4,), (0, 1), (2, 3), (0, 2, 4), (0, 1, 2, 3, 4))
TERMS = (
    Term("x", Grid(Fraction(1, 10), -80, 40), 5),
    Term("n", Grid(Fraction(1), 0, 9), square=True),
)
BY = ("flag", "t")
GROUPS = (("true", "b"), ("false", "a"), ("true", "none"))


@pytest.mark.thinned(6)
@pytest.mark.parametrize("few", [2**18, 0], ids=["one grouping", "grouping sets"])
@pytest.mark.parametrize("rows", [None, pytest.param(1, marks=pytest.mark.long), 3])
def test_a_compound_question(
    engine: Engine, few: int, rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several marginals and sums of one scan, with units bounded over all parts together."""
    monkeypatch.setattr(scan, "FEW_ROWS", few)
    bound = None if rows is None else UnitBound("u", rows, "key")
    table = TableQuery(DIMENSIONS, MARGINALS, bound=bound)
    found = agree(engine, mixed(), CompoundQuery((table, SumQuery(TERMS, bound=bound))))
    assert np.sum(found[0][0]) <= (400 if rows is None else 25 * rows)
    if isinstance(engine, Spark) and few == 0:
        return  # as slow as all others together
    tables = replace(table, by=BY, groups=GROUPS)
    agree(
        engine, mixed(), CompoundQuery((SumQuery(TERMS, bound=bound, by=BY, groups=GROUPS), tables))
    )


@pytest.mark.thinned(2)
def test_parts_alone(engine: Engine) -> None:
    """A table is answered by tables, sums by sums; of groups there is one each."""
    agree(engine, mixed(), TableQuery(DIMENSIONS[:1], ((0,), ())))
    agree(engine, mixed(), SumQuery(TERMS[:1]))
    agree(engine, mixed(), SumQuery(TERMS[:1], by=BY, groups=GROUPS))


DIALECTS: dict[type[Any], Dialect] = {
    Spark: "spark",
    Postgres: "postgres",
    MariaDB: "mariadb",
}


def test_parts_of_times(engine: Engine) -> None:
    """Hours, weekdays and months are cells of a workload; weekdays count alike in expressions."""
    if isinstance(engine, Memory):
        pytest.skip("memory reads no expressions")
    first = datetime.fromisoformat("2024-02-25T23:59:59")
    times = [first + timedelta(hours=31 * number) for number in range(40)]
    dialect = DIALECTS.get(type(engine), "duckdb")
    axes = []
    for part in ("hour", "weekday", "month"):
        axis = DimensionSection.model_validate({"column": "at", "part": part})
        axes.append(axis.dimension(part, expression(axis.source_sql(part) or "", dialect)))
    sundays = expression("extract(dow from at)", dialect)
    axes.append(Dimension("dow", sundays, cuts=(0.5,), nulls="cell"))
    query = TableQuery(tuple(axes), ((0,), (1,), (2,), (3,)))
    backend = engine.load({"at": Column("TIMESTAMP", [*times, None])})
    backend.check(query, BATCH)
    hours, weekdays, months, on_sunday = shown(backend.answer(query, BATCH))
    assert hours == [*np.bincount([at.hour for at in times], minlength=24), 1]
    assert weekdays == [*np.bincount([at.isoweekday() - 1 for at in times], minlength=7), 1]
    assert months == [*np.bincount([at.month - 1 for at in times], minlength=12), 1]
    assert on_sunday == [weekdays[6], 40 - weekdays[6], 1]


COLUMNS = ("at", '"day"')
ZONES = ("Europe/Berlin", "Australia/Lord_Howe")


@pytest.mark.parametrize("zone", [ZONES[0], pytest.param(ZONES[1], marks=pytest.mark.long)])
def test_parts_of_times_follow_clocks(engine: Engine, zone: str) -> None:
    """Hours, weekdays and months are those of a zone, around its changes and far from them."""
    if isinstance(engine, Memory):
        pytest.skip("memory reads no expressions")
    moves = [moment for moment, _ in offsets(zone)[1] if 1.6e9 < moment < 1.8e9]
    near = [moment + step for moment in moves for step in (-3600, -1, 0, 1, 1799, 3600)]
    far = range(int(-1e9), int(4e9), 299_999_999)
    times = [datetime.fromtimestamp(at, UTC).replace(tzinfo=None) for at in (*near, *far)]
    walls = [at.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)) for at in times]
    extreme = [datetime.fromisoformat(f"{each}T23:02:03") for each in ("1001-02-28", "9999-12-30")]
    days = [date(2024, 2, 29), date(1969, 12, 31), date(2023, 7, 1)]
    axes, dated = [], []
    for part in ("hour", "weekday", "month"):
        axis = DimensionSection.model_validate({"part": part})
        at, day = (expression(name, DIALECTS.get(type(engine), "duckdb")) for name in COLUMNS)
        axes.append(axis.dimension(part, at, zone))
        dated.append(axis.dimension(part, day, zone))
    query = TableQuery((*axes, *dated), tuple((axis,) for axis in range(6)))
    stamps = [*times, *extreme, None]
    each = [*days, *[None] * (len(stamps) - len(days))]
    columns = {"at": Column("TIMESTAMP", stamps), "day": Column("DATE", each)}
    backend = engine.load(columns)
    backend.check(query, BATCH)
    found = shown(backend.answer(query, BATCH))
    outside = [at.replace(tzinfo=UTC).astimezone(_first_or_last(zone, at)) for at in extreme]
    shows = [*walls, *outside]
    assert found[0] == [*np.bincount([at.hour for at in shows], minlength=24), 1]
    assert found[1] == [*np.bincount([at.isoweekday() - 1 for at in shows], minlength=7), 1]
    assert found[2] == [*np.bincount([at.month - 1 for at in shows], minlength=12), 1]
    assert found[3][0] == 3
    assert found[4] == [
        *np.bincount([at.isoweekday() - 1 for at in days], minlength=7),
        len(each) - 3,
    ]
    assert found[5] == [*np.bincount([at.month - 1 for at in days], minlength=12), len(each) - 3]


SHORT = ((None, 2**18), (2, 0))
"""Bounds of a unit, and rows from which on grouping sets are asked, in the short profile."""


def _first_or_last(zone: str, at: datetime) -> timezone:
    first, moves = offsets(zone)
    return timezone(timedelta(seconds=first if at.year < 1900 else moves[-1][1]))


@pytest.mark.thinned(6)
@pytest.mark.parametrize(
    ("rows", "few"),
    [
        pytest.param(rows, few, marks=[] if (rows, few) in SHORT else pytest.mark.long)
        for rows in (None, 1, 2, 3)
        for few in (2**18, 0)
    ],
)
def test_units_are_counted_by_themselves(
    engine: Engine, rows: int | None, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, beside records that are bounded, in groups, and by how many records they have."""
    monkeypatch.setattr(scan, "FEW_ROWS", few)
    bound, table = None if rows is None else UnitBound("u", rows, "key"), mixed()
    units = [each for each in table["u"].values if each is not None]
    sizes = [units.count(unit) for unit in set(units)]
    whole, cut = UnitQuery(bound=bound), UnitQuery((2, 15, 17), bound=bound)
    found = agree(engine, table, CompoundQuery((whole,)))
    assert found == [[[len(set(units)) if rows else 400]]]
    if rows:
        ((_, few_records, some, most),) = agree(engine, table, cut)
        assert (few_records, some) == (
            sum(1 < n < 15 for n in sizes),
            sum(n in (15, 16) for n in sizes),
        )
        assert most == sum(n >= 17 for n in sizes)
    else:
        assert agree(engine, table, cut) == [[400, 0, 0, 0]]
    several = TableQuery(DIMENSIONS, MARGINALS, bound=bound), whole, SumQuery(TERMS, bound=bound)
    beside = agree(engine, table, CompoundQuery((*several, cut)))
    alone = agree(engine, table, CompoundQuery((several[0], several[2])))
    assert [beside[0], beside[2]] == alone
    by, groups = ("t",), (("a",), ("b",), ("c",))
    grouped = agree(engine, table, CompoundQuery((replace(whole, by=by, groups=groups),)))
    pairs = {
        (u, t)
        for u, t in zip(table["u"].values, table["t"].values, strict=True)
        if u is not None and t is not None
    }
    kept = sum(min(rows, len({t for v, t in pairs if v == u})) for u in set(units)) if rows else 0
    assert sum(each[0][0][0] for each in grouped) == (kept or 400 - table["t"].values.count(None))
    with_sums = tuple(replace(part, by=by, groups=groups) for part in several)
    agree(engine, table, CompoundQuery(with_sums))


def test_no_records_is_an_answer(engine: Engine) -> None:
    """Zeros of the right shape."""
    empty = {name: Column(column.kind, []) for name, column in mixed().items()}
    parts = TableQuery(DIMENSIONS, MARGINALS), SumQuery(TERMS)
    found = agree(engine, empty, CompoundQuery(parts))
    assert found[1] == [0, 0]
    assert found[0][0] == 0


def test_records_that_count_nowhere_take_no_place_of_a_unit(engine: Engine) -> None:
    """A unit's one place goes to the record that counts."""
    table = {
        "t": Column("VARCHAR", [None, "z", "a", None, "z"]),
        "u": Column("BIGINT", [1, 1, 1, 1, 1]),
    }
    listed = Dimension("t", values=("a",))
    query = TableQuery((listed,), ((0,),), bound=UnitBound("u", 1, "k"))
    assert agree(engine, table, query) == [[1]]


def test_sums_are_exact_beyond_doubles(engine: Engine) -> None:
    """Squares of 2^25 and more; each is summed in two parts."""
    chance = np.random.default_rng(5)
    table = {"x": Column("BIGINT", chance.integers(2**25, 2**26, 200).tolist())}
    term = Term("x", Grid(Fraction(1), -(2**26), 2**26), square=True)
    (found,) = agree(engine, table, SumQuery((term,)))
    assert found == sum(x * x for x in table["x"].values)
    assert found > 2**53


def test_expressions_and_a_condition(engine: Engine) -> None:
    """In SQL that all engines share; memory refuses it."""
    table = {"x": Column("BIGINT", [1, 2, 3, None]), "y": Column("BIGINT", [1, None, 1, 1])}
    cut = Dimension("z", "x * 2", cuts=(3.0,))
    term = Term("z", UNIT, sql="x + 1")
    parts = TableQuery((cut,), ((0,),), where="y = 1"), SumQuery((term,), where="y = 1")
    query = CompoundQuery(parts)
    backend = engine.load(table)
    if isinstance(backend, MemoryBackend):
        with pytest.raises(SourceError):
            backend.check(query, BATCH)
        return
    backend.check(query, BATCH)
    assert shown(backend.answer(query, BATCH)) == [[[1, 1]], [6]]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "query",
    [
        TableQuery((Dimension("missing", values=("a",)),), ((0,),)),
        TableQuery((Dimension("note", cuts=(1.0,)),), ((0,),)),
        TableQuery((Dimension("x", "x +", cuts=(1.0,)),), ((0,),)),
        SumQuery((Term("missing", UNIT),)),
        SumQuery((Term("note", UNIT),)),
        TableQuery((), where="missing = 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_before(engine: Engine, query: Query) -> None:
    """From the schema, by name, without a value."""
    table = {"x": Column("DOUBLE", [424242.0]), "note": Column("VARCHAR", ["CANARY"])}
    backend = engine.load(table)
    if isinstance(backend, MemoryBackend) and "note" in str(query):
        return  # it has values and no types
    with pytest.raises(SourceError) as caught:
        backend.check(query, BATCH)
    assert "424242" not in str(caught.value)
    assert "CANARY" not in str(caught.value)


def test_a_collation_of_the_column_does_not_matter(tmp_path: Path) -> None:
    """Capitals stay apart where the column itself would take them for one."""
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t (t VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO t VALUES ('A'), ('a'), ('É'), ('é'), ('é')")
    backend = DuckDBBackend(str(path), "duckdb", relation=Relation("t"))
    listed = TableQuery((Dimension("t", values=("a", "é")),), ((0,),))
    assert shown(backend.answer(listed, BATCH)) == [[1, 2]]
    grouped = TableQuery((), by=("t",), groups=(("a",), ("é",)))
    assert shown(backend.answer(grouped, BATCH)) == [[1], [2]]
