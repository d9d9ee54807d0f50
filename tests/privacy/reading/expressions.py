"""Conditions and expressions over whole numbers, decimals, dates and times of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.privacy.reading.pairs import Pair

ROWS = 300
DAY = "{column: t, every: 1d, start: 2024-01-01, end: 2024-01-02}"
KINDS: Mapping[str, pa.DataType] = {
    "qty": pa.int32(),
    "price": pa.int32(),
    "big": pa.int64(),
    "amount": pa.decimal128(9, 2),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "late": pa.bool_(),
    "name": pa.string(),
}
PLAIN: Mapping[str, Any] = {
    "qty": 2, "price": 3, "big": 5, "amount": 700, "day": 19_723, "at": 1_704_067_200_000_000,
    "late": True, "name": "true",
}  # fmt: skip
"""An ordinary record; dates, times and decimals as the integers they are stored as."""

RECORDS: Mapping[str, Mapping[str, Any]] = {
    "overflowing product": {"qty": 50_000, "price": 50_000, "big": 4_000_000_000},
    "largest": {"qty": 2**31 - 1, "price": 2**31 - 1, "big": 2**63 - 1, "amount": 10**9 - 1},
    "least": {"qty": -(2**31), "price": -(2**31), "big": -(2**63), "amount": 1 - 10**9},
    "zeros": {"qty": 0, "price": 0, "big": 0, "amount": 0},
    "infinite times": {"day": 2**31 - 1, "at": 2**63 - 1},
    "times that are none": {"day": -(2**31), "at": -(2**63)},
    "text that is no truth value": {"name": "maybe"},
    "nulls": dict.fromkeys(KINDS),
}

MEAN = "measures: {m: {sum: {sql: %s}, resolution: 1, bounds: [0, 1]}}"
COUNT = "measures: {m: {count: {sql: %s}}}"
WHERE = "measures: {records: count}, where: %s"

RELEASES: Mapping[str, str] = {
    "a quotient": MEAN % "amount / (qty * price)",
    "a logarithm": MEAN % "ln(big * big)",
    "a product between": COUNT % "qty * price BETWEEN 1 AND 100",
    "a constant beyond the type": COUNT % "qty BETWEEN 1 AND 99999999999999999999",
    "a long list": COUNT % '"qty * price IN (6, 7, 8, 9, 10, 11, 12, 13)"',
    "a shared product": "measures: {a: {sum: {sql: qty * price}, resolution: 1, bounds: [0, 1]},"
    " b: {count: {sql: qty * price > 0}}}",
    "an axis": "measures: {h: {histogram: {sql: big * big}, cuts: [0, 50], nulls: cell}}",
    "a condition": WHERE % "1 / (big * big - big) > 0 OR late",
    "a cast to true or false": WHERE % "CAST(name AS BOOLEAN)",
    "a cast of a time": COUNT % "CAST(at AS TIMESTAMPTZ) >= CAST(at AS DATE)",
    "a part of a date": COUNT % "extract(epoch FROM day) > extract(year FROM day)",
}
"""Releases that are served."""

REFUSED: Mapping[str, str] = {
    "text": WHERE % "name",
    "a date": WHERE % "day",
    "a number": WHERE % "qty",
    "text within CASE": MEAN % "CASE WHEN name THEN 1 ELSE 0 END",
    "a number within AND": WHERE % "late AND qty",
    "a zone of a date": COUNT % "extract(timezone FROM day) > 0",
}
"""Releases that are refused whatever the records are."""


def _array(name: str, values: list[Any]) -> pa.Array:
    kind = KINDS[name]
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.int64()).cast(pa.decimal128(19, 0)).cast(kind, safe=False)
    stored = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(kind)
    return pa.array(values, kind) if stored is None else pa.array(values, stored).view(kind)


def _pair(role: str, release: str, record: str, *, served: bool) -> Pair:
    def write(folder: Path, extra: bool) -> None:
        rows = [PLAIN] * ROWS + [{**PLAIN, **RECORDS[record]}] * extra
        columns = {name: _array(name, [row[name] for row in rows]) for name in KINDS}
        columns["t"] = pa.array([PLAIN["at"]] * len(rows), pa.int64()).view(KINDS["at"])
        pq.write_table(pa.table(columns), folder / "data.parquet", row_group_size=100)

    return Pair(
        format="expressions",
        writer="PyArrow, Parquet",
        role=role,
        record=record,
        write=write,
        source=f"path: data.parquet, batches: {DAY}",
        release=release,
        base=("expressions", role),
        most=2 if role == "a shared product" else 1,
        served=served,
    )


def pairs(quick: bool) -> Iterator[Pair]:
    """Each release with each record; the short profile takes what was ever told apart."""
    few = ("overflowing product", "times that are none")
    for record in few if quick else RECORDS:
        for role, release in RELEASES.items():
            yield _pair(role, release, record, served=True)
    for record in ("text that is no truth value",) if quick else RECORDS:
        for role, release in REFUSED.items():
            yield _pair(role, release, record, served=False)
