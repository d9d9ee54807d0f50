"""Values with a unit or an exact meaning: durations, sizes, moments, rationals."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from streamdp.privacy.amounts import exact
from streamdp.text import YEARS
from streamdp.zones import known_zone

_NUMBER = re.compile(r"[-+]?(0|[1-9]\d{0,29})(\.\d{0,30})?([eE][-+]?\d{1,3})?(/\d{1,30})?")
"""Short enough to be exact: an exponent of nine digits would fill the memory."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 36_500 * 86_400
"""Seconds of a duration; added to any moment it is one that calendars know."""

_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}


def _duration(value: Any) -> int:
    """Seconds of a text like 30s, 15m, 6h, 1d or 1w."""
    match = re.fullmatch(r"(\d{1,9})\s*([smhdw])", value.strip()) if _is_text(value) else None
    if match is None:
        raise ValueError("a duration is a whole number with a unit: 30s, 15m, 6h, 1d or 1w")
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds > LONGEST:
        raise ValueError("a duration is at most 100 years: 36500d")
    return seconds


def _mode(value: Any) -> int:
    """Permissions of a text like 0644, which its owner can read and write."""
    match = re.fullmatch(r"0?([67][0-7][0-7])", str(value).strip())
    if match is None:
        raise ValueError("permissions are three octal digits that let the owner write: 0644")
    return int(match[1], 8)


def _positive_duration(value: Any) -> int:
    seconds = _duration(value)
    if seconds == 0:
        raise ValueError("this duration must be longer than nothing")
    return seconds


def _size(value: Any) -> int:
    match = (
        re.fullmatch(r"(\d{1,9})\s*([kmg]?b)", value.strip().lower()) if _is_text(value) else None
    )
    if match is None:
        raise ValueError("a size is a whole number with a unit: 500 kB, 10 MB, 1 GB")
    return int(match[1]) * _BYTES[match[2]]


def _moment(value: Any) -> int:
    """POSIX seconds of an ISO date or time; UTC unless it names an offset."""
    try:
        parsed = datetime.fromisoformat(value) if _is_text(value) else None
    except ValueError:
        parsed = None
    if parsed is None:
        raise ValueError("a moment is an ISO date or time: 2013-01-01 or 2013-01-01T06:00:00Z")
    if parsed.year not in YEARS:
        raise ValueError(f"a moment is of the years {YEARS[0]} to {YEARS[-1]}")
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp())


def _rational(value: Any) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction):
        raise ValueError("this must be a number")
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError("this must be a number, such as 0.1 or 1/3")
    try:
        number = exact(value)
    except ValueError:
        raise ValueError("this must be a finite number") from None
    if number.denominator > 10**30 or abs(number) > 10**30:
        raise ValueError("this number is above 10^30, or finer than 10^-30")
    return number


def _positive(value: Any) -> Fraction:
    number = _rational(value)
    if number <= 0:
        raise ValueError("this must be more than 0")
    return number


def _finite(value: Any) -> float:
    number = float(_rational(value))
    if not math.isfinite(number):
        raise ValueError("this must be a finite number")
    return number


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, date)


_NUMBER_SCHEMA = WithJsonSchema({"type": ["number", "string"]})

Duration = Annotated[
    int,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\s*[smhdw]$", "examples": ["6h"]}),
]
"""Seconds; written 30s, 15m, 6h, 1d, 1w."""

PositiveDuration = Annotated[
    int,
    BeforeValidator(_positive_duration),
    WithJsonSchema({"type": "string", "pattern": r"^[1-9]\d*\s*[smhdw]$", "examples": ["1d"]}),
]
"""A duration that is not 0."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\s*(B|kB|MB|GB)$", "examples": ["10 MB"]}),
]
"""Bytes; written 500 kB, 10 MB."""

Moment = Annotated[
    int, BeforeValidator(_moment), WithJsonSchema({"type": "string", "examples": ["2013-01-01"]})
]
"""POSIX seconds; written as an ISO date or time, in UTC unless it names an offset."""

FileMode = Annotated[
    int,
    BeforeValidator(_mode),
    WithJsonSchema({"type": "string", "pattern": "^0?[67][0-7][0-7]$", "examples": ["0644"]}),
]
"""Permissions of a file; written as chmod takes them."""

Rational = Annotated[Fraction, BeforeValidator(_rational), _NUMBER_SCHEMA]
"""The exact number that was written: 0.1 is one tenth."""

PositiveRational = Annotated[Fraction, BeforeValidator(_positive), _NUMBER_SCHEMA]
"""An exact number above 0."""

Finite = Annotated[float, BeforeValidator(_finite), _NUMBER_SCHEMA]
"""A finite floating-point number."""

TimeZone = Annotated[str, AfterValidator(known_zone)]
"""Name of a time zone that is known."""
