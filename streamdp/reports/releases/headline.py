"""One number of a job in words: its newest value, its interval, and what is usual on that day."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import islice, pairwise

from streamdp.reports.releases.sentences import amounts, of_width, sure_said, written
from streamdp.reports.releases.series import MEASURED, Picture, Series, SeriesLine
from streamdp.types.releases import HARDLY_ANY

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400
PAST, LEAST_PAST = 8, 3
"""Earlier batches that the newest is compared with, and how many there must be."""

GROUPS = 6
"""Other groups whose values are said."""

NAMED = 3
"""Unusual rows that a sentence names."""

NOTHING_SAID = "not compared, because there were hardly any records"

EDGES = ("<", ">", "(")
"""First letters of cells that are no headline: beyond all cuts, nulls, what is not listed."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The newest value of one series.

    Args:
        name: Of the series.
        value: The number in words, rounded to what its interval supports.
        unit: Of the value; empty without one, or where the name says it.
        interval: Its ends in words; empty without one.
        usual: How it lies among earlier ones; empty where there are too few.
        batch: The batch it is of.
        others: How many of the other rows are not usual, and which; empty where none is compared.
        level: How often such intervals are meant to hold the truth; None without one.
        groups: The same value of other groups; empty of a job without groups.
    """

    name: str
    value: str
    unit: str
    interval: str
    usual: str
    batch: str
    others: str = ""
    level: float | None = None
    groups: str = ""

    @property
    def sure(self) -> str:
        """How sure the interval is, as one figure; empty without one."""
        return sure_said(self.level) if self.interval else ""


def headline(
    picture: Picture, row: Mapping[str, str] | None = None, by: Sequence[str] = ()
) -> Headline | None:
    """The newest value of the series that says most, in words; None where none has one.

    Args:
        picture: The series.
        row: What the labels of the series say that was chosen; by default a rule chooses.
        by: Labels that are a group.
    """
    series = headline_series(picture, row)
    if series is None or not picture.batches:
        return None
    batch = picture.batches[-1]
    if any(each.chart == "choices" for each in picture.columns):
        return Headline("chosen", str(series.cells[-1] or "–"), "", "", "", batch)
    last, groups = len(picture.batches) - 1, _groups(picture, series, by)
    value, ends = series.best.values[last], series.best.interval(last)
    if value is None:
        name, why = picture.called(series), "no value in the newest batch"
        return Headline(name, "–", "", "", why, batch, groups=groups)
    said, interval = rounded(value), ""
    if ends is not None:
        digits = _digits_of_table(picture, series)
        said, low, high = amounts(value, *ends)
        if digits is not None and round(value, digits):
            said, low, high = (written(each, digits) for each in (value, *ends))
        interval = f"{low} to {high}"
    name, usual = picture.called(series), compared(picture, series)
    others, unit = _others(picture, series), picture.unit_of(series)
    if re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", name):
        unit = ""
    return Headline(name, said, unit, interval, usual, batch, others, level_of(picture), groups)


def _groups(picture: Picture, main: Series, by: Sequence[str]) -> str:
    """The newest value of other groups, the first few, and how many more there are."""

    def measured(series: Series) -> dict[str, str | None]:
        labels = picture.labels_of(series)
        return {name: text for name, text in labels.items() if name not in by}

    last = len(picture.batches) - 1
    said = []
    for each in picture.series if by else ():
        name = " · ".join(filter(None, map(picture.labels_of(each).get, by)))
        line = each.told(each.best)
        value = line.values[last]
        if name and value is not None and each is not main and measured(each) == measured(main):
            said.append(f"{name} {rounded(value, line.interval(last))}")
    more = f" and {len(said) - GROUPS} more" if len(said) > GROUPS else ""
    return ", ".join(said[:GROUPS]) + more


def level_of(picture: Picture) -> float | None:
    """How often the intervals that are shown are meant to hold the truth; None without any."""
    about = picture.series[0].best.column if picture.series else ""
    ends = (each for each in picture.columns if each.role == "lower" and each.about == about)
    return next((each.level for each in ends), None)


def headline_series(picture: Picture, row: Mapping[str, str] | None = None) -> Series | None:
    """The row that says most: the one that was chosen, a median, else what has the fewest labels.

    Of rows that measure the same, the largest so far. No nulls and no edges.
    """
    asked = [each for each in picture.series if row and _is_asked(picture, each, row)]
    if asked:
        return asked[0]
    named = [each for each in picture.series if not any(map(_is_edge, each.labels))]
    found = named or list(picture.series)
    medians = [each for each in found if any(map(_is_half, each.labels))]
    if medians:
        return medians[0]
    fewest = min((_count(each) for each in found), default=0)
    first = [each for each in found if _count(each) == fewest]
    alike = [each for each in first if _measured(picture, each) == _measured(picture, first[0])]
    return max(alike, key=_usual_size, default=None)


def _is_asked(picture: Picture, series: Series, row: Mapping[str, str]) -> bool:
    said = picture.labels_of(series)
    return all(said.get(name) == text for name, text in row.items())


def _count(series: Series) -> int:
    return len(list(filter(None, series.labels)))


def _measured(picture: Picture, series: Series) -> tuple[str | None, ...]:
    return tuple(label for name, label in picture.labels_of(series).items() if name in MEASURED)


def _usual_size(series: Series) -> float:
    known = [abs(each) for each in series.best.values if each is not None]
    return statistics.median(known) if known else 0.0


def rounded(value: float, ends: tuple[float, float] | None = None) -> str:
    """A number with the digits that its interval supports: two of the interval's width.

    Whole numbers without an interval stay whole.

    >>> rounded(978.7321, (961.0, 997.0)), rounded(0.09498, (0.05, 0.14)), rounded(139.0)
    ('979', '0.095', '139')
    """
    width = 0.0 if ends is None else abs(ends[1] - ends[0])
    known = width if width > 0 else abs(value) / 100
    if not known or not math.isfinite(known):
        return f"{value:,.6g}"
    digits = of_width(known)
    if ends is None and float(value).is_integer():
        digits = min(digits, 0)
    if width and value in (ends or ()):
        digits = max(digits, 0)
    return written(value, digits)


def digits_of(line: SeriesLine) -> int | None:
    """Digits after the point that most intervals of a line support; None without intervals."""
    widths = [upper - lower for lower, upper in line.intervals() if upper > lower]
    if not widths:
        return None
    return max(of_width(statistics.median(widths)), 0)


def _digits_of_table(picture: Picture, series: Series) -> int | None:
    """Digits that tables show all rows with that measure the same; None without intervals."""
    alike = [e for e in picture.series if _measured(picture, e) == _measured(picture, series)]
    known = [digits_of(each.best) for each in alike]
    return min((each for each in known if each is not None), default=None)


def _is_edge(label: str | None) -> bool:
    return label is not None and (label.startswith(EDGES) or label == "null")


def _is_half(label: str | None) -> bool:
    return label in ("0.5", "median")


def compared(picture: Picture, series: Series) -> str:
    """Whether the newest interval meets what was on the same days of earlier weeks.

    Batches of hardly any records say nothing, and are compared with nothing.
    """
    last = len(picture.times) - 1
    if series.flag(last) == HARDLY_ANY:
        return NOTHING_SAID
    line = series.told(series.best)
    value, ends = line.values[last], line.interval(last)
    past = list(islice(_earlier(picture, line), PAST))
    if value is None or len(past) < LEAST_PAST:
        return ""
    is_daily = _is_daily(picture)
    # Days of other zones begin up to half a day from that of UTC.
    day = datetime.fromtimestamp(picture.times[-1] + DAY // 2, UTC).strftime("%A")
    of = f"the last {len(past)} {day}s" if is_daily else f"the last {len(past)}"
    low, high = min(past), max(past)
    shown = ends or (value, value)
    width = (low, high) if low < high else ends
    among = f"{of} ({rounded(low, width)} to {rounded(high, width)})"
    if shown[1] < low:
        return f"below all of {among}"
    if shown[0] > high:
        return f"above all of {among}"
    return f"usual for a {day}" if is_daily else "as usual"


def usual_of(picture: Picture) -> dict[str, str]:
    """How the newest value of each series lies among earlier ones, by the series' name."""
    return {each.name: compared(picture, each) for each in picture.series}


