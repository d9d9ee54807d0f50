"""Frame of all charts: their size, colours, scales and axes, and the SVG element around them.

Colours are classes: the page's style sheet says them, and knows light and dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.releases.series import Picture

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


WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 28
LONGEST_NAME = 18
"""Letters of a name on an axis or at the end of a line."""

LETTER, APART = 6.8, 12
"""Pixels of a letter on an axis, and the least between two texts there."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Size of one chart, and the room around its lines, in pixels of the chart."""

    wide: int = WIDTH
    high: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP
    bottom: int = BOTTOM

    @property
    def ground(self) -> int:
        """Where the lines end below."""
        return self.high - self.bottom

    @property
    def end(self) -> int:
        """Where the lines end on the right."""
        return self.wide - self.right

    def named(self, names: Iterable[str]) -> Frame:
        """Return the frame with room on the right for names at the ends of lines."""
        letters = max((min(len(each), LONGEST_NAME) for each in names), default=0)
        return replace(self, right=self.right + (round(LETTER * letters) + 6 if letters else 0))


WIDE, SMALL, MINI = Frame(), Frame(400, 225, 52), Frame(300, 170, 48)
"""Frames of a chart across the whole page, of one of two beside each other, of one of many."""

SIZES = {"wide": WIDE, "small": SMALL}
"""Sizes of a chart that stands alone: on a wide page, and on a phone."""

_VIEW = re.compile(r'viewBox="0 0 (\d+)')

ORDERED, UNORDERED = 9, 8
"""Colours of series in an order, and of others."""

STYLE = (
    ".chart{font-family:system-ui,sans-serif;background:#fff}"
    ".grid{stroke:#dfe3e9;fill:none}.tick,.limit-label{fill:#5a6372;font-size:12px}"
    ".panel{font-size:15px;font-weight:600}.name{fill:currentColor;font-size:12px}"
    ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}"
    ".dots{fill:none;stroke:currentColor;stroke-width:3.2;stroke-linecap:round;opacity:.42}"
    ".band{fill:currentColor;opacity:.16}.layer{fill:currentColor;opacity:.75}"
    ".choice{fill:none;stroke:currentColor;stroke-width:6;stroke-linecap:round;opacity:.7}"
    ".shade{fill:#5a6372;opacity:.14}.cell{fill:none;stroke:#3b5bdb;stroke-width:14}"
    ".flagged{fill:#8a5300}"
    ".limit{stroke:#b3261e;stroke-dasharray:5 4;fill:none}"
    ".burn{fill:#b3261e}.refuse{fill:#8a5300}.yes{fill:#1b7a43}.no{fill:#5a6372}"
    ".o0{color:#472d7b}.o1{color:#41478c}.o2{color:#355f8d}.o3{color:#2a768e}.o4{color:#1f8d8c}"
    ".o5{color:#1f9e77}.o6{color:#4a9a3a}.o7{color:#87870f}.o8{color:#b96b00}"
    ".c0{color:#3b5bdb}.c1{color:#c2510c}.c2{color:#0b7a5f}.c3{color:#9c36b5}"
    ".c4{color:#a16207}.c5{color:#0e7490}.c6{color:#be185d}.c7{color:#4d5566}"
)
"""Style of a chart that stands alone, on paper."""


def colours(names: Sequence[str]) -> list[str]:
    """A class for each series: along a scale where their names are numbers, else unlike."""
    if len(names) > 1 and all(map(_is_number, names)):
        last = len(names) - 1
        return [f"o{round(index * (ORDERED - 1) / last)}" for index in range(len(names))]
    return [f"c{index % UNORDERED}" for index in range(len(names))]


def alone(svg: str) -> str:
    """A chart as a file of its own."""
    wide = _VIEW.search(svg)
    head, _, rest = svg.partition(">")
    size = f' width="{wide[1] if wide else WIDTH}"'
    return f"{head}{size}><style>{STYLE}</style>{rest}"


def whole(
    parts: Iterable[str], title: str, height: int = HEIGHT, width: int = WIDTH, more: str = ""
) -> str:
    """The SVG element around the parts of a chart; `more` is further attributes of it."""
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img"'
        f' xmlns="http://www.w3.org/2000/svg" aria-label={quoteattr(title)}{more}>'
        f"{''.join(parts)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class DrawnChart:
    """A chart before the element around it: it stands alone, or is a part of another.

    Args:
        parts: Its elements.
        wide: Its width.
        high: Its height.
        across: Its axis of places, by which a pointer finds batches.
        rows: Where its rows begin and how high each is, of a chart of rows.
    """

    parts: tuple[str, ...]
    wide: int
    high: int
    across: Across
    rows: tuple[int, int] | None = None

    def svg(self, title: str) -> str:
        """The chart as an SVG element."""
        scale = self.across.scale
        more = f' data-x="{scale.low:.10g} {scale.high:.10g} {scale.start:.1f} {scale.end:.1f}"'
        if self.rows is not None:
            more += f' data-rows="{self.rows[0]} {self.rows[1]}"'
        return whole(self.parts, title, self.high, self.wide, more)


