"""Stretches of the calendar, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from streamdp.store.reading.browse import Stretch

Period = Literal["day", "week", "month", "quarter", "year", "all"]


def period_of(moment: int, period: Period) -> Stretch:
    """The day, week, month… that a moment lies in.

    >>> period_of(0, "week")
    Stretch(since=-259200, until=345600)
    """
    if period == "all":
        return Stretch()
    day = datetime.fromtimestamp(moment, UTC).replace(hour=0, minute=0, second=0)
    if period == "day":
        return _stretch(day, day + timedelta(days=1))
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return _stretch(monday, monday + timedelta(days=7))
    months = {"month": 1, "quarter": 3, "year": 12}[period]
    first = day.replace(day=1, month=(day.month - 1) // months * months + 1)
    return _stretch(first, _later(first, months))


def day_of(moment: int) -> str:
    """The day that a moment lies in, as it is written in the name of a file.

    >>> day_of(0)
    '1970-01-01'
    """
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _later(first: datetime, months: int) -> datetime:
    years, month = divmod(first.month - 1 + months, 12)
    return first.replace(year=first.year + years, month=month + 1)


def _stretch(since: datetime, until: datetime) -> Stretch:
    return Stretch(int(since.timestamp()), int(until.timestamp()))
