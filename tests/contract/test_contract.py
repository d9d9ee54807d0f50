"""The same batch gives the same counts, whatever the engine, to the last bit."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from streamdp.errors import SourceError
from streamdp.types import Backend, Batch, CellCounts, CellQuery, Grid, UnitBound
from tests.contract.engines import (
    Column,
    Columns,
    DuckDBFiles,
    Engine,
    MariaDB,
    Objects,
    Postgres,
    Spark,
    held,
)
from tests.contract.memory.engine import MemoryBackend
from tests.contract.values import GRIDS, HOW_MANY, KINDS, UNITS, columns, same
from tests.worlds import parts

BATCH = Batch("s", "b")

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")
"""The bridge to Java leaves sockets to the garbage collector."""

SOME = settings(
    max_examples=1,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


def shown(counts: tuple[CellCounts, ...]) -> list[list[tuple[int, int]]]:
    for each in counts:
        assert (np.diff(each.cells) > 0).all()
        assert (each.counts > 0).all()
    return [list(zip(c.cells.tolist(), c.counts.tolist(), strict=True)) for c in counts]


def reference(columns: Columns, time_column: str | None = None) -> Backend:
    return MemoryBackend({name: c.values for name, c in columns.items()}, time_column)


def agree(
    engine: Engine,
    table: Columns,
    query: CellQuery,
    batch: Batch = BATCH,
    time_column: str | None = None,
) -> None:
    backend = engine.load(table, time_column)
    backend.check(query, batch)
    found = shown(parts(backend.answer(query, batch)))
    assert found == shown(parts(reference(table, time_column).answer(query, batch)))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", list(KINDS))
@SOME
@given(data=st.data(), grid=st.sampled_from(GRIDS))
def test_each_value_falls_in_one_cell(
    engine: Engine, kind: str, data: st.DataObject, grid: Grid
) -> None:
    """Every record is a group of its own, so one question compares hundreds of cells."""
    values = same(data.draw(columns(kind)), kind)
    assume(len({str(value) for value in values}) > HOW_MANY // 10)  # the first try is all alike
    names = [str(number) for number in range(HOW_MANY)]
    table = {"x": Column(kind, values), "record": Column("VARCHAR", names)}
    agree(engine, table, CellQuery("x", grid, by=("record",), groups=tuple((n,) for n in names)))


def test_durations_below_zero(engine: Engine) -> None:
    """To the microsecond, which Parquet cannot hold."""
    if isinstance(engine, DuckDBFiles | Objects):
        return
    values = [timedelta(days=-400, microseconds=us) for us in (-1, 0, 1, 500_000, 86_399_999_999)]
    agree(
        engine,
        {"x": Column("INTERVAL", values)},
        CellQuery("x", Grid(Fraction(1, 10**6), -(2**46), 0)),
    )


@pytest.mark.thinned(5)
@pytest.mark.parametrize("kind", list(UNITS))
def test_a_unit_counts_the_same_records(engine: Engine, kind: str) -> None:
    """Units of every type; null ones never count, whatever they hold."""
    chance = np.random.default_rng(7)
    units = [UNITS[kind][i] for i in chance.integers(0, len(UNITS[kind]), 200)]
    if isinstance(engine, MariaDB) and kind == "DOUBLE":
        units = [held(unit) for unit in units]
    values = chance.integers(0, 30, 200).tolist()
    table = {"x": Column("BIGINT", values), "u": Column(kind, units)}
    bounds = [UnitBound("u", 3, "it's")]
    if not isinstance(engine, Spark):
        bounds.append(UnitBound("u", 1))
    if kind == "VARCHAR" and not isinstance(engine, Spark):
        bounds.append(UnitBound("u", 1000))
    for bound in bounds:
        agree(engine, table, CellQuery("x", Grid(GRIDS[0].resolution, 0, 25), bound=bound))


@pytest.mark.thinned(3)
def test_a_unit_is_bounded_over_all_groups(engine: Engine) -> None:
    """Groups share a unit's records: a person in two of them counts as often as one in one."""
    chance = np.random.default_rng(8)
    table = {
        "x": Column("DOUBLE", chance.normal(size=300).tolist()),
        "u": Column("BIGINT", chance.integers(0, 20, 300).tolist()),
        "g": Column("VARCHAR", [("a", "b", "other", None)[i] for i in chance.integers(0, 4, 300)]),
        "h": Column("BOOLEAN", [bool(i) for i in chance.integers(0, 2, 300)]),
    }
    groups = (("b", "true"), ("a", "false"), ("no\\bo'dy", "true"))
    for rows in (4, 1):
        query = CellQuery("x", GRIDS[1], bound=UnitBound("u", rows), by=("g", "h"), groups=groups)
        agree(engine, table, query)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "DATE"])