@dataclass(frozen=True, slots=True)
class Across:
    """The axis of places: of times, of numbers, or of batches one after the other.

    Args:
        scale: Places along pixels.
        marks: Round places, or some batches, and how to write them.
    """

    scale: Scale
    marks: tuple[tuple[float, str], ...]

    def __call__(self, place: float) -> float:
        """Pixel of a place."""
        return self.scale(place)


AHEAD = 40
"""One part in so many of an axis is at least left for the next batch."""


def across_of(picture: Picture, frame: Frame = WIDE) -> Across:
    """The axis of a picture; a single place is in its middle."""
    low, high = picture.times[0], picture.times[-1]
    for each in picture.expected().values():
        high = max(each.at, high + (high - low) // AHEAD)
    if low == high:
        room = 43_200 if picture.axis == "time" else 1
        low, high = low - room, high + room
    scale = Scale(low, high, frame.left + 6, frame.end - 6)
    marks: Iterable[tuple[float, str]]
    if picture.axis == "time":
        marks = round_moments(low, high)
    elif picture.axis == "number":
        marks = ((each, f"{each:.0f}") for each in round_numbers(scale) if each == int(each))
    else:
        marks = ((at, _short(name)) for at, name in enumerate(picture.batches))
    return Across(scale, _apart(tuple(marks), scale))


def _apart(marks: tuple[tuple[float, str], ...], scale: Scale) -> tuple[tuple[float, str], ...]:
    """Every mark, or every second, third… so that none is written over another."""
    longest = max((len(name) for _, name in marks), default=0) * LETTER + APART
    for every in range(1, len(marks) + 1):
        kept = marks[::every]
        if all(scale(b) - scale(a) >= longest for (a, _), (b, _) in pairwise(kept)):
            return kept
    return marks


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def time_axis(times: Sequence[int], frame: Frame = WIDE) -> Across:
    """The axis of times that are of no batches."""
    low, high = times[0], times[-1]
    if low == high:
        low, high = low - 43_200, high + 43_200
    scale = Scale(low, high, frame.left + 6, frame.end - 6)
    return Across(scale, _apart(tuple(round_moments(low, high)), scale))


def number_axis(numbers: Sequence[int], frame: Frame = WIDE) -> Across:
    """The axis of whole numbers that are of no batches."""
    low, high = numbers[0], max(numbers[-1], numbers[0] + 1)
    scale = Scale(low, high, frame.left + 6, frame.end - 6)
    marks = ((each, f"{each:,.0f}") for each in round_numbers(scale) if each == int(each))
    return Across(scale, _apart(tuple(marks), scale))


def axes(across: Across, up: Scale, frame: Frame = WIDE) -> Iterator[str]:
    """Lines and labels of both axes."""
    for number in round_numbers(up):
        y = up(number)
        yield f'<path class="grid" d="M{frame.left} {y:.1f}H{frame.end}"/>'
        at = f'x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end"'
        yield f'<text class="tick" {at}>{_tick(number)}</text>'
    yield from moments(across, frame.ground)


def _tick(number: float) -> str:
    """A number of an axis, in as many letters as there is room for.

    >>> [_tick(each) for each in (0.05, 2500, -800_000, 1.25e6, 3e9)]
    ['0.05', '2,500', '-800k', '1.25M', '3G']
    """
    for power, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= power and (power > 1e3 or abs(number) >= 1e5):
            return f"{number / power:g}{letter}" if abs(number) < 1e15 else f"{number:g}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:g}"


def moments(across: Across, ground: int) -> Iterator[str]:
    """Lines and labels of the axis of places; the last label ends within the chart."""
    edge = across.scale.end + 6 + RIGHT - 2
    for place, name in across.marks:
        x, text = across(place), escape(name)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{ground}"/>'
        x = min(x, edge - LETTER * len(name) / 2)
        yield f'<text class="tick" x="{x:.1f}" y="{ground + 20}" text-anchor="middle">{text}</text>'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
