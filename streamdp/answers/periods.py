"""Periods of the calendar, by the clocks of a time zone, and the batches that lie in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from streamdp.errors import QuestionError
from streamdp.types import Batch
from streamdp.zones import first_shown

Step = Literal["day", "week", "month", "quarter", "year"]

_ROLLING = re.compile(r"(?:last |rolling )?([1-9]\d{0,3})d(?:ays)?")
AROUND = 60
"""Batches before and behind a period that are read with it."""

FORMS = "2013-06-03, 2013-W22, 2013-06, 2013-Q2, 2013, 2013-06-03..2013-07-15, 28d, all"


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time, half open.

    Args:
        name: As it is printed.
        since: First second (POSIX time).
        until: Second after its last.
    """

    name: str
    since: int
    until: int


def period(text: str, zone: str, first: int, last: int) -> Period:
    """The period that a text names.

    >>> period("2013-W22", "UTC", 0, 0)
    Period(name='2013-W22', since=1369612800, until=1370217600)

    Args:
        text: One of `FORMS`; `28d` ends with the last batch.
        zone: Whose days are meant.
        first: First second of the first batch that there is.
        last: Second after the last one.

    Raises:
        QuestionError: It names none.
    """
    text = text.strip()
    if text == "all":
        return Period("all", first, last)
    if match := _ROLLING.fullmatch(text):
        end = datetime.fromtimestamp(last, ZoneInfo(zone)).date()
        return _between(text, end - timedelta(days=int(match[1])), end, zone)
    if ".." in text:
        one, _, other = text.partition("..")
        (begin, _), (_, end) = _days(one.strip()), _days(other.strip())
        if begin >= end:
            raise QuestionError(f"{text!r} ends before it begins")
        return _between(text, begin, end, zone)
    return _between(text, *_days(text), zone)


def every(step: Step, whole: Period, zone: str) -> tuple[Period, ...]:
    """The days, weeks, months... that lie wholly in a period."""
    each, found = holding(step, whole.since, zone), list[Period]()
    while each.since < whole.until:
        if each.since >= whole.since and each.until <= whole.until:
            found.append(each)
        each = holding(step, each.until, zone)
    return tuple(found)


def holding(step: Step, moment: int, zone: str) -> Period:
    """The day, week, month... that a moment lies in.

    >>> holding("week", 1369612800, "UTC").name
    '2013-W22'
    """
    day = _floor(step, datetime.fromtimestamp(moment, ZoneInfo(zone)).date())
    days = {"day": 1, "week": 7, "month": 31, "quarter": 93, "year": 366}[step]
    return _between(_name(step, day), day, _floor(step, day + timedelta(days=days)), zone)


def rolling(days: int, ends: Sequence[int], zone: str) -> Iterator[Period]:
    """The last so many days before each midnight at which a batch ends, in order.

    >>> [each.name for each in rolling(7, [1369612800, 1369620000], "UTC")]
    ['2013-05-20..2013-05-26']

    Args:
        days: How many.
        ends: Of batches (POSIX seconds).
        zone: Whose midnights.
    """
    there = ZoneInfo(zone)
    for end in sorted(set(ends)):
        day = datetime.fromtimestamp(end, there).date()
        if _moment(day, zone) == end:
            first, last = day - timedelta(days=days), day - timedelta(days=1)
            yield _between(f"{first}..{last}", first, day, zone)


def gaps(batches: Sequence[Batch], within: Period) -> tuple[tuple[int, int], ...]:
    """Stretches of a period that no batch is of.

    Args:
        batches: With windows, in order, all within the period.
        within: The period.
    """
    at, found = within.since, []
    for each in batches:
        if each.start is not None and each.start > at:
            found.append((at, each.start))
        at = max(at, each.end or at)
    return (*found, (at, within.until)) if at < within.until else tuple(found)


def _between(name: str, begin: date, end: date, zone: str) -> Period:
    return Period(name, _moment(begin, zone), _moment(end, zone))


def _moment(day: date, zone: str) -> int:
    wall = datetime(day.year, day.month, day.day)  # noqa: DTZ001
    if zone == "UTC":
        return int(wall.replace(tzinfo=UTC).timestamp())
    return first_shown(wall, ZoneInfo(zone))


def _days(text: str) -> tuple[date, date]:
    """First day, and the day after the last."""
    try:
        if match := re.fullmatch(r"(\d{4})-W(\d{1,2})", text):
            monday = date.fromisocalendar(int(match[1]), int(match[2]), 1)
            return monday, monday + timedelta(days=7)
        if match := re.fullmatch(r"(\d{4})-Q([1-4])", text):
            begin = date(int(match[1]), 3 * int(match[2]) - 2, 1)
            return begin, _floor("quarter", begin + timedelta(days=93))
        if match := re.fullmatch(r"(\d{4})-(\d\d)", text):
            begin = date(int(match[1]), int(match[2]), 1)
            return begin, _floor("month", begin + timedelta(days=31))
        if match := re.fullmatch(r"(\d{4})", text):
            return date(int(match[1]), 1, 1), date(int(match[1]) + 1, 1, 1)
        begin = date.fromisoformat(text)
    except (ValueError, OverflowError):
        raise QuestionError(f"{text!r} is no period", hint=f"write one of {FORMS}") from None
    return begin, begin + timedelta(days=1)


def _floor(step: Step, day: date) -> date:
    """The first day of the week, month... that a day lies in."""
    match step:
        case "day":
            return day
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case "year":
            return day.replace(day=1, month=1)


def _name(step: Step, day: date) -> str:
    match step:
        case "day":
            return day.isoformat()
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year}-W{week:02}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "year":
            return f"{day.year:04}"
