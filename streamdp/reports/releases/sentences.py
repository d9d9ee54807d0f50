"""Changes between two periods in words, the same in answers, reports and on the page.

No import of what computes them: whoever says a change may do without SciPy.
"""

from __future__ import annotations

import math


def change_said(name: str, change: float, lower: float, upper: float, unit: str = "") -> str:
    """A change with its interval; no direction where the interval reaches both.

    >>> change_said("median", 6.2, 2.1, 10.3, "minutes"), change_said("flights", -3.0, -20.0, 14.0)
    ('median rose by 6.2 minutes, 2.1 to 10.3', 'flights: no sure change, 20 less to 14 more')
    """
    width, of = upper - lower, f" {unit}" if unit else ""
    if lower <= 0 <= upper:
        less, more = amount(-lower, width), amount(upper, width)
        return f"{name}: no sure change, {less}{of} less to {more} more"
    verb, low, high = ("rose", lower, upper) if lower > 0 else ("fell", -upper, -lower)
    by = amount(abs(change), width)
    return f"{name} {verb} by {by}{of}, {amount(low, width)} to {amount(high, width)}"


def sureness(differ: float, rose: float) -> str:
    """How sure it is that the records differ, and that what makes them rose or fell.

    >>> sureness(0.993, 0.086)
    'as sure as 99 in 100 that the records differ, and 91 in 100 that their process fell'

    Args:
        differ: Probability that the records of the two periods differ.
        rose: Probability that what makes the records rose.
    """
    verb, sure = ("rose", rose) if rose >= 0.5 else ("fell", 1.0 - rose)
    return (
        f"as sure as {in_100(differ)} in 100 that the records differ,"
        f" and {in_100(sure)} in 100 that their process {verb}"
    )


def in_100(chance: float) -> int:
    """A probability in words: rounded down, and neither never nor always.

    >>> in_100(0.9999), in_100(0.0), in_100(0.868)
    (99, 1, 86)
    """
    return min(max(int(100 * chance), 1), 99)


def amount(number: float, width: float) -> str:
    """A number to two digits of the width of its interval, and to one of its own at least.

    >>> amount(6.02, 8.3), amount(123456, 50321), amount(3.2, 950), amount(0.0, 0.0)
    ('6.0', '123,000', '3', '0')
    """
    places = [1 - math.floor(math.log10(width))] if width > 0 else []
    if number:
        places.append(-math.floor(math.log10(abs(number))))
    digits = max(places, default=0)
    return f"{round(number, digits) + 0.0:,.{max(digits, 0)}f}"
