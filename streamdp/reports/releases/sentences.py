"""Changes between two periods in words, the same in answers, reports and on the page.

No import of what computes them: whoever says a change may do without SciPy.
"""

from __future__ import annotations

from streamdp.reports.releases.digits import of_size, of_width, written

SINGULAR = {
    f"{each}s": each
    for each in ("record", "second", "minute", "hour", "day", "week", "month", "year")
}
"""Units of one, of those whose letter s is surely that of several."""

SURE = 0.95
"""Probability that the records differ from which on a change has a direction."""


def change_said(
    name: str,
    change: float,
    lower: float,
    upper: float,
    unit: str = "",
    differ: float | None = None,
    rose: float | None = None,
) -> str:
    """A change with its interval; no direction where the interval, or how sure it is, has none.

    >>> change_said("median", 6.2, 2.1, 10.3, "minutes"), change_said("flights", -3.0, -20.0, 14.0)
    ('median rose by 6.2 minutes (2.1 to 10.3)', 'flights: no sure change, 20 less to 14 more')

    Args:
        name: Of what changed.
        change: The change.
        lower: Lower end of its interval.
        upper: Upper end.
        unit: Of the change; empty without one.
        differ: Probability that the records differ; None where it is not measured.
        rose: Probability that what makes the records rose. With it how sure the change is follows.
    """
    sure = doubt = ""
    if differ is not None and rose is not None:
        sure, doubt = f"; {sureness(differ, rose)}", f"; {_in_doubt(differ)}"
    if lower <= 0 <= upper:
        _, less, more = amounts(change, lower, upper)
        least = counted(less.lstrip("-"), unit)
        return f"{name}: no sure change, {least} less to {more} more{doubt}"
    up = lower > 0
    low, high = (lower, upper) if up else (-upper, -lower)
    by, least, most = amounts(abs(change), low, high)
    if differ is not None and differ < SURE:
        way = "more" if up else "less"
        return f"{name}: no sure change, {least} to {counted(most, unit)} {way}{doubt}"
    return f"{name} {'rose' if up else 'fell'} by {counted(by, unit)} ({least} to {most}){sure}"


def counted(number: str, unit: str) -> str:
    """A number with its unit, of one record without an s.

    >>> counted("1", "records"), counted("2", "records"), counted("1", "mmHg"), counted("7", "")
    ('1 record', '2 records', '1 mmHg', '7')
    """
    return f"{number} {SINGULAR.get(unit, unit) if number == '1' else unit}".rstrip()


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


def _in_doubt(differ: float) -> str:
    """Why a change has no direction, by how sure it is that the records differ.

    >>> _in_doubt(0.83)
    'that the records differ is as sure as 83 in 100, and 95 are needed to say so'
    """
    why = "and 95 are needed to say so" if differ < SURE else "but the interval has 0 in it"
    return f"that the records differ is as sure as {in_100(differ)} in 100, {why}"


def in_100(chance: float) -> int:
    """A probability in words: rounded down, and neither never nor always.

    >>> in_100(0.9999), in_100(0.0), in_100(0.868)
    (99, 1, 86)
    """
    return min(max(int(100 * chance), 1), 99)


def amounts(value: float, lower: float, upper: float) -> tuple[str, str, str]:
    """A value and the ends of its interval, to two digits of the interval's width.

    More where the value, or an end of more than 1, would be nought; none that are all noughts.

    >>> amounts(6.02, 2.1, 10.4), amounts(138.0, 134.0, 142.0), amounts(139.0, 1.3, 277.0)
    (('6.0', '2.1', '10.4'), ('138', '134', '142'), ('139', '1', '277'))
    """
    three = (value, lower, upper)
    width = upper - lower or max(map(abs, three)) / 100
    digits = of_width(width) if width else 0
    if value:
        digits = max(digits, of_size(value, 1))
    least = min(filter(None, map(abs, three)), default=1.0)
    digits = max(digits, min(of_size(least, 1), 0))
    while digits > 0 and all(round(each, digits) == round(each, digits - 1) for each in three):
        digits -= 1
    return written(value, digits), written(lower, digits), written(upper, digits)
