"""Expressions over hostile records of Spark: none fails, overflows, or is told by a log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.errors import SourceError
from streamdp.sections.expressions import expression
from streamdp.types import CellQuery
from tests.contract.test_total import FILE, GRID

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = [
    pytest.mark.usefixtures("spark_session"),
    pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning"),
]
MOMENTS = [1_704_067_200_000_000, 2**63 - 1, -(2**63), 0, -62_135_596_800_000_001]
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "x": (pa.int64(), [7] * 5),
    "i": (pa.int32(), [3, 2**31 - 1, -(2**31), 0, 50_000]),
    "b": (pa.int64(), [3, 2**63 - 1, -(2**63), 0, 4_000_000_000]),
    "d": (pa.float64(), [3.5, 1.7e308, float("nan"), float("inf"), -5e-324]),
    "n": (pa.decimal128(38, 0), [3, 1, -1, 0, 10**9]),
    "y": (pa.date32(), [19_723, 2**31 - 1, -(2**31), 0, -719_529]),
    "t": (pa.timestamp("us"), MOMENTS),
    "z": (pa.timestamp("us", "UTC"), MOMENTS),
    "s": (pa.string(), [b"a", b"\xff\xfe", b"", b"2024", b"999999999999-01-01"]),
    "f": (pa.bool_(), [True] * 5),
}


def array(kind: Any, values: list[Any]) -> Any:
    """Values by their bits: no Python object stands for some of them."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return (
        pa.array(values, pa.binary()).view(kind) if kind == pa.string() else pa.array(values, kind)
    )


@pytest.fixture(scope="module")
def backend(spark_session: None, tmp_path_factory: pytest.TempPathFactory) -> SparkBackend:
    """Over extreme records: each row is one for all columns at once."""
    path = tmp_path_factory.mktemp("spark") / "hostile.parquet"
    pq.write_table(pa.table({name: array(*each) for name, each in COLUMNS.items()}), path)
    return SparkBackend("local[2]", Relation(), pattern=str(path))


def counted(backend: SparkBackend, where: str) -> int:
    query = CellQuery("x", GRID, where=expression(where, "spark"))
    backend.check(query, FILE)
    return int(backend.answer(query, FILE).counts.sum())


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "where",
    [
        "y - INTERVAL 3 MONTH > '2023-01-01'",
        "z + INTERVAL 3 DAY > '2023-01-01' AND t - INTERVAL 1 HOUR > '2023-01-01'",
        "date_trunc('year', t) >= '2024-01-01' OR date_trunc('month', y) >= '2024-01-01'",
        "extract(hour FROM y) = 0 AND y > '2023-01-01'",
        "CASE WHEN f THEN y ELSE t END BETWEEN '2023-01-01' AND '9000-01-01'",
        "y >= z AND coalesce(y, t) > '2023-01-01'",
        "t - y >= INTERVAL 0 DAY AND z > '2023-01-01'",
        "CAST(s AS DATE) + INTERVAL 1 DAY > '2023-01-01'",
    ],
)
def test_no_time_fails_an_expression_of_spark(backend: SparkBackend, where: str) -> None:
    """A time beyond what Spark can move or cast is null; the question failed before."""
    assert counted(backend, where) == 1


def test_numbers_of_spark_do_not_overflow_in_silence(backend: SparkBackend) -> None:
    """50,000 by 50,000 is no negative number, and the least integer has an absolute value."""
    assert counted(backend, "i * i > 2000000000") == 3
    assert counted(backend, "b * b * b > 0 AND abs(b) > 3") == 2
    assert counted(backend, "-b > 1") == 1


NUMBERS, TIMES = ("i", "b", "d", "n", "3", "0", "1.5"), ("t", "z", "y")


