"""Frame of all charts: their size, colours, axes, and the SVG element around them.

Colours are classes: the page's style sheet says them, and knows light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.charts.scales import Scale, round_moments, round_numbers
from streamdp.reports.releases.series import Picture

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 28
BATCHES_NAMED, LONGEST_NAME = 6, 18
"""Batches that an axis names where they lie one after the other, and letters of each name."""

ORDERED, UNORDERED = 9, 8
"""Colours of series in an order, and of others."""

STYLE = (
    ".chart{font-family:system-ui,sans-serif;background:#fff}"
    ".grid{stroke:#dfe3e9;fill:none}.tick,.limit-label{fill:#5a6372;font-size:12px}"
    ".panel{font-size:15px;font-weight:600}.name{fill:currentColor;font-size:12px;"
    "paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}"
    ".dots{fill:none;stroke:currentColor;stroke-width:3.2;stroke-linecap:round;opacity:.42}"
    ".band{fill:currentColor;opacity:.16}.layer{fill:currentColor;opacity:.75}"
    ".choice{fill:none;stroke:currentColor;stroke-width:6;stroke-linecap:round;opacity:.7}"
    ".shade{fill:#5a6372;opacity:.14}.cell{fill:#3b5bdb}"
    ".flagged{fill:#8a5300}"
    ".limit{stroke:#b3261e;stroke-dasharray:5 4;fill:none}"
    ".burn{fill:#b3261e}.refuse{fill:#8a5300}.yes{fill:#1b7a43}.no{fill:#5a6372}"
    ".o0{color:#472d7b}.o1{color:#41478c}.o2{color:#355f8d}.o3{color:#2a768e}.o4{color:#1f8d8c}"
    ".o5{color:#1f9e77}.o6{color:#4a9a3a}.o7{color:#87870f}.o8{color:#b96b00}"
    ".c0{color:#3b5bdb}.c1{color:#c2510c}.c2{color:#0b7a5f}.c3{color:#9c36b5}"
    ".c4{color:#a16207}.c5{color:#0e7490}.c6{color:#be185d}.c7{color:#4d5566}"
)
"""Of a chart that stands alone, on paper."""


def colours(names: Sequence[str]) -> list[str]:
    """A class for each series: along a scale where their names are numbers, else unlike."""
    if len(names) > 1 and all(map(_is_number, names)):
        last = len(names) - 1
        return [f"o{round(index * (ORDERED - 1) / last)}" for index in range(len(names))]
    return [f"c{index % UNORDERED}" for index in range(len(names))]


def alone(svg: str) -> str:
    """A chart as a file of its own."""
    head, _, rest = svg.partition(">")
    size = f' width="{WIDTH}"'
    return f"{head}{size}><style>{STYLE}</style>{rest}"


def whole(parts: Iterable[str], title: str, height: int = HEIGHT) -> str:
    """The SVG element around the parts of a chart."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' xmlns="http://www.w3.org/2000/svg" aria-label={quoteattr(title)}>'
        f"{''.join(parts)}</svg>"
    )


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


def across_of(picture: Picture, left: int = LEFT) -> Across:
    """The axis of a picture; a single place is in its middle."""
    low, high = picture.times[0], picture.times[-1]
    if low == high:
        room = 43_200 if picture.axis == "time" else 1
        low, high = low - room, high + room
    scale = Scale(low, high, left + 6, WIDTH - RIGHT - 6)
    if picture.axis == "time":
        return Across(scale, tuple(round_moments(low, high)))
    if picture.axis == "number":
        whole_ones = (each for each in round_numbers(scale) if each == int(each))
        return Across(scale, tuple((each, f"{each:.0f}") for each in whole_ones))
    every = -(-len(picture.batches) // BATCHES_NAMED) or 1
    named = list(enumerate(picture.batches))[::every]
    return Across(scale, tuple((at, _short(name)) for at, name in named))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def time_axis(times: Sequence[int]) -> Across:
    """The axis of times that are of no batches."""
    low, high = times[0], times[-1]
    if low == high:
        low, high = low - 43_200, high + 43_200
    return Across(Scale(low, high, LEFT + 6, WIDTH - RIGHT - 6), tuple(round_moments(low, high)))


def axes(across: Across, up: Scale) -> Iterator[str]:
    """Lines and labels of both axes."""
    for number in round_numbers(up):
        y = up(number)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        at = f'x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"'
        yield f'<text class="tick" {at}>{number:g}</text>'
    yield from moments(across, HEIGHT - BOTTOM)


def moments(across: Across, ground: int) -> Iterator[str]:
    """Lines and labels of the axis of places."""
    for place, name in across.marks:
        x, text = across(place), escape(name)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{ground}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{ground + 20}" text-anchor="middle">{text}</text>'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
