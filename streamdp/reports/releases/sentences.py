"""Numbers, intervals and changes in words, the same in answers, reports and on the page.

No import of what computes them: whoever says a change may do without SciPy.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from streamdp.answers.periods import Step, holding
from streamdp.store.reading.browse import WindowRange


def of_width(width: float) -> int:
    """Digits after the point that an interval supports; below 0 it supports tens or hundreds.

    >>> of_width(36.0), of_width(0.09), of_width(4100.0)
    (0, 3, -2)
    """
    return 1 - math.floor(math.log10(width))


def of_size(number: float, digits: int) -> int:
    """Digits after the point of a number, not 0, that has so many digits in all.

    >>> of_size(131.7, 3), of_size(-0.0952, 2)
    (0, 3)
    """
    return digits - 1 - math.floor(math.log10(abs(number)))


def from_0_on(value: float, lower: float, upper: float) -> tuple[float, float, float] | None:
    """What is never negative as people are told it; None where noise took all of it below 0.

    >>> from_0_on(3.0, -2.0, 8.0), from_0_on(-1.0, -4.0, 2.0), from_0_on(-9.0, -12.0, -6.0)
    ((3.0, 0.0, 8.0), (0.0, 0.0, 2.0), None)
    """
    if upper < 0:
        return None
    return max(value, 0.0), max(lower, 0.0), max(upper, 0.0)


def written(number: float, digits: int) -> str:
    """A number with so many digits after the point; nought has no sign.

    >>> written(1234.56, 1), written(1234.56, -2), written(-0.2, 0)
    ('1,234.6', '1,200', '0')
    """
    return f"{round(number, digits) + 0.0:,.{max(digits, 0)}f}"


SINGULAR = {
    f"{each}s": each
    for each in ("record", "second", "minute", "hour", "day", "week", "month", "year")
}
"""Units of one, of those whose letter s is surely that of several."""

CLEAR = 0.95
"""Probability that the records changed from which on a change has a direction."""


def change_said(
    name: str,
    change: float,
    lower: float,
    upper: float,
    unit: str = "",
    differ: float | None = None,
    rose: float | None = None,
) -> str:
    """A change with its interval; no direction where the interval, or its probability, has none.

    >>> change_said("median", 6.2, 2.1, 10.3, "minutes"), change_said("flights", -3.0, -20.0, 14.0)
    ('median rose by 6.2 minutes (2.1 to 10.3)', 'flights: no clear change, 20 less to 14 more')

    Args:
        name: Of what changed.
        change: The change.
        lower: Lower end of its interval.
        upper: Upper end.
        unit: Of the change; empty without one.
        differ: Probability that the records changed; None where it is not measured.
        rose: Probability that what makes the records rose. With it both chances follow.
    """
    chance = doubt = ""
    if differ is not None and rose is not None:
        chance, doubt = f"; {chances(differ, rose)}", f"; {_in_doubt(differ)}"
    if lower <= 0 <= upper:
        _, less, more = amounts(change, lower, upper)
        least = counted(less.lstrip("-"), unit)
        return f"{name}: no clear change, {least} less to {more} more{doubt}"
    up = lower > 0
    low, high = (lower, upper) if up else (-upper, -lower)
    by, least, most = amounts(abs(change), low, high)
    if differ is not None and differ < CLEAR:
        way = "more" if up else "less"
        return f"{name}: no clear change, {least} to {counted(most, unit)} {way}{doubt}"
    return f"{name} {'rose' if up else 'fell'} by {counted(by, unit)} ({least} to {most}){chance}"


def counted(number: str, unit: str) -> str:
    """A number with its unit, of one record without an s.

    >>> counted("1", "records"), counted("2", "records"), counted("1", "mmHg"), counted("7", "")
    ('1 record', '2 records', '1 mmHg', '7')
    """
    return f"{number} {SINGULAR.get(unit, unit) if number == '1' else unit}".rstrip()


def chances(differ: float, rose: float) -> str:
    """How likely it is that the records changed, and that they rose or fell beyond ups and downs.

    >>> chances(0.993, 0.086)
    'chance that the records changed 99 in 100, that they fell beyond usual ups and downs 91 in 100'

    Args:
        differ: Probability that the records of the two periods differ.
        rose: Probability that what makes the records rose.
    """
    verb, likely = ("rose", rose) if rose >= 0.5 else ("fell", 1.0 - rose)
    return (
        f"chance that the records changed {in_100(differ)} in 100,"
        f" that they {verb} beyond usual ups and downs {in_100(likely)} in 100"
    )


def _in_doubt(differ: float) -> str:
    """Why a change has no direction, by how likely it is that the records changed.

    >>> _in_doubt(0.83)
    'chance that the records changed 83 in 100, and 95 are needed to say so'
    """
    why = "and 95 are needed to say so" if differ < CLEAR else "but the interval has 0 in it"
    return f"chance that the records changed {in_100(differ)} in 100, {why}"


def in_100(chance: float) -> int:
    """A probability in words: rounded down, and neither never nor always.

    >>> in_100(0.9999), in_100(0.0), in_100(0.868)
    (99, 1, 86)
    """
    return min(max(int(100 * chance), 1), 99)


def sure_said(level: float | None) -> str:
    """How sure a range is, as the one figure that stands beside it; empty where none is known.

    >>> sure_said(0.95), sure_said(0.9), sure_said(None)
    ('19 in 20', '90 in 100', '')
    """
    if level is None:
        return ""
    return "19 in 20" if level == 0.95 else f"{100 * level:.4g} in 100"


def range_said(level: float | None, shown: str = "") -> str:
    """What the range beside a number is good for, in one sentence; empty where none is known.

    >>> range_said(0.95, "120 to 142")
    '19 of 20 ranges like 120 to 142 are meant to hold what the records themselves say.'
    """
    of = sure_said(level).replace(" in ", " of ")
    like = f" like {shown}" if shown else ""
    return f"{of} ranges{like} are meant to hold what the records themselves say." if of else ""


def amounts(
    value: float, lower: float, upper: float, most: int | None = None
) -> tuple[str, str, str]:
    """A value and the ends of its interval, to two digits of the interval's width.

    More where the value, or an end of more than 1, would be nought; none that are all noughts.

    >>> amounts(6.02, 2.1, 10.4), amounts(138.0, 134.0, 142.0), amounts(139.0, 1.3, 277.0)
    (('6.0', '2.1', '10.4'), ('138', '134', '142'), ('139', '1', '277'))

    Args:
        value: The value.
        lower: Lower end of its interval.
        upper: Upper end.
        most: Digits after the point that others beside it have; it has more only where an
            interval without 0 would else reach it.
    """
    digits = digits_of_amounts(value, lower, upper)
    if most is not None:
        nearest = min(abs(lower), abs(upper)) if lower * upper > 0 else 1.0
        digits = min(digits, max(most, of_size(nearest, 1), 0))
    return written(value, digits), written(lower, digits), written(upper, digits)


def digits_of_amounts(value: float, lower: float, upper: float) -> int:
    """Digits after the point of a value and its interval, as `amounts` writes them."""
    three = (value, lower, upper)
    if not all(map(math.isfinite, three)):
        return 0
    width = abs(upper - lower) or max(map(abs, three)) / 100
    digits = of_width(width) if width else 0
    if value:
        digits = max(digits, of_size(value, 1))
    least = min(filter(None, map(abs, three)), default=1.0)
    digits = max(digits, min(of_size(least, 1), 0))
    while digits > 0 and all(round(each, digits) == round(each, digits - 1) for each in three):
        digits -= 1
    return digits


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


def dates_in_words(moment: int, step: Step, zone: str) -> str:
    """The dates of the period that a moment lies in, as the head of a column.

    >>> dates_in_words(1363046400, "week", "UTC"), dates_in_words(1388448000, "week", "UTC")
    ('11 to 17 March 2013', '30 December 2013 to 5 January 2014')
    """
    if step != "week":
        return period_in_words(moment, step, zone)
    week = holding(step, moment, zone)
    first, last = (
        datetime.fromtimestamp(each, ZoneInfo(zone)) for each in (week.since, week.until - 1)
    )
    since = f"{first.day}" if first.month == last.month else f"{first.day} {first:%B}"
    since += f" {first:%Y}" if first.year != last.year else ""
    return f"{since} to {last.day} {last:%B %Y}"


def period_in_words(moment: int, step: Step, zone: str) -> str:
    """The period that a moment lies in, as people say it.

    >>> period_in_words(1363046400, "week", "UTC"), period_in_words(1363046400, "quarter", "UTC")
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
