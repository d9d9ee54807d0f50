"""Files and tables of columns: Parquet by its writers, Arrow, Delta, Iceberg and folders.

The ordinary records and the hostile one are Arrow arrays, so that a hostile value may be one that
no writer would make of an object: a text that is no UTF-8, a time that no clock shows, a decimal of
more digits than its type has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tests.privacy.reading.pairs import Pair

ROWS = 300
LONG = 2**20 + 1


def bits(ticks: int, kind: Any) -> Any:
    """One value by its bits: no Python object stands for most of these."""
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array([ticks], width).view(kind)


def decimal_bits(raw: bytes, kind: Any) -> Any:
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(raw)])


def text(raw: bytes) -> Any:
    return pa.array([raw], pa.binary()).view(pa.string())


FAR = (2**63 - 1, -(2**63), -(2**63) + 2, 2**62, -1)
DEEP = pa.decimal128(38, 10)

TEXTS: dict[str, Any] = {
    "text, long": text(b"x" * LONG),
    "text, empty": text(b""),
    "text, NUL": text(b"a\0b"),
    "text, bidi": text("\u202ea\u2066b".encode()),
    "text, no UTF-8": text(b"a\xff\xfe\x80"),
    "text, question mark": text(b"?"),
    "text, surrogate": text(b"\xed\xa0\x80"),
    "text, half a letter": text(b"u7\xe2\x82"),
    "bytes": pa.array([b"\xff\0"], pa.binary()),
    "bytes, long": pa.array([b"x" * LONG], pa.binary()),
}
NUMBERS: dict[str, Any] = {
    "double, NaN": pa.array([float("nan")]),
    "double, infinite": pa.array([float("-inf")]),
    "double, extreme": pa.array([1.7e308]),
    "integer, extreme": pa.array([-(2**63)]),
    "unsigned, extreme": pa.array([2**64 - 1], pa.uint64()),
    "decimal, most negative bits": decimal_bits(b"\0" * 15 + b"\x80", DEEP),
    "decimal, more digits than its type": decimal_bits(b"\xff" * 15 + b"\x7f", DEEP),
    "duration, extreme": bits(2**63 - 1, pa.duration("us")),
    "half, infinite": pa.array([float("inf")], pa.float16()),
    "null": pa.nulls(1, pa.int64()),
}
TIMES: dict[str, Any] = {
    f"{unit}, {ticks}": bits(ticks, pa.timestamp(unit, zone))
    for unit, zone in (("ms", None), ("ms", "UTC"), ("us", None), ("us", "UTC"), ("ns", None))
    for ticks in FAR
} | {f"date, {days}": bits(days, pa.date32()) for days in (2**31 - 1, -(2**31))}


def ordinary(kind: Any, role: str, row: int) -> Any:
    """A value of an ordinary record."""
    if pa.types.is_string(kind):
        return "ab"[row % 2] if role == "group" else f"u{row}"
    if pa.types.is_binary(kind):
        return f"u{row}".encode()
    if pa.types.is_decimal(kind):
        return Decimal(row)
    return row


@dataclass(frozen=True)
class Records:
    """Ordinary records, and one that is hostile in a column.

    Args:
        role: Column, and the part that it plays.
        value: Hostile one, an array of one value.
    """

    role: str
    value: Any

    def table(self, extra: bool) -> pa.Table:
        """Columns time, value, unit, group and condition; the hostile record in the midst."""
        rows = list(range(ROWS))
        days = [1_767_225_600_000_000 + 86_400_000_000 * (row % 2) for row in rows]
        columns = {
            "time": (days, pa.timestamp("us", "UTC"), days[0]),
            "value": (rows, pa.int64(), 7),
            "unit": ([f"u{row}" for row in rows], pa.string(), "new"),
            "group": (["ab"[row % 2] for row in rows], pa.string(), "a"),
            "condition": ([f"u{row}" for row in rows], pa.string(), "new"),
        }
        if self.role == "condition" and not pa.types.is_string(self.value.type):
            columns["condition"] = (rows, pa.int64(), 7)
        made = {}
        for name, (values, kind, plain) in columns.items():
            around, middle = pa.array(values, kind), pa.array([plain], kind)
            if name == self.role:
                around, middle = self._around(around), self.value
            parts = [around[: ROWS // 2], *([middle] if extra else []), around[ROWS // 2 :]]
            made[name] = pa.concat_arrays(parts)
        return pa.table(made)

    def _around(self, values: Any) -> Any:
        """Ordinary values of the hostile one's type."""
        kind = self.value.type
        if self.role != "time" and pa.types.is_temporal(kind):
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return pa.array(range(ROWS), width).view(kind)
        if pa.types.is_timestamp(kind):
            factor = {"ms": Decimal("0.001"), "us": Decimal(1), "ns": Decimal(1000)}[kind.unit]
            ticks = [int(each * factor) for each in values.cast(pa.int64()).to_pylist()]
            return pa.array(ticks, pa.int64()).view(kind)
        if pa.types.is_date32(kind):
            days = [each // 86_400_000_000 for each in values.cast(pa.int64()).to_pylist()]
            return pa.array(days, pa.int32()).view(kind)
        return pa.array([ordinary(kind, self.role, row) for row in range(ROWS)], kind)


def by_pyarrow(**options: Any) -> Callable[[pa.Table, Path], None]:
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


def by_duckdb(table: pa.Table, folder: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("records", table)
        connection.execute(f"COPY records TO '{folder / 'data.parquet'}' (FORMAT parquet)")


def by_feather(table: pa.Table, folder: Path) -> None:
    with pa.ipc.new_file(folder / "data.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=64)


def in_folders(table: pa.Table, folder: Path) -> None:
    """The group is a folder and no column."""
    for group in ("a", "b"):
        rows = [row for row, each in enumerate(table["group"].to_pylist()) if each == group]
        place = folder / f"group={group}"
        place.mkdir()
        pq.write_table(table.drop_columns("group").take(rows), place / "data.parquet")


def by_delta(table: pa.Table, folder: Path) -> None:
    import deltalake

    for first in (0, ROWS // 2):
        part = table.slice(first, ROWS // 2 if first == 0 else None)
        deltalake.write_deltalake(folder / "table", part, mode="append", partition_by=["group"])


def by_iceberg(table: pa.Table, folder: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    (folder / "lake").mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/lake")
    catalog.create_namespace("n")
    made = catalog.create_table("n.table", table.schema)
    made.append(table)


@dataclass(frozen=True)
class Writer:
    """Who writes a file, and how its source is named."""

    format: str
    name: str
    write: Callable[[pa.Table, Path], None]
    source: str = "path: data.parquet"
    only_sound: bool = False
    """Whether it looks at values, or casts them: then it is given those alone that it can write."""


WRITERS = (
    Writer("Parquet", "PyArrow", by_pyarrow()),
    Writer("Parquet", "PyArrow, plain", by_pyarrow(use_dictionary=False, write_statistics=False)),
    Writer("Parquet", "PyArrow, version 2", by_pyarrow(data_page_version="2.0")),
    Writer("Parquet", "pandas", by_pandas),
    Writer("Parquet", "polars", by_polars, only_sound=True),
    Writer("Parquet", "DuckDB", by_duckdb, only_sound=True),
    Writer("Parquet", "PyArrow, in folders", in_folders, "path: group=*/data.parquet"),
    Writer("Arrow", "PyArrow", by_feather, "path: data.arrow"),
    Writer("Delta", "delta-rs", by_delta, "path: table, format: delta", only_sound=True),
    Writer("Iceberg", "PyIceberg", by_iceberg, "path: lake/n/table, format: iceberg", True),
)

ROLES = {
    "value": ("measures: {h: {histogram: value, cuts: [0, 50], nulls: cell}}", "record"),
    "unit": ("measures: {records: count}", "{name: person, column: unit}"),
    "group": ("measures: {records: count}, by: [group], groups: [a, b]", "record"),
    "time": ("measures: {records: count}", "record"),
    "condition": ("measures: {records: count}, where: \"condition <> 'u3'\"", "record"),
}
NUMERIC = "measures: {records: count}, where: condition > 3"
COMPARED = {name: each for name, each in NUMBERS.items() if "duration" not in name}
"""Durations are no units, and are not compared with numbers: both are refused by type."""

CASES = {
    "value": NUMBERS | TIMES,
    "unit": TEXTS | COMPARED | TIMES,
    "group": {name: each for name, each in TEXTS.items() if pa.types.is_string(each.type)},
    "time": TIMES,
    "condition": {n: e for n, e in TEXTS.items() if pa.types.is_string(e.type)} | COMPARED,
}
QUICK = {
    ("PyArrow", "value", "decimal, most negative bits"),
    ("PyArrow", "value", "duration, extreme"),
    ("PyArrow", "unit", "text, no UTF-8"),
    ("PyArrow", "unit", "text, long"),
    ("PyArrow", "group", "text, no UTF-8"),
    ("PyArrow", "time", f"ms, {2**62}"),
    ("PyArrow, in folders", "condition", "text, no UTF-8"),
    ("delta-rs", "value", "double, NaN"),
}
"""Chosen for the short profile: what told data sets apart, or is read by a reader of its own."""


def pairs(quick: bool) -> Iterator[Pair]:
    """Each hostile value in each role by each writer that can write it."""
    for writer in WRITERS:
        yield from pairs_of(writer, QUICK if quick else None)


def pairs_of(
    writer: Writer, chosen: Collection[tuple[str, str, str]] | None = None
) -> Iterator[Pair]:
    """The same of one writer, or those of them that are chosen."""
    for role, (release, unit) in ROLES.items():
        for name, value in CASES[role].items():
            if chosen is not None and (writer.name, role, name) not in chosen:
                continue
            records = Records(role, value)
            if _can_write(writer, records):
                yield _pair(writer, records, name, release, unit)


def _pair(writer: Writer, records: Records, name: str, release: str, unit: str) -> Pair:
    def write(folder: Path, extra: bool) -> None:
        writer.write(records.table(extra), folder)

    windows = "{column: time, every: 1d, start: 2026-01-01, end: 2026-01-03}"
    numeric = records.role == "condition" and not pa.types.is_string(records.value.type)
    return Pair(
        format=writer.format,
        writer=writer.name,
        role=records.role,
        record=name,
        write=write,
        source=f"{writer.source}, batches: {windows}",
        release=NUMERIC if numeric else release,
        unit=unit,
        base=(writer.format, writer.name, records.role, str(records.value.type)),
    )


def _can_write(writer: Writer, records: Records) -> bool:
    """Whether the writer takes the records; one that looks at values has its own words for it."""
    if not writer.only_sound:
        return True
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as name:
        try:
            records.value.validate(full=True)
            writer.write(records.table(extra=True), Path(name))
        except Exception:  # noqa: BLE001
            return False
    return True
