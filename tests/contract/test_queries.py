"""A query over a table gives the counts that the table gives for the same expressions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.backends.sql.engine import SqlBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.dialects import Dialect
from streamdp.sources.query import table_query
from streamdp.types import Batch, CellQuery, Grid, UnitBound
from tests.contract.engines import Column, Columns, DuckDBTable, Engine, MariaDB, Postgres, Spark
from tests.contract.memory.engine import MemoryBackend
from tests.contract.test_contract import shown
from tests.worlds import parts

WITH_TABLES = ("duckdb-table", "postgres", "mariadb", "spark")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.parametrize("engine", WITH_TABLES, indirect=True),
]

DIALECTS: dict[type[Engine], Dialect] = {
    DuckDBTable: "duckdb",
    Postgres: "postgres",
    MariaDB: "mariadb",
    Spark: "spark",
}

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = Batch("s", "b", int(START.timestamp()), int(START.timestamp()) + 86_400)
GRID = Grid(Fraction(1, 10), -10_000, 10_000)


def table() -> Columns:
    chance = np.random.default_rng(3)
    hours = chance.integers(0, 72, 300).tolist()
    spans = chance.integers(0, 500, 300).tolist()
    return {
        "x": Column("BIGINT", [None if x % 9 == 0 else x for x in spans]),
        "y": Column("BIGINT", chance.integers(0, 4, 300).tolist()),
        "Who": Column("VARCHAR", [f"p{i}" for i in chance.integers(0, 30, 300)]),
        "time": Column("TIMESTAMPTZ", [START + timedelta(hours=hour) for hour in hours]),
        "g": Column("VARCHAR", [("a", "b")[i] for i in chance.integers(0, 2, 300)]),
    }


def asked(engine: Engine, text: str, columns: Columns, time: str | None) -> SqlBackend:
    """The engine's backend, over a query of its table."""
    backend: Any = engine.load(columns, time)
    found = table_query(text, DIALECTS[type(engine)])
    backend.relation = replace(
        backend.relation, columns=found.columns, where=found.where, named=found.named
    )
    assert isinstance(backend, SqlBackend)
    return backend


QUERY = """
    SELECT "time" AS at, "Who" AS unit, g AS place, 2 * x / y AS ratio FROM t
    WHERE y < 3 AND x IS NOT NULL -- and no others
"""


def test_a_query_counts_what_python_counts(engine: Engine) -> None:
    """Renamed time, unit and group, a derived value that fails for some, and a condition."""
    columns = table()
    backend = asked(engine, QUERY, columns, "at")
    bound = None if isinstance(engine, Spark) else UnitBound("unit", 2)
    question = CellQuery("ratio", GRID, bound=bound, by=("place",), groups=(("b",), ("a",)))
    backend.check(question, DAY)
    rows = zip(*(column.values for column in columns.values()), strict=True)
    kept = [
        (2 * x / y if y else None, who, at, g)
        for x, y, who, at, g in rows
        if y < 3 and x is not None
    ]
    ratio, who, at, g = zip(*kept, strict=True)
    known = MemoryBackend({"ratio": ratio, "unit": who, "at": at, "place": g}, "at")
    found = shown(parts(backend.answer(question, DAY)))
    assert found == shown(parts(known.answer(question, DAY)))
    assert sum(count for group in found for _, count in group) > 20


def test_a_star_keeps_the_columns(engine: Engine) -> None:
    """The same counts as the table's under the same condition."""
    columns = table()
    backend = asked(engine, "SELECT * FROM t WHERE y = 2", columns, "time")
    backend.check(CellQuery("x", GRID), DAY)
    found = shown(parts(backend.answer(CellQuery("x", GRID), DAY)))
    with_where = CellQuery("x", GRID, where="y = 2")
    plain = engine.load(columns, "time")
    assert found == shown(parts(plain.answer(with_where, DAY)))
    assert found != [[]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT missing AS x FROM t", "no column 'missing'"),
        ("SELECT row_to_json AS x FROM t", "no column 'row_to_json'"),
        ("SELECT x FROM t WHERE missing = 1", "no column 'missing'"),
        ("SELECT x FROM nowhere", "cannot be opened"),
        ("SELECT y FROM t", "no column 'x'"),
    ],
)
def test_what_a_query_lacks_is_told_before(engine: Engine, text: str, words: str) -> None:
    """By name; a name that is no column is no function either."""
    backend: Any = asked(engine, text, table(), None)
    if "nowhere" in text:
        backend.relation = Relation("nowhere", where="true")
    with pytest.raises(SourceError, match=words) as caught:
        backend.check(CellQuery("x", GRID), Batch("s", "b"))
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_an_expression_that_cannot_be_understood_is_told_as_the_query_s(engine: Engine) -> None:
    """Types do not fit: nothing was asked of the records yet."""
    if isinstance(engine, Spark):
        return  # it casts what it can, and null is what it cannot
    backend = asked(engine, 'SELECT year("Who") AS x FROM t', table(), None)
    with pytest.raises(SourceError, match=r"its engine cannot understand|needs a date"):
        backend.check(CellQuery("x", GRID), Batch("s", "b"))
