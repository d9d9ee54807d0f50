"""DuckDB: conditions, derived columns, groups, and at most so many records of a unit."""

from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from streamdp.backends.duckdb.dialect import DuckDBDialect
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.sql.bound import PARTS, _chosen, bounded
from streamdp.errors import SourceError
from streamdp.types import Batch, CellCounts, CellQuery, Format, Grid, UnitBound
from tests.worlds import parts

GRID = Grid(Fraction(1), -5, 99)
ROWS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("b", "z", 4), ("b", "x", 3), (None, "x", 9)]


@pytest.fixture(params=["parquet", "csv", "jsonl"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> DuckDBBackend:
    kind: Format = request.param
    path = tmp_path / f"batch.{kind}"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person VARCHAR, origin VARCHAR, x INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    connection.execute(f"COPY t TO '{path}' (FORMAT {'json' if kind == 'jsonl' else kind})")
    typed = {"person": "text", "origin": "text", "x": "number"}
    return DuckDBBackend(str(path), kind, types={} if kind == "parquet" else typed)


BATCH = Batch("s", "b")


def shown(counts: CellCounts) -> dict[int, int]:
    return dict(zip(counts.cells.tolist(), counts.counts.tolist(), strict=True))


def asked(backend: DuckDBBackend, query: CellQuery) -> list[dict[int, int]]:
    backend.check(query, BATCH)
    return [shown(counts) for counts in parts(backend.answer(query, BATCH))]


def test_a_condition_and_a_derived_column(backend: DuckDBBackend) -> None:
    """SQL of one record; where the condition is null the record does not count."""
    query = CellQuery("doubled", GRID, expression="CAST(x AS INTEGER) * 2", where="person <> 'a'")
    assert asked(backend, query) == [{6: 2, 8: 1}]


def test_an_expression_that_fails_on_a_record_drops_it(backend: DuckDBBackend) -> None:
    """An error would tell that the record is there, and burn."""
    query = CellQuery("odd", GRID, expression="CAST(person AS INTEGER) + CAST(x AS INTEGER)")
    assert asked(backend, query) == [{}]
    query = CellQuery("x", GRID, where="CAST(origin AS INTEGER) > 3")
    assert asked(backend, query) == [{}]


def test_groups_are_the_public_ones(backend: DuckDBBackend) -> None:
    """In the order of the question, empty ones too; z is no public group."""
    query = CellQuery("x", GRID, by=("origin",), groups=(("y",), ("nowhere",), ("x",)))
    assert asked(backend, query) == [{2: 1}, {}, {1: 1, 3: 2, 9: 1}]
    query = CellQuery("x", GRID, by=("origin", "person"), groups=(("x", "a"), ("x", "b")))
    assert asked(backend, query) == [{1: 1}, {3: 2}]


def test_at_most_so_many_records_of_a_unit(backend: DuckDBBackend) -> None:
    """Units with few keep all; a record without a unit never counts."""
    (found,) = asked(backend, CellQuery("x", GRID, bound=UnitBound("person", 2, "k")))
    assert sum(found.values()) == 4
    assert {1, 2} <= found.keys()
    assert 9 not in found


@pytest.mark.parametrize("nothing", ["NULL", "CAST('nan' AS DOUBLE)"])
def test_records_without_a_value_take_no_place(backend: DuckDBBackend, nothing: str) -> None:
    """Of the three of b only one has a value: whatever the start is, that one counts."""
    value = f"CASE WHEN CAST(x AS INTEGER) = 3 THEN {nothing} ELSE CAST(x AS INTEGER) END"
    for key in "abcdef":
        query = CellQuery("v", GRID, expression=value, bound=UnitBound("person", 1, key))
        (found,) = asked(backend, query)
        assert found[4] == 1
        assert sum(found.values()) == 2


def test_from_every_start_just_so_many_records_are_chosen() -> None:
    """Where a start puts a record on the very border of two choices, too."""
    for rows in (1, 2, 5):
        chosen = f"sum(CASE WHEN {_chosen(rows, 'j')} THEN 1 ELSE 0 END)"
        starts = f"range(0, {PARTS}, {PARTS // 64}) AS starts(start)"
        sizes = f"SELECT n, start, {chosen} AS found FROM range({rows}, 17) AS sizes(n), {starts},"
        each = f"{sizes} range(1, 17) AS places(j) WHERE j <= n GROUP BY n, start"
        found = duckdb.execute(f"SELECT DISTINCT found FROM ({each})").fetchall()
        assert found == [(rows,)]


class Unordered(DuckDBDialect):
    """As if DuckDB promised no order."""

    keeps_order = False


@pytest.mark.parametrize(
    "unit",
    [
        "CAST(['zoe', 'ann', 'Ann', 'bob'][1 + i % 4] AS ENUM ('zoe', 'ann', 'Ann', 'bob'))",
        "CAST(['nan', '-0.0', '0.0', '-inf', '1.5'][1 + i % 5] AS FLOAT)",
        "CAST(md5(CAST(i % 7 AS VARCHAR)) AS UUID)",
        "CAST(i % 7 - 3 AS HUGEINT)",
        "encode(chr(CAST(200 + i % 7 AS INTEGER)))",
    ],
)
def test_both_forms_choose_the_same_record(unit: str) -> None:
    """Units that sort otherwise than their text, or equal under two names."""
    coded = f"SELECT CAST(hash(i) % 30 AS BIGINT) AS code, {unit} AS u FROM range(500) AS t(i)"
    with duckdb.connect() as connection:
        kind = connection.execute(f"DESCRIBE SELECT u FROM ({coded})").fetchall()[0][1]
        one, other = (
            sorted(connection.execute(bounded(words, UnitBound("u", 1), kind, coded)).fetchall())
            for words in (DuckDBDialect(), Unordered())
        )
    assert one == other


def test_rows_that_do_not_stand_as_sorted_are_an_error() -> None:
    """The bound of one record rests on the order; without the sort the question fails."""
    coded = "SELECT i % 7 AS code, 'unit' || i % 5 AS u FROM range(100) AS t(i)"
    statement = bounded(DuckDBDialect(), UnitBound("u", 1), "VARCHAR", coded)
    unsorted = statement.replace("ORDER BY u, code NULLS FIRST", "")
    assert unsorted != statement
    with duckdb.connect() as connection:
        assert sum(n for _, n in connection.execute(statement).fetchall()) == 5
        with pytest.raises(duckdb.InvalidInputException, match="not as sorted"):
            connection.execute(unsorted).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        CellQuery("x", GRID, expression="x +"),
        CellQuery("x", GRID, expression="missing + 1"),
        CellQuery("x", GRID, where="missing > 1"),
        CellQuery("x", GRID, bound=UnitBound("missing", 1)),
        CellQuery("x", GRID, by=("missing",), groups=(("a",),)),
    ],
)
def test_what_cannot_be_asked_is_refused_before(backend: DuckDBBackend, query: CellQuery) -> None:
    """By name, from the schema alone. JSON lines have the columns that are declared."""
    with pytest.raises(SourceError):
        backend.check(query, BATCH)
