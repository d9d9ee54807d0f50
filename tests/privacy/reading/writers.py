"""What writes tables of Arrow as files of columns, or as tables of them.

A hostile value may be one that no writer would make of an object, so Arrow's arrays are handed over
as they are. One that looks at values, or casts them, is given those alone that it can write.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote_from_bytes

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from tests.contract.servers import java

Write = Callable[[pa.Table, Path], None]


@dataclass(frozen=True)
class Writer:
    """Who writes a table, and how its source is named.

    Args:
        format: Of what is written, as the table in PRIVACY.md names it.
        name: Of the writer.
        write: Writes a table into a folder.
        source: Keys of the source in YAML.
        there: Whether it is installed.
    """

    format: str
    name: str
    write: Write
    source: str = "path: data.parquet"
    there: Callable[[], bool] = lambda: True

    def can(self, table: pa.Table, value: Any) -> bool:
        """Whether it writes a table, and the hostile value in it as it is.

        It is asked to, since each writer has its own words for what it does not write. One that
        ends in a panic may go on writing in threads of its own, so its folder may not be empty when
        it is removed.
        """
        if self.write not in AS_IT_IS and not _is_sound(value):
            return False
        with TemporaryDirectory(ignore_cleanup_errors=True) as name:
            try:
                self.write(table, Path(name))
            except Exception:  # noqa: BLE001
                return False
            except BaseException as error:
                if type(error).__name__ != "PanicException":
                    raise
                return False
        return True


def _is_sound(value: Any) -> bool:
    try:
        value.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def by_pyarrow(**options: Any) -> Write:
    def write(table: pa.Table, folder: Path) -> None:
        pq.write_table(table, folder / "data.parquet", row_group_size=64, **options)

    return write


def by_pandas(table: pa.Table, folder: Path) -> None:
    import pandas as pd

    table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(folder / "data.parquet")


def by_polars(table: pa.Table, folder: Path) -> None:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(folder / "data.parquet")


def by_polars_to_arrow(table: pa.Table, folder: Path) -> None:
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_ipc(folder / "data.arrow")


def by_duckdb(table: pa.Table, folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("records", table)
        connection.execute(f"COPY records TO '{folder / 'data.parquet'}' (FORMAT parquet)")


def to_database(table: pa.Table, folder: Path) -> None:
    with duckdb.connect(str(folder / "data.duckdb")) as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE records AS FROM arrow")


def by_feather(table: pa.Table, folder: Path) -> None:
    with pa.ipc.new_file(folder / "data.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=64)


def by_feather_packed(table: pa.Table, folder: Path) -> None:
    pa.feather.write_feather(table, str(folder / "data.arrow"), compression="zstd")


def in_folders(table: pa.Table, folder: Path) -> None:
    """The group is a folder and no column."""
    raw = [value.as_buffer().to_pybytes() for value in table["group"]]
    for group in dict.fromkeys(raw):
        rows = [row for row, each in enumerate(raw) if each == group]
        place = folder / f"group={quote_from_bytes(group, safe=' ')}"
        place.mkdir()
        pq.write_table(table.drop_columns("group").take(rows), place / "data.parquet")


def by_delta(table: pa.Table, folder: Path) -> None:
    import deltalake

    half = table.num_rows // 2
    for part in (table.slice(0, half), table.slice(half)):
        deltalake.write_deltalake(folder / "table", part, mode="append", partition_by=["group"])


def by_iceberg(table: pa.Table, folder: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    (folder / "lake").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("n")
    made = catalog.create_table("n.table", table.schema)
    made.append(table)


@cache
def _spark() -> Any:
    """A Spark in this process's Java, which ends with it."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in {
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def by_spark(moments: str) -> Write:
    """Spark, with instants in its form of this name; others than microseconds it does not hold."""

    def write(table: pa.Table, folder: Path) -> None:
        session = _spark()
        session.conf.set("spark.sql.parquet.outputTimestampType", moments)
        raw, made = {}, []
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = column.type
            text, instant = pa.types.is_string(kind), kind == pa.timestamp("us", "UTC")
            raw[name] = column
            if text or instant:
                raw[name] = pa.chunked_array(
                    [part.view(pa.binary() if text else pa.int64()) for part in column.chunks]
                )
            cast = "CAST(`{0}` AS STRING)" if text else "timestamp_micros(`{0}`)"
            made.append((cast if text or instant else "`{0}`").format(name) + f" AS `{name}`")
        frame = session.createDataFrame(pa.table(raw)).selectExpr(*made)
        frame.coalesce(1).write.parquet(str(folder / "data"))

    return write


_PLAIN = by_pyarrow()
_BARE = by_pyarrow(use_dictionary=False, write_statistics=False)
_PAGES = by_pyarrow(data_page_version="2.0")
_SPARKS = {each: by_spark(each) for each in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS")}

AS_IT_IS = {_PLAIN, _BARE, _PAGES, by_pandas, in_folders, by_feather, *_SPARKS.values()}
"""Those that write a value whatever its bytes are."""

WRITERS = (
    Writer("Parquet", "PyArrow", _PLAIN),
    Writer("Parquet", "PyArrow, plain", _BARE),
    Writer("Parquet", "PyArrow, version 2", _PAGES),
    Writer("Parquet", "pandas", by_pandas),
    Writer("Parquet", "polars", by_polars),
    Writer("Parquet", "DuckDB", by_duckdb),
    Writer("Parquet", "PyArrow, in folders", in_folders, "path: group=*/data.parquet"),
    *(
        Writer("Parquet", f"Spark, {kind}", write, "path: data/*.parquet", java)
        for kind, write in _SPARKS.items()
    ),
    Writer("Arrow", "PyArrow", by_feather, "path: data.arrow"),
    Writer("Arrow", "PyArrow, zstd", by_feather_packed, "path: data.arrow"),
    Writer("Arrow", "polars", by_polars_to_arrow, "path: data.arrow"),
    Writer("Delta", "delta-rs", by_delta, "path: table, format: delta"),
    Writer("Iceberg", "PyIceberg", by_iceberg, "path: lake/n/table, format: iceberg"),
    Writer("DuckDB table", "DuckDB", to_database, "path: data.duckdb, table: records"),
)
