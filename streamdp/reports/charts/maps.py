"""Many series at once as SVG: a map over time, and the last release as a table of two labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import RIGHT, TOP, WIDTH, whole
from streamdp.reports.releases.series import Picture, Series

MOST_ROWS, MOST_RELEASES, MOST_COLUMNS = 60, 60, 40
"""Rows of a map; columns of one over time, and of a table of two labels."""

LEFT = 170
"""Where the cells begin, right of the names of the rows."""


class _Shades(NamedTuple):
    """How dark cells are: the darker, the larger the number."""

    low: float
    span: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> _Shades:
        return cls(min(numbers), (max(numbers) - min(numbers)) or 1.0)

    def cell(self, number: float, about: str, place: str) -> str:
        """A cell that says on demand what its number is."""
        depth = 0.04 + 0.96 * (number - self.low) / self.span
        return (
            f'<rect class="cell" {place} fill-opacity="{depth:.2f}">'
            f"<title>{escape(f'{about}: {number:g}')}</title></rect>"
        )


def heat(picture: Picture, *, title: str) -> str:
    """Many series at once: a row each, a column a release, the darker the more."""
    shown = picture.series[:MOST_ROWS]
    first = max(len(picture.times) - MOST_RELEASES, 0)
    found = [each.best.values[first:] for each in shown]
    numbers = [number for values in found for number in values if number is not None]
    if not numbers:
        return ""
    shades, high = _Shades.of(numbers), 14
    alike = len({each.labels[:1] for each in shown}) == 1 and len(shown[0].labels) > 1
    wide = (WIDTH - LEFT - RIGHT) / max(len(picture.times) - first, 1)
    parts = []
    for row, (series, values) in enumerate(zip(shown, found, strict=True)):
        y = TOP + row * high
        parts.append(_row_name(_told_apart(series, alike), y + 11))
        for column, number in enumerate(values):
            if number is not None:
                about = f"{series.name}, {picture.batches[first + column]}"
                at = f'x="{LEFT + column * wide:.1f}" y="{y}" width="{wide:.1f}"'
                parts.append(shades.cell(number, about, f'{at} height="{high - 1}"'))
    return whole(parts, title, TOP + len(shown) * high + 6)


def _told_apart(series: Series, alike: bool) -> str:
    """A name without the first label, where that is the same for all."""
    return " · ".join(filter(None, series.labels[alike:])) or series.name


def _row_name(name: str, y: int) -> str:
    start = f'<text class="tick" x="{LEFT - 8}" y="{y}" text-anchor="end">'
    return f"{start}{escape(name[:24])}</text>"


def grid(picture: Picture, *, title: str) -> str:
    """The last release as a table of two labels, the darker the more; nothing for other series."""
    cells = {}
    for each in picture.series:
        there = [label for label in each.labels[1:] if label is not None]
        if len(there) != 2 or not each.best.values:
            return ""
        cells[there[0], there[1]] = each.best.values[-1]
    numbers = [number for number in cells.values() if number is not None]
    if not numbers:
        return ""
    downs = list(dict.fromkeys(down for down, _ in cells))[:MOST_ROWS]
    acrosses = list(dict.fromkeys(across for _, across in cells))[:MOST_COLUMNS]
    shades, top, high = _Shades.of(numbers), 26, 26
    wide = (WIDTH - LEFT - RIGHT) / len(acrosses)
    parts = []
    for column, across in enumerate(acrosses):
        x = LEFT + (column + 0.5) * wide
        parts.append(f'<text class="tick" x="{x:.1f}" y="{top - 8}" text-anchor="middle">')
        parts.append(f"{escape(across[: max(int(wide / 7), 1)])}</text>")
    for row, down in enumerate(downs):
        y = top + row * high
        parts.append(_row_name(down, y + 17))
        for column, across in enumerate(acrosses):
            number = cells.get((down, across))
            if number is not None:
                at = f'x="{LEFT + column * wide:.1f}" y="{y}" width="{wide - 1:.1f}"'
                place = f'{at} height="{high - 1}" rx="2"'
                parts.append(shades.cell(number, f"{down}, {across}", place))
    return whole(parts, title, top + len(downs) * high + 4)
