"""The engines of the contract suite: each takes the same columns and gives a backend over them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pytest

from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.objects import ObjectsBackend
from streamdp.backends.mariadb import MariaDBBackend, ServerAddress
from streamdp.backends.postgres import PostgresBackend
from streamdp.backends.spark import SparkBackend
from streamdp.backends.sql.relation import Relation
from streamdp.types import Backend
from tests.contract.memory.engine import MemoryBackend
from tests.contract.servers import asked
from tests.objects.servers import Storage

POSTGRES_TYPES = {
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "VARCHAR": "text",
    "BLOB": "bytea",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "HUGEINT": "numeric",
}


@dataclass(frozen=True)
class Column:
    """A column: its type in DuckDB's words, and Python values."""

    kind: str
    values: Sequence[Any]


Columns = Mapping[str, Column]


class Engine(Protocol):
    """Takes columns, gives a backend that reads them."""

    def load(self, columns: Columns, time_column: str | None = None) -> Backend: ...


@dataclass
class Memory:
    """The reference."""

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        return MemoryBackend({name: c.values for name, c in columns.items()}, time_column)


@dataclass
class DuckDBFiles:
    """A Parquet file."""

    folder: Path
    files: int = 0

    def write(self, columns: Columns) -> Path:
        self.files += 1
        path = self.folder / f"{self.files}.parquet"
        with duckdb.connect() as connection:
            _fill(connection, columns)
            connection.execute(f"COPY t TO '{path}' (FORMAT parquet)")
        return path

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        return DuckDBBackend(str(self.write(columns)), "parquet", time_column)


@dataclass
class Objects:
    """The same file as an object of a storage."""

    files: DuckDBFiles
    storage: Storage
    last: ObjectsBackend | None = None

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        self.close()
        path = self.files.write(columns)
        address = self.storage.put(path.name, path)
        self.last = ObjectsBackend(address, "parquet", time_column)
        return self.last

    def close(self) -> None:
        if self.last is not None:
            self.last.let_go()


@dataclass
class ArrowFiles:
    """Two Arrow files of record batches of a few rows, text as a dictionary, times in a zone."""

    folder: Path
    files: int = 0

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        import pyarrow as pa

        kinds = {
            "SMALLINT": pa.int16(),
            "BIGINT": pa.int64(),
            "DOUBLE": pa.float64(),
            "FLOAT": pa.float32(),
            "BOOLEAN": pa.bool_(),
            "HUGEINT": pa.decimal128(38, 0),
            "DECIMAL(9,2)": pa.decimal128(9, 2),
            "DECIMAL(38,10)": pa.decimal128(38, 10),
            "VARCHAR": pa.string(),
            "BLOB": pa.large_binary(),
            "DATE": pa.date32(),
            "TIMESTAMP": pa.timestamp("us"),
            "TIMESTAMPTZ": pa.timestamp("us", "Asia/Kolkata"),
            "INTERVAL": pa.duration("us"),
        }
        arrays = {name: pa.array(c.values, kinds[c.kind]) for name, c in columns.items()}
        table = pa.table(
            {
                name: array.dictionary_encode() if array.type == pa.string() else array
                for name, array in arrays.items()
            }
        )
        self.files += 1
        half = table.num_rows // 2
        for part, rows in enumerate((table.slice(0, half), table.slice(half))):
            path = str(self.folder / f"{self.files}-{part}.arrow")
            with pa.ipc.new_file(path, rows.schema) as writer:
                writer.write_table(rows.unify_dictionaries(), max_chunksize=7)
        return DuckDBBackend(str(self.folder / f"{self.files}-*.arrow"), "arrow", time_column)


@dataclass
class DuckDBTable:
    """A table of a DuckDB database."""

    folder: Path
    files: int = 0

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        self.files += 1
        path = self.folder / f"{self.files}.duckdb"
        with duckdb.connect(path) as connection:
            _fill(connection, columns)
        return DuckDBBackend(str(path), "duckdb", time_column, relation=Relation("t"))


