"""Scales of a chart: round numbers and round moments that lie within it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

DAY = 86_400
_STEPS = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY)


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from `low` to `high` along pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        """Pixel of a number."""
        share = (number - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def within(self, number: float) -> float:
        """Pixel of a number, or of the end beyond which it lies."""
        return self(min(max(number, self.low), self.high))


def spanning(
    numbers: Iterable[float | None], start: float, end: float, *, zero: bool = False
) -> Scale:
    """A scale that shows all numbers, with some room at both ends; with zero if asked."""
    found = [number for number in numbers if number is not None and math.isfinite(number)]
    low, high = min(found, default=0.0), max(found, default=1.0)
    low = min(low, 0.0) if zero else low
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Scale(low if zero and low == 0 else low - room, high + room, start, end)


def round_numbers(scale: Scale) -> list[float]:
    """About five multiples of 1, 2 or 5 times a power of ten within a scale.

    >>> round_numbers(Scale(0, 103, 0, 1))
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    rough = (scale.high - scale.low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * 0.9)
    first = math.ceil(scale.low / step)
    return [number * step for number in range(first, math.floor(scale.high / step) + 1)]


def round_moments(low: int, high: int) -> list[tuple[int, str]]:
    """About eight round moments from one time to another, and how to write them."""
    rough = max(high - low, 1) / 8
    step = next((each for each in _STEPS if each >= rough), None)
    if step is not None and step < DAY:
        moments: Iterable[int] = range(-(-low // step) * step, high + 1, step)
    else:
        moments = _days(low, high, rough / DAY)
    return [(moment, _written(moment, step)) for moment in moments]


def _days(low: int, high: int, rough: float) -> Iterator[int]:
    """Some days of each month, beginnings of months, or of years."""
    months = next((each for each in (1, 2, 3, 6, 12, 24, 60, 120) if each * 30.4 >= rough), 240)
    days = (1,) if rough > 16 else (1, 15) if rough > 7.5 else (1, 8, 15, 22) if rough > 3 else None
    day = datetime.fromtimestamp(low, UTC).replace(hour=0, minute=0, second=0)
    end = datetime.fromtimestamp(high, UTC)
    every = max(math.ceil(rough), 1)
    while day <= end:
        number = day.year * 12 + day.month - 1
        if days is None:
            wanted = day.toordinal() % every == 0
        else:
            wanted = day.day in days and (len(days) > 1 or number % months == 0)
        if wanted and day.timestamp() >= low:
            yield int(day.timestamp())
        day += timedelta(days=1)


def _written(moment: int, step: int | None) -> str:
    time = datetime.fromtimestamp(moment, UTC)
    if step is not None and step < DAY:
        return time.strftime("%H:%M") if time.hour or time.minute else time.strftime("%-d %b")
    if time.day != 1:
        return time.strftime("%-d %b")
    return time.strftime("%Y") if time.month == 1 else time.strftime("%b")
