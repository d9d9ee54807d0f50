"""A job over the shipped flights: the same statistics from each engine, by digest."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.types import Backend, Batch, CellQuery, Grid, UnitBound
from tests.contract.memory.engine import MemoryBackend
from tests.contract.servers import asked
from tests.worlds import parts

FLIGHTS = Path(__file__).parents[2] / "streamdp" / "demo" / "flights.parquet"
START, DAY = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()), 86_400
DAYS = (0, 44, 67, 181)
GRID = Grid(Fraction(1), 0, 1000)
QUERIES = (
    CellQuery("air_time", GRID),
    CellQuery(
        "air_time",
        GRID,
        bound=UnitBound("carrier", 25),
        by=("origin",),
        groups=(("JFK",), ("EWR",), ("LGA",)),
    ),
)
COLUMNS = ("date", "air_time", "carrier", "origin")

pytestmark = pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")


def digest(backend: Backend) -> str:
    found = hashlib.sha256()
    for query in QUERIES:
        for day in DAYS:
            batch = Batch("flights", str(day), START + day * DAY, START + (day + 1) * DAY)
            backend.check(query, batch)
            for counts in parts(backend.answer(query, batch)):
                found.update(counts.cells.tobytes() + b"/" + counts.counts.tobytes() + b";")
    return found.hexdigest()


@pytest.fixture(scope="module")
def expected() -> str:
    values = zip(*_rows(), strict=True)
    return digest(MemoryBackend(dict(zip(COLUMNS, values, strict=True)), "date"))


def _rows() -> list[tuple[object, ...]]:
    days = ", ".join(f"DATE '2013-01-01' + {day}" for day in DAYS)
    chosen = f"SELECT {', '.join(COLUMNS)} FROM '{FLIGHTS}' WHERE date::DATE IN ({days})"
    return duckdb.execute(chosen).fetchall()


def test_duckdb_files(expected: str) -> None:
    assert digest(DuckDBBackend(str(FLIGHTS), "parquet", "date")) == expected


def test_duckdb_database(expected: str, tmp_path: Path) -> None:
    path = tmp_path / "flights.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE flights AS FROM '{FLIGHTS}'")
    backend = DuckDBBackend(str(path), "duckdb", "date", relation=Relation("flights"))
    assert digest(backend) == expected


@pytest.fixture
def in_postgres(postgres_server: str) -> Iterator[PostgresBackend]:
    import psycopg

    with psycopg.connect(postgres_server) as connection, connection.cursor() as cursor:
        described = "date date, air_time double precision, carrier text, origin text"
        cursor.execute(f"CREATE TABLE flights ({described})")
        with cursor.copy("COPY flights FROM STDIN") as copy:
            for row in _rows():
                copy.write_row(row)
    backend = PostgresBackend(postgres_server, Relation("public.flights"), "date")
    yield backend
    backend.close()


def test_postgres(expected: str, in_postgres: PostgresBackend) -> None:
    assert digest(in_postgres) == expected


def test_mariadb(expected: str, mariadb_server: str) -> None:
    described = "date date, air_time double, carrier varchar(9), origin varchar(9)"
    with asked(mariadb_server) as server, server.cursor() as cursor:
        cursor.execute(f"CREATE TABLE flights ({described})")
        cursor.executemany("INSERT INTO flights VALUES (%s, %s, %s, %s)", _rows())
    with closing(
        MariaDBBackend(ServerAddress.of(mariadb_server), Relation("w.flights"), "date")
    ) as backend:
        assert digest(backend) == expected


@pytest.mark.long
@pytest.mark.usefixtures("spark_session")
def test_spark(expected: str) -> None:
    relation = Relation(query=f"SELECT * FROM parquet.`{FLIGHTS}`")
    assert digest(SparkBackend("local[2]", relation, "date")) == expected
