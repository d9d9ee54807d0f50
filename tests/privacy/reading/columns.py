"""Files and tables of columns: Parquet and Arrow by their writers, folders, Delta, Iceberg, DuckDB.

The ordinary records and the hostile one are Arrow arrays, so that a hostile value may be one that
no writer would make of an object: a text that is no UTF-8, a time that no clock shows, a decimal of
more digits than its type has.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.privacy.reading.pairs import Pair
from tests.privacy.reading.writers import WRITERS, Writer

ROWS = 300
GROUPS = ("2024-1-2", "2024-1-3")
"""Texts that a reader may take for dates, until one comes that is none."""

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
    "text, quotes": text(b"\"',''\"\"),('"),
    "text, line ends": text(b"a\r\nb\rc\n"),
    "text, a path": text(b"../%41=b/*"),
    "text, a null of folders": text(b"__HIVE_DEFAULT_PARTITION__"),
    "bytes": pa.array([b"\xff\0"], pa.binary()),
    "bytes, long": pa.array([b"x" * LONG], pa.binary()),
}
NUMBERS: dict[str, Any] = {
    "double, NaN": pa.array([float("nan")]),
    "double, infinite": pa.array([float("-inf")]),
    "double, extreme": pa.array([1.7e308]),
    "integer, extreme": pa.array([-(2**63)]),
    "unsigned, extreme": pa.array([2**64 - 1], pa.uint64()),
    "short, extreme": pa.array([-(2**15)], pa.int16()),
    "float, NaN": pa.array([float("nan")], pa.float32()),
    "decimal of few digits, extreme": pa.array([Decimal("-99999.99")], pa.decimal128(7, 2)),
    "decimal, most negative bits": decimal_bits(b"\0" * 15 + b"\x80", DEEP),
    "decimal, more digits than its type": decimal_bits(b"\xff" * 15 + b"\x7f", DEEP),
    "duration, extreme": bits(2**63 - 1, pa.duration("us")),
    "half, infinite": pa.array([float("inf")], pa.float16()),
    "null": pa.nulls(1, pa.int64()),
}
TIMES: dict[str, Any] = {
    f"{unit} {zone or 'local'}, {ticks}": bits(ticks, pa.timestamp(unit, zone))
    for unit, zone in (
        *(("s", None), ("ms", None), ("ms", "UTC")),
        *(("us", None), ("us", "UTC"), ("ns", None)),
    )
    for ticks in FAR
} | {f"date, {days}": bits(days, pa.date32()) for days in (2**31 - 1, -(2**31))}

NESTED: dict[str, Any] = {
    "list": pa.array([[1, None]] * 2, pa.list_(pa.int64())),
    "list of texts that are no UTF-8": pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.concat_arrays([text(b"\xff")] * 2)
    ),
    "struct": pa.array([{"a": 2**62}] * 2),
    "map": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
    "time of day": pa.array([-1, 2**62]).view(pa.time64("us")),
    "decimal of 76 digits": pa.array([Decimal(1)] * 2, pa.decimal256(76, 0)),
}
"""An ordinary value and a hostile one, of types that are refused where they are named."""


def ordinary(kind: Any, role: str, row: int) -> Any:
    """A value of an ordinary record."""
    if pa.types.is_string(kind):
        return GROUPS[row % 2] if role == "group" else f"u{row}"
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
        beside: An ordinary and a hostile value of one more column, if there is one.
        durations: Whether ordinary values are durations, which readers type otherwise.
    """

    role: str
    value: Any
    beside: Any = None
    durations: bool = False

    def table(self, extra: bool) -> pa.Table:
        """Columns time, value, unit, group and condition; the hostile record in the midst."""
        rows = list(range(ROWS))
        days = [1_767_225_600_000_000 + 86_400_000_000 * (row % 2) for row in rows]
        columns = {
            "time": (days, pa.timestamp("us", "UTC"), days[0]),
            "value": (rows, pa.duration("us") if self.durations else pa.int64(), 7),
            "unit": ([f"u{row}" for row in rows], pa.string(), "new"),
            "group": ([GROUPS[row % 2] for row in rows], pa.string(), GROUPS[0]),
            "condition": ([f"u{row}" for row in rows], pa.string(), "new"),
        }
        if self.role == "condition" and not pa.types.is_string(self.value.type):
            columns["condition"] = (rows, pa.int64(), 7)
        made: dict[str, Any] = {}
        for name, (values, kind, plain) in columns.items():
            around, middle = pa.array(values, kind), pa.array([plain], kind)
            if name == self.role:
                around, middle = self._around(around), self.value
            parts = [around[: ROWS // 2], *([middle] if extra else []), around[ROWS // 2 :]]
            made[name] = pa.concat_arrays(parts)
        if self.beside is not None:
            taken = [0] * (ROWS // 2) + [1] * extra + [0] * (ROWS // 2)
            made["beside"] = self.beside.take(pa.array(taken))
        return pa.table(made)

    def _around(self, values: Any) -> Any:
        """Ordinary values of the hostile one's type."""
        kind = self.value.type
        if self.role != "time" and pa.types.is_temporal(kind):
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return pa.array(range(ROWS), width).view(kind)
        if pa.types.is_timestamp(kind):
            factor = {"s": -6, "ms": -3, "us": 0, "ns": 3}[kind.unit]
            ticks = [
                int(Decimal(each).scaleb(factor)) for each in values.cast(pa.int64()).to_pylist()
            ]
            return pa.array(ticks, pa.int64()).view(kind)
        if pa.types.is_date32(kind):
            days = [each // 86_400_000_000 for each in values.cast(pa.int64()).to_pylist()]
            return pa.array(days, pa.int32()).view(kind)
        return pa.array([ordinary(kind, self.role, row) for row in range(ROWS)], kind)


GROUPED = f'by: [group], groups: ["{GROUPS[0]}", "{GROUPS[1]}"]'
HISTOGRAM = "measures: {h: {histogram: value, cuts: [0, 50], nulls: cell}}"
COUNT = "measures: {records: count}"
ROLES = {
    "value": (HISTOGRAM, "record"),
    "unit": (COUNT, "{name: person, column: unit}"),
    "group": (f"{COUNT}, {GROUPED}", "record"),
    "time": (COUNT, "record"),
    "condition": (f"{COUNT}, where: \"condition <> 'u3'\"", "record"),
}
"""A release that names a column, and the unit of privacy."""

NUMERIC = f"{COUNT}, where: condition > 3"
COMPARED = {name: each for name, each in NUMBERS.items() if "duration" not in name}
"""Durations are no units, and are not compared with numbers: both are refused by type."""

STRINGS = {name: each for name, each in TEXTS.items() if pa.types.is_string(each.type)}
CASES = {
    "value": NUMBERS | TIMES,
    "unit": TEXTS | COMPARED | TIMES,
    "group": STRINGS,
    "time": TIMES,
    "condition": STRINGS | COMPARED,
}
QUICK = {
    "PyArrow / value / decimal, most negative bits",
    "PyArrow / value / duration, extreme",
    "PyArrow / unit / text, no UTF-8",
    "PyArrow / unit / text, long",
    "PyArrow / group / text, no UTF-8, beside durations",
    f"PyArrow / time / ms local, {2**62}",
    "PyArrow / beside / list of texts that are no UTF-8",
    "PyArrow, in folders / group / text, empty",
    "PyArrow, in folders / condition / text, no UTF-8",
    "delta-rs / value / double, NaN",
    "delta-rs / group / text, quotes",
    "DuckDB / group / text, NUL",
}
"""Chosen for the short profile: what told data sets apart, or is read by a reader of its own."""


def pairs(quick: bool) -> Iterator[Pair]:
    """Each hostile value in each role by each writer that can write it."""
    for writer in WRITERS:
        if not quick and not writer.there():
            warnings.warn(f"{writer.name} is not here, and its pairs are left out", stacklevel=2)
            continue
        for pair in pairs_of(writer):
            chosen = pair.name.removeprefix(f"{pair.format} / ")
            if not quick or (chosen in QUICK and pair.format != "Arrow"):
                yield pair


def pairs_of(writer: Writer) -> Iterator[Pair]:
    """Those of one writer."""
    for role, (release, unit) in ROLES.items():
        for name, value in CASES[role].items():
            numeric = role == "condition" and not pa.types.is_string(value.type)
            taken = NUMERIC if numeric else release
            yield _pair(writer, Records(role, value), name, taken, unit)
    for name, value in STRINGS.items():
        records = Records("group", value, durations=True)
        release = f"{HISTOGRAM}, {GROUPED}"
        yield _pair(writer, records, f"{name}, beside durations", release, "record")
    for name, both in NESTED.items():
        records = Records("beside", both[1:], beside=both)
        yield _pair(writer, records, name, HISTOGRAM, "record")
        named = "measures: {h: {histogram: beside, cuts: [0, 50], nulls: cell}}"
        yield _pair(writer, records, f"{name}, named", named, "record", served=False)


def _pair(
    writer: Writer, records: Records, name: str, release: str, unit: str, *, served: bool = True
) -> Pair:
    def write(folder: Path, extra: bool) -> None:
        writer.write(records.table(extra), folder)

    windows = "{column: time, every: 1d, start: 2026-01-01, end: 2026-01-03}"
    kinds = (str(records.value.type), records.durations, served)
    return Pair(
        format=writer.format,
        writer=writer.name,
        role=records.role,
        record=name,
        write=write,
        source=f"{writer.source}, batches: {windows}",
        release=release,
        unit=unit,
        base=(writer.format, writer.name, records.role, *kinds),
        served=served,
        written=lambda: writer.can(records.table(extra=True), records.value),
    )
