"""Values of each type, hundreds at once, with the ones that break engines among them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streamdp.types import Grid

HOW_MANY = 200

ODD_DOUBLES = [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, -5e-324, 0.5, 1.5, -0.5]
ODD_DOUBLES += [2.5, 0.49999999999999994, 1.7976931348623157e308, 2.0**53 + 2, 0.145, 1.005, 1e16]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DOUBLES = st.floats() | st.sampled_from(ODD_DOUBLES) | st.floats(-1e4, 1e4)
HALVES = st.integers(-(10**6), 10**6).map(lambda k: k / 2)
SINGLES = st.floats(width=32)
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000) | st.just(2**53 + 1)
NARROW = st.decimals(Decimal("-9999999.99"), Decimal("9999999.99"), places=2)
WIDE = st.integers(-(10**37), 10**37).map(lambda k: Decimal(k).scaleb(-10)) | st.decimals(
    -1000, 1000, places=10
)
TIMESTAMPS = st.datetimes(datetime(1600, 1, 1), datetime(9999, 1, 1))  # noqa: DTZ001
ZONED = st.datetimes(datetime(1600, 1, 1), datetime(9000, 1, 1)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)
DATES = st.dates(date(1600, 1, 1), date(9999, 1, 1))
SPANS = st.integers(0, 10**13).map(lambda k: timedelta(milliseconds=k))
"""Parquet keeps milliseconds of a duration, and none below zero."""

KINDS = {
    "DOUBLE": DOUBLES | HALVES,
    "FLOAT": SINGLES,
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "BIGINT": INTEGERS,
    "HUGEINT": st.integers(-(10**37), 10**37),
    "DECIMAL(9,2)": NARROW,
    "DECIMAL(38,10)": WIDE,
    "TIMESTAMP": TIMESTAMPS,
    "TIMESTAMPTZ": ZONED,
    "DATE": DATES,
    "INTERVAL": SPANS,
}
"""Strategies by DuckDB's name of the type."""

GRIDS = [
    Grid(Fraction(1), -(2**46), 2**46),
    Grid(Fraction(1, 100), -(2**46), 2**46),
    Grid(Fraction(1, 3), -1000, 1000),
    Grid(Fraction(5), -1000, 10**6),
    Grid(Fraction(1, 10**9), -(2**46), 2**46),
    Grid(Fraction(10**18, 7), -(2**40), 2**40),
]

UNITS: dict[str, list[Any]] = {
    "VARCHAR": [None, "", "a", "ä", "日本", "a b", "'", "A", "\U0001f600"],
    "BIGINT": [None, 0, -1, 7, 2**62],
    "DOUBLE": [None, 0.0, -0.0, 1.5, math.nan, math.inf, -1e300],
    "DECIMAL(9,2)": [None, Decimal("1.50"), Decimal("-0.01"), Decimal(3)],
    "BOOLEAN": [None, True, False],
    "DATE": [None, date(1969, 12, 31), date(2024, 2, 29)],
    "TIMESTAMP": [None, datetime(1969, 12, 31, 23), datetime(2024, 2, 29, 1, 2, 3, 4)],  # noqa: DTZ001
    "BLOB": [None, b"", b"\x00\xff", b"abc"],
}
"""Units by type."""


def columns(kind: str) -> st.SearchStrategy[list[object]]:
    """Values of one type, a null among them now and then."""
    values = st.none() | KINDS[kind] | KINDS[kind]
    return st.lists(values, min_size=HOW_MANY, max_size=HOW_MANY)


def same(values: list[object], kind: str) -> list[object]:
    """As the type stores them: FLOAT is rounded before anybody sees it."""
    if kind != "FLOAT":
        return values
    return [v if v is None else float(np.float32(v)) for v in values]  # type: ignore[arg-type]