def test_windows_are_half_open_in_utc(engine: Engine, kind: str) -> None:
    """A record at the border belongs to the later window."""
    start = datetime(2024, 3, 10, tzinfo=UTC)
    batch = Batch("s", "b", int(start.timestamp()), int(start.timestamp()) + 86_400)
    offsets = [-86_400, -1, 0, 1, 86_399, 86_400, 86_401]
    at = [start + timedelta(seconds=each) for each in offsets]
    times = {"TIMESTAMP": [t.replace(tzinfo=None) for t in at], "TIMESTAMPTZ": at}
    seen = Column(kind, times.get(kind, [t.date() for t in at]))
    table = {"seen": seen, "x": Column("BIGINT", list(range(len(at))))}
    agree(engine, table, CellQuery("x", GRIDS[0]), batch, "seen")


@pytest.mark.thinned(2)
def test_nothing_is_an_answer(engine: Engine) -> None:
    """No records at all, and none that count."""
    for values in (list[float | None](), [None, float("nan"), float("inf")]):
        agree(engine, {"x": Column("DOUBLE", values)}, CellQuery("x", GRIDS[0]))


def test_a_condition_and_a_derived_column(engine: Engine) -> None:
    """In SQL that all engines share; memory, which has no SQL, refuses."""
    table = {"x": Column("BIGINT", [1, 2, 3, None]), "y": Column("BIGINT", [1, None, 1, 1])}
    query = CellQuery("z", GRIDS[0], expression="x * 2", where="y = 1 AND x < 9")
    backend = engine.load(table)
    if isinstance(backend, MemoryBackend):
        with pytest.raises(SourceError):
            backend.check(query, BATCH)
        return
    backend.check(query, BATCH)
    assert shown(parts(backend.answer(query, BATCH))) == [[(2, 1), (6, 1)]]


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "query",
    [
        CellQuery("missing", GRIDS[0]),
        CellQuery("note", GRIDS[0]),
        CellQuery("x", GRIDS[0], where="missing = 1"),
        CellQuery("x", GRIDS[0], expression="x +"),
        CellQuery("x", GRIDS[0], bound=UnitBound("missing", 1)),
        CellQuery("x", GRIDS[0], by=("missing",), groups=(("a",),)),
    ],
)
def test_what_cannot_be_asked_is_refused_before(engine: Engine, query: CellQuery) -> None:
    """From the schema, by name, without a value."""
    table = {"x": Column("BIGINT", [424242]), "note": Column("VARCHAR", ["CANARY"])}
    backend = engine.load(table)
    if isinstance(backend, MemoryBackend) and query.column == "note":
        return  # it has values and no types
    with pytest.raises(SourceError) as caught:
        backend.check(query, BATCH)
    assert "424242" not in str(caught.value)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_question_that_fails_says_nothing_of_the_records(engine: Engine) -> None:
    """The engine's text is dropped. Engines that can go on without the record do."""
    table = {"x": Column("BIGINT", [1, 2]), "note": Column("VARCHAR", ["1", "CANARY"])}
    backend = engine.load(table)
    query = CellQuery("z", GRIDS[0], expression="CAST(note AS INTEGER)")
    if isinstance(backend, MemoryBackend):
        return
    if isinstance(engine, Postgres | MariaDB):
        with pytest.raises(SourceError, match="one record could make"):
            backend.check(query, BATCH)
    if isinstance(engine, MariaDB):
        return
    if isinstance(engine, Postgres):
        query = CellQuery("z", GRIDS[0])
        engine.view("SELECT x, CAST(note AS INTEGER) AS z FROM t")
    backend.check(query, BATCH)
    if not isinstance(engine, Postgres):
        assert shown(parts(backend.answer(query, BATCH))) == [[(1, 1)]]
        return
    with pytest.raises(SourceError) as caught:
        parts(backend.answer(query, BATCH))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__suppress_context__
