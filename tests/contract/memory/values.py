"""Values of records in memory, by the rules that engines follow in SQL."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from streamdp.backends.sql.bound import DIGITS, PARTS
from streamdp.backends.sql.cells import LARGEST
from streamdp.types import UnitBound

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Code = TypeVar("Code", bound=tuple[Any, ...])
"""Key that a record is reduced to; records are in order of it."""


def double_of(value: Any) -> float | None:
    """A value as a double, by the rule of `cells`."""
    if value is None or isinstance(value, float):
        return value
    if isinstance(value, datetime):
        return float(_micros(value)) / 1e6
    if isinstance(value, date):
        return float((value - EPOCH.date()).days) * 86400.0
    if isinstance(value, timedelta):
        return float(value // MICROSECOND) / 1e6
    return float(max(-LARGEST, min(LARGEST, value))) if value == value else math.nan


def canonical(unit: Any) -> str:
    """The text of a unit that its starting point hangs on."""
    if isinstance(unit, datetime):
        return str(_micros(unit))
    if isinstance(unit, date):
        return str((unit - EPOCH.date()).days)
    if isinstance(unit, float | Decimal):
        x = float(unit)
        return str(math.floor(max(-1e15, min(1e15, x))) if x == x else 10**15)
    if isinstance(unit, bytes):
        return unit.hex()
    return str(text_of(unit))


def _micros(value: datetime) -> int:
    at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (at - EPOCH) // MICROSECOND


def text_of(value: Any) -> Any:
    """As engines cast it to text; a null stays one, and is in no group."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def chosen(found: Iterable[tuple[Code, Any]], bound: UnitBound) -> Iterator[tuple[Code, Any]]:
    """Of a unit's n records in order, number j if floor(j·k/n + r) rises with it."""
    units: dict[Any, list[Code]] = {}
    for code, unit in found:
        if unit is not None:
            same = "nan" if isinstance(unit, float) and math.isnan(unit) else (unit,)
            units.setdefault(same, []).append(code)
    for same, codes in units.items():
        text = f"{bound.key}:{canonical(math.nan if same == 'nan' else same[0])}"
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        start, n = int(digest[:DIGITS], 16), len(codes)
        for j, code in enumerate(sorted(codes)):
            before, after = (
                (i * bound.rows * PARTS + n * start) // (n * PARTS) for i in (j, j + 1)
            )
            if n <= bound.rows or after > before:
                yield code, same
