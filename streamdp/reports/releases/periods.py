"""Stretches of the calendar, by the clocks of the time zone of the batches."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from streamdp.answers.periods import Step, holding
from streamdp.store.reading.browse import WindowRange

Period = Literal["day", "week", "month", "quarter", "year", "all"]


def period_of(moment: int, period: Period, zone: str = "UTC") -> WindowRange:
    """The day, week, month… that a moment lies in.

    >>> period_of(0, "week"), period_of(0, "day", "Europe/Berlin")
    (WindowRange(since=-259200, until=345600), WindowRange(since=-3600, until=82800))
    """
    if period == "all":
        return WindowRange()
    found = holding(period, moment, zone)
    return WindowRange(found.since, found.until)


def day_of(moment: int, zone: str = "UTC") -> str:
    """The day that a moment lies in, as it is written in the name of a file.

    >>> day_of(0), day_of(-3600, "Europe/Berlin")
    ('1970-01-01', '1970-01-01')
    """
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).date().isoformat()


def in_words(moment: int, step: Step, zone: str) -> str:
    """The period that a moment lies in, as people say it.

    >>> in_words(1363046400, "week", "UTC"), in_words(1363046400, "quarter", "UTC")
    ('the week of Monday 11 March 2013', 'January to March 2013')
    """
    first = datetime.fromtimestamp(holding(step, moment, zone).since, ZoneInfo(zone))
    match step:
        case "day":
            return f"{first:%A} {first.day} {first:%B %Y}"
        case "week":
            return f"the week of {first:%A} {first.day} {first:%B %Y}"
        case "month":
            return f"{first:%B %Y}"
        case "quarter":
            return f"{first:%B} to {first.replace(month=first.month + 2, day=1):%B %Y}"
        case "year":
            return f"{first:%Y}"