def number(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return chance.choice(NUMBERS)
    one, other = number(chance, depth - 1), number(chance, depth - 1)
    part = chance.choice(("year", "dow", "isodow", "doy", "week", "hour", "second"))
    return chance.choice(
        (
            *(f"({one} {operator} {other})" for operator in "+-*/%"),
            *(f"{function}({one})" for function in ("abs", "floor", "ceil", "ln", "sqrt", "-")),
            *(f"round({one}, 2)", f"coalesce({one}, {other})", f"greatest({one}, {other})"),
            f"CASE WHEN {condition(chance, depth - 1)} THEN {one} ELSE {other} END",
            f"extract({part} FROM {moment(chance)}) * {one}",
            f"CAST({chance.choice((one, 's'))} AS INTEGER)",
            f"length(substring(s, 1, i)) + {one}",
        )
    )


def moment(chance: random.Random) -> str:
    one = chance.choice(TIMES)
    unit = chance.choice(("YEAR", "MONTH", "DAY", "HOUR"))
    return chance.choice(
        (
            one,
            f"({one} + INTERVAL 900 {unit} - INTERVAL 3 MONTH)",
            f"date_trunc('{unit}', {one})",
            f"CASE WHEN f THEN {one} ELSE {chance.choice(TIMES)} END",
            f"coalesce({one}, {chance.choice(TIMES)})",
            f"CAST({one} AS DATE)",
            "CAST(s AS DATE)",
        )
    )


def condition(chance: random.Random, depth: int) -> str:
    one, other = number(chance, depth), number(chance, depth)
    return chance.choice(
        (
            *(f"{one} {compared} {other}" for compared in ("<", "=", ">=")),
            f"{one} BETWEEN {other} AND 7",
            f"{one} IN (1, {other})",
            f"{moment(chance)} >= {moment(chance)}",
            f"{moment(chance)} - {moment(chance)} > INTERVAL 1 DAY",
            f"{moment(chance)} > '2024-01-01'",
            f"CAST({one} AS VARCHAR) LIKE '1%' OR NOT f",
        )
    )


@pytest.mark.parametrize("amount", [6, pytest.param(600, marks=pytest.mark.long)])
def test_no_record_fails_an_expression_after_its_check(backend: SparkBackend, amount: int) -> None:
    """As a condition, over records that are extreme in each column."""
    chance, failed, asked = random.Random(amount), list[str](), 0
    for _ in range(amount):
        where = condition(chance, chance.choice((1, 2)))
        query = CellQuery("x", GRID, where=expression(where, "spark"))
        try:
            backend.check(query, FILE)
        except SourceError:
            continue
        asked += 1
        try:
            backend.answer(query, FILE)
        except SourceError:
            failed.append(where)
    assert failed == []
    assert asked > amount / 3


def test_a_text_of_many_digits_is_no_decimal(tmp_path: Path) -> None:
    """Java takes the square of their number: a record of three million took it minutes."""
    texts = ["7", "0" * 999 + "7", "0" * 1000 + "7", "9" * 3_000_000]
    pq.write_table(pa.table({"x": pa.array(range(4)), "s": texts}), tmp_path / "r.parquet")
    backend = SparkBackend("local[2]", Relation(), pattern=str(tmp_path / "r.parquet"))
    query = CellQuery("x", GRID, where=expression("CAST(s AS DECIMAL(9, 2)) = 7", "spark"))
    backend.check(query, FILE)
    assert backend.answer(query, FILE).cells.tolist() == [0, 1]


@pytest.fixture
def ansi_view(backend: SparkBackend) -> Iterator[str]:
    """A view that keeps the mode in which it was made, over a text that is no number."""
    from pyspark.sql import SparkSession

    session = SparkSession.active()
    session.sql("CREATE TABLE noted USING parquet AS SELECT 'CANARY' AS note, 7 AS x")
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.sql("CREATE VIEW made AS SELECT CAST(note AS INT) AS h, x FROM noted")
    session.conf.set("spark.sql.ansi.enabled", "false")
    yield "made"
    session.sql("DROP VIEW made")
    session.sql("DROP TABLE noted")


def test_a_view_of_spark_in_ansi_mode_is_refused(ansi_view: str) -> None:
    """It ends the question at a text that is no number, whatever this session's mode is."""
    query = CellQuery("h", GRID)
    with pytest.raises(SourceError, match="ANSI"):
        SparkBackend("local[2]", Relation(ansi_view)).check(query, FILE)


def test_no_failure_of_spark_is_logged(ansi_view: str, capfd: pytest.CaptureFixture[str]) -> None:
    """PySpark logs what failed with the value at which it did."""
    with pytest.raises(SourceError) as caught:
        SparkBackend("local[2]", Relation(ansi_view)).answer(CellQuery("h", GRID), FILE)
    assert "CANARY" not in "".join((*capfd.readouterr(), str(caught.value)))
