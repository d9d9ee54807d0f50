"""Frame of all charts: their size, colours, axes, and the SVG element around them.

Colours are classes: the page's style sheet says them, and knows light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.charts.scales import Scale, round_moments, round_numbers
from streamdp.reports.releases.series import Picture

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