@dataclass
class Postgres:
    """A table of a PostgreSQL server."""

    conninfo: str
    backend: PostgresBackend | None = None

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        import psycopg

        kinds = [POSTGRES_TYPES.get(column.kind, column.kind) for column in columns.values()]
        described = ", ".join(f'"{name}" {kind}' for name, kind in zip(columns, kinds, strict=True))
        with psycopg.connect(self.conninfo) as connection, connection.cursor() as cursor:
            cursor.execute("SET TimeZone = 'UTC'")
            cursor.execute("DROP TABLE IF EXISTS t CASCADE")
            cursor.execute(f"CREATE TABLE t ({described})")
            with cursor.copy("COPY t FROM STDIN") as copy:
                for row in zip(*(column.values for column in columns.values()), strict=True):
                    copy.write_row(row)
        if self.backend is None:
            self.backend = PostgresBackend(self.conninfo, Relation("t"))
        self.backend.time_column, self.backend.relation = time_column, Relation("t")
        return self.backend

    def view(self, select: str) -> None:
        """Read a view over the table in its place, until the next table."""
        import psycopg

        assert self.backend is not None
        with psycopg.connect(self.conninfo) as connection:
            connection.execute("DROP VIEW IF EXISTS seen")
            connection.execute(f"CREATE VIEW seen AS {select}")
        self.backend.relation = Relation("seen")


MARIADB_TYPES = {
    "HUGEINT": "DECIMAL(38)",
    "VARCHAR": "VARCHAR(255)",
    "BLOB": "VARBINARY(255)",
    "BOOLEAN": "ENUM('false', 'true')",
    "TIMESTAMP": "DATETIME(6)",
    "TIMESTAMPTZ": "DATETIME(6)",
    "INTERVAL": "TIME(6)",
}
"""MariaDB has no truth values, no instant after 2038 in its TIMESTAMP, no duration of 839 hours."""


@dataclass
class MariaDB:
    """A table of a MariaDB server, which can hold no NaN and nothing infinite."""

    url: str
    backend: MariaDBBackend | None = None

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        if any(each.kind == "INTERVAL" and hours(each) >= 838 for each in columns.values()):
            pytest.skip("MariaDB has no such duration")
        kinds = [MARIADB_TYPES.get(column.kind, column.kind) for column in columns.values()]
        described = ", ".join(f"`{name}` {kind}" for name, kind in zip(columns, kinds, strict=True))
        rows = list(zip(*(map(held, column.values) for column in columns.values()), strict=True))
        with asked(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS t")
            cursor.execute(f"CREATE TABLE t ({described})")
            one = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO t VALUES ({one})", rows)
        if self.backend is None:
            self.backend = MariaDBBackend(ServerAddress.of(self.url), Relation("t"))
        self.backend.time_column, self.backend.relation = time_column, Relation("t")
        return self.backend


def hours(column: Column) -> float:
    return max((abs(v.total_seconds()) / 3600 for v in column.values if v is not None), default=0)


def held(value: Any) -> Any:
    """A value as MariaDB can hold it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class Spark:
    """The Parquet file that DuckDB writes; durations, which Parquet has none of, from integers."""

    files: DuckDBFiles

    def load(self, columns: Columns, time_column: str | None = None) -> Backend:
        from datetime import timedelta

        stored, selected = dict(columns), []
        for name, column in columns.items():
            if column.kind != "INTERVAL":
                selected.append(f"`{name}`")
                continue
            micros = [
                None if value is None else value // timedelta(microseconds=1)
                for value in column.values
            ]
            stored[name] = Column("BIGINT", micros)
            zero = "TIMESTAMP '1970-01-01 00:00:00'"
            selected.append(f"timestamp_micros(`{name}`) - {zero} AS `{name}`")
        path = self.files.write(stored)
        relation = Relation(query=f"SELECT {', '.join(selected)} FROM parquet.`{path}`")
        return SparkBackend("local[2]", relation, time_column)


def _fill(connection: duckdb.DuckDBPyConnection, columns: Columns) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    described = ", ".join(f'"{name}" {column.kind}' for name, column in columns.items())
    connection.execute(f"CREATE TABLE t ({described})")
    rows = list(zip(*(column.values for column in columns.values()), strict=True))
    if rows:
        one = f"({', '.join('?' * len(columns))})"
        flat = [value for row in rows for value in row]
        connection.execute(f"INSERT INTO t VALUES {', '.join([one] * len(rows))}", flat)
