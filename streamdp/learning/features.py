"""Public features of a batch: what may be known about it before its data are touched.

Each feature is a function of the batch's public key and window alone, as clocks of the source's
time zone show it; a file has the date in its key, if there is one, for its window. Columns of a
public table are looked up by the key. All are scaled to about [-1, 1], so that a coefficient has
the size of what it explains.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime

from streamdp.types import Batch

Feature = Callable[[Batch], tuple[float, ...]]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

NUMBERS: dict[str, tuple[str, ...]] = {
    "weekday": _DAYS[1:],
    "month": _MONTHS[1:],
    "hour": ("hour, sine", "hour, cosine"),
    "season": ("season, sine", "season, cosine"),
    "trend": ("year",),
    "holidays": ("holiday", "day before a holiday", "day after a holiday"),
}
"""Names of the numbers of each feature that has more or other ones than its own."""

_HOUR = 3_600
_DAY = 86_400
_YEAR = 365.2425 * _DAY
_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


def weekday(batch: Batch) -> tuple[float, ...]:
    """Six indicators, Tuesday to Sunday; a Monday has none of them."""
    day = _start(batch).weekday()
    return tuple(float(day == each) for each in range(1, 7))


def month(batch: Batch) -> tuple[float, ...]:
    """Eleven indicators, February to December."""
    return tuple(float(_start(batch).month == each) for each in range(2, 13))


def hour(batch: Batch) -> tuple[float, ...]:
    """Place in the day, on a circle."""
    return _circle(_seconds(batch) % _DAY / _DAY)


def season(batch: Batch) -> tuple[float, ...]:
    """Place in the year, on a circle."""
    return _circle(_seconds(batch) % _YEAR / _YEAR)


def calendar(batch: Batch) -> tuple[float, ...]:
    """Return the periodic position of a window: its weekday, its hour, or its part of the year.

    Days have six indicators; shorter windows two circles of the day and the weekend's indicator;
    months two circles of the year. A file with a date in its key is a day. Others have nothing.
    """
    if batch.start is None or batch.end is None:
        return weekday(batch) if _DATE.search(batch.key) else ()
    length = batch.end - batch.start
    if 20 * _HOUR <= length <= 28 * _HOUR:
        return weekday(batch)
    if length <= 12 * _HOUR:
        day = _seconds(batch) % _DAY / _DAY
        weekend = float(_start(batch).weekday() >= 5)
        return (*_circle(day), *_circle(2.0 * day), weekend)
    if 27 * _DAY <= length <= 32 * _DAY:
        year = _seconds(batch) % _YEAR / _YEAR
        return (*_circle(year), *_circle(2.0 * year))
    return ()


def calendar_names(batch: Batch) -> tuple[str, ...]:
    """Return what the numbers of `calendar` are called for a batch."""
    names = {
        6: NUMBERS["weekday"],
        5: ("hour, sine", "hour, cosine", "hour, sine twice", "hour, cosine twice", "weekend"),
        4: ("season, sine", "season, cosine", "season, sine twice", "season, cosine twice"),
    }
    return names.get(len(calendar(batch)), ())


def clock(batch: Batch) -> str:
    """Return the weekday and date of a batch, and the time at which it begins if that is another.

    Empty where nothing says when it was.
    """
    if not _seconds(batch):
        return ""
    start = _start(batch)
    time = "" if start.hour == start.minute == 0 else f" {start:%H:%M}"
    return f"{_DAYS[start.weekday()]} {start:%Y-%m-%d}{time}"


def trend(origin: int) -> Feature:
    """Years since `origin` (POSIX seconds)."""
    return lambda batch: ((_seconds(batch) - origin) / _YEAR,)


def holidays(days: Collection[date]) -> Feature:
    """Indicators of a holiday, of the day before one and of the day after."""

    def feature(batch: Batch) -> tuple[float, ...]:
        ordinal = _start(batch).date().toordinal()
        return tuple(float(date.fromordinal(ordinal + step) in days) for step in (0, 1, -1))

    return feature


def table(rows: Mapping[str, tuple[float, ...]], count: int) -> Feature:
    """Columns of a public table by batch key, standardised; zeros where a key or number is missing.

    Args:
        rows: Numbers of each key, shape (count,).
        count: Number of columns; a table may have no row yet.
    """
    columns = list(zip(*rows.values(), strict=True)) or [()] * count
    scales = [_standard(column) for column in columns]

    def feature(batch: Batch) -> tuple[float, ...]:
        row = rows.get(batch.key, (math.nan,) * count)
        standard = zip(row, scales, strict=True)
        return tuple(
            (number - mean) / spread if math.isfinite(number) and spread > 0.0 else 0.0
            for number, (mean, spread) in standard
        )

    return feature


def together(features: tuple[Feature, ...]) -> Feature:
    """All numbers of several features in one tuple."""
    return lambda batch: tuple(number for each in features for number in each(batch))


def _standard(column: tuple[float, ...]) -> tuple[float, float]:
    known = [number for number in column if math.isfinite(number)]
    if not known:
        return 0.0, 0.0
    mean = math.fsum(known) / len(known)
    return mean, math.sqrt(math.fsum((number - mean) ** 2 for number in known) / len(known))


def _seconds(batch: Batch) -> int:
    if batch.wall is not None:
        return batch.wall[0]
    if batch.start is not None:
        return batch.start
    for year, month, day in _DATE.findall(batch.key):
        try:
            return int(datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp())
        except ValueError:
            continue
    return 0


def _start(batch: Batch) -> datetime:
    return datetime.fromtimestamp(_seconds(batch), UTC)


def _circle(share: float) -> tuple[float, float]:
    return math.sin(2.0 * math.pi * share), math.cos(2.0 * math.pi * share)