def is_unusual(usual: str) -> bool:
    """Whether a value is said to lie below or above all of the same before."""
    return usual.startswith(("below", "above"))


def _others(picture: Picture, main: Series) -> str:
    """How many of the rows beside one are unusual, and which."""
    usual = {each.name: compared(picture, each) for each in picture.series if each is not main}
    told = [each for each in picture.series if usual.get(each.name, "") not in ("", NOTHING_SAID)]
    if not told:
        return ""
    of = f"{len(told)} other row{'' if len(told) == 1 else 's'}"
    apart = [each for each in told if is_unusual(usual[each.name])]
    if not apart:
        return f"none of {of} is unusual"
    names = [f"{picture.called(e)} {usual[e.name].split()[0]} all before" for e in apart[:NAMED]]
    more = f" and {len(apart) - NAMED} more" if len(apart) > NAMED else ""
    are = "is" if len(apart) == 1 else "are"
    most = f"; by chance {unusual_by_chance(picture, told)} or fewer would be"
    return f"{len(apart)} of {of} {are} unusual: {', '.join(names)}{more}{most}"


def unusual_by_chance(picture: Picture, rows: Sequence[Series]) -> int:
    """How many rows are expected to look unusual, at most, if the newest batch is like the rest.

    Of n + 1 values in any order the newest is the lowest or the highest in 2 of n + 1 cases; to be
    called unusual its interval has to lie beyond the others, too.
    """
    known = (len(list(islice(_earlier(picture, each.told(each.best)), PAST))) for each in rows)
    return math.ceil(sum(Fraction(2, many + 1) for many in known))


def _earlier(picture: Picture, line: SeriesLine) -> Iterator[float]:
    """Earlier values, the last first: of the same weekday, where batches are days."""
    weekly = _is_daily(picture)
    for at in range(len(picture.times) - 2, -1, -1):
        apart = picture.times[-1] - picture.times[at]
        value = line.values[at]
        if value is not None and (not weekly or _is_near(apart, WEEK)):
            yield value


def _is_daily(picture: Picture) -> bool:
    """Whether batches are days, of any time zone: where clocks change, one has 23 or 25 hours."""
    if picture.axis != "time":
        return False
    if len(picture.times) < 2:
        return picture.times[-1:] != () and picture.times[-1] % DAY == 0
    apart = [later - before for before, later in pairwise(picture.times[-PAST:])]
    return all(each > 0 and _is_near(each, DAY) for each in apart)


def _is_near(seconds: int, step: int) -> bool:
    """Whether a time is a multiple of a step, but for an hour of a clock."""
    return seconds > step // 2 and min(seconds % step, -seconds % step) <= HOUR
