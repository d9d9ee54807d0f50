"""Many series at once as SVG: a row each over time, the darker the more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import (
    LETTER,
    WIDE,
    DrawnChart,
    Frame,
    across_of,
    moments,
)
from streamdp.reports.releases.headline import rounded
from streamdp.reports.releases.series import Picture

MOST_ROWS = 60
"""The most rows of a map."""

LEFT, HIGH = 170, 15
"""Room for the names of rows at most, and the height of a row."""

SHADES = 12
"""Depths of cells over time: those of one depth are one path."""


KEY, KEY_CELL = 20, 6
"""Height of the key of depths above a map, and the width of one of them."""


class _Shades(NamedTuple):
    """How dark cells are: the darker, the larger the number."""

    low: float
    span: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> _Shades:
        return cls(min(numbers), (max(numbers) - min(numbers)) or 1.0)

    def depth(self, number: float) -> float:
        return 0.04 + 0.96 * (number - self.low) / self.span


def over_time(picture: Picture, frame: Frame = WIDE) -> DrawnChart:
    """Many series at once: a row each, a column a release, the darker the more."""
    shown = picture.series[:MOST_ROWS]
    names = [_row_name(picture.called(each), frame) for each in shown]
    left = round(max(map(len, names), default=0) * LETTER) + 16
    top = KEY + 16
    frame = replace(frame, left=left, top=top, high=top + len(shown) * HIGH + frame.bottom)
    wide = _step(picture, frame.end - left)
    inset = round(wide / 2)
    across = across_of(picture, replace(frame, left=left + inset, right=frame.right + inset))
    values = [each.told(each.best).values for each in shown]
    shades = _Shades.of([each for row in values for each in row if each is not None] or [0.0])
    cells: dict[int, list[str]] = {}
    parts = list(_key(shades, picture.unit, frame))
    for row, (name, numbers) in enumerate(zip(names, values, strict=True)):
        y = frame.top + row * HIGH
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 12}" text-anchor="end">')
        parts.append(f"{escape(name)}</text>")
        for place, number in zip(picture.times, numbers, strict=True):
            if number is not None:
                x = across(place) - wide / 2
                depth = round(shades.depth(number) * SHADES)
                cells.setdefault(depth, []).append(f"M{x:.1f} {y + HIGH / 2:g}h{wide:.1f}")
    for depth, paths in sorted(cells.items()):
        opacity = max(depth / SHADES, 0.04)
        parts.append(f'<path class="cell" stroke-opacity="{opacity:.2f}" d="{"".join(paths)}"/>')
    flagged = {at: flag for each in shown for at, flag in enumerate(each.flags) if flag}
    for at, flag in flagged.items():
        parts.append(
            f'<path class="flagged" d="M{across(picture.times[at]):.1f} {top - 14}'
            'l5 6l-5 6l-5 -6z">'
        )
        parts.append(f"<title>{escape(f'{picture.batches[at]}: {flag}')}</title></path>")
    axis = [each for each in moments(across, frame.ground) if each.startswith("<text")]
    return DrawnChart((*parts, *axis), frame.wide, frame.high, across, (frame.top, HIGH))


def _key(shades: _Shades, unit: str, frame: Frame) -> Iterator[str]:
    """What the depths of cells stand for: the least number, all depths, the largest."""
    least, most = rounded(shades.low), f"{rounded(shades.low + shades.span)} {unit}".rstrip()
    before = round(LETTER * len(least)) + 6
    wide = before + SHADES * KEY_CELL + 6 + round(LETTER * len(most))
    x = max(min(frame.left, frame.wide - wide - 4), 4)
    yield f'<text class="tick" x="{x}" y="12">{escape(least)}</text>'
    for depth in range(1, SHADES + 1):
        at = x + before + (depth - 1) * KEY_CELL
        opacity = f'stroke-opacity="{depth / SHADES:.2f}"'
        yield f'<path class="cell key" {opacity} d="M{at} 8h{KEY_CELL}"/>'
    end = x + before + SHADES * KEY_CELL + 6
    yield f'<text class="tick" x="{end}" y="12">{escape(most)}</text>'


def _row_name(name: str, frame: Frame) -> str:
    letters = int(min(LEFT, frame.wide * 0.3) / LETTER)
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _step(picture: Picture, room: float) -> float:
    """Width of a cell: what usually lies between two batches."""
    steps = [after - before for before, after in pairwise(picture.times)]
    span = picture.times[-1] - picture.times[0]
    return max(room * median(steps) / (span + median(steps)), 1.0) if span else room / 2
