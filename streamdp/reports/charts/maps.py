"""Many series at once as SVG: a map over time, and the last release as a table of two labels."""

from __future__ import annotations

from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import RIGHT, TOP, WIDTH, whole
from streamdp.reports.releases.series import Picture, Series


def heat(picture: Picture, *, title: str, rows: int = 60, columns: int = 60) -> str:
    """Many series at once: a row each, a column a release, the darker the more."""
    shown = picture.series[:rows]
    first = max(len(picture.times) - columns, 0)
    found = [each.best.values[first:] for each in shown]
    numbers = [number for values in found for number in values if number is not None]
    if not numbers:
        return ""
    low, span = min(numbers), (max(numbers) - min(numbers)) or 1.0
    left, high = 170, 14
    alike = len({each.labels[:1] for each in shown}) == 1 and len(shown[0].labels) > 1
    wide = (WIDTH - left - RIGHT) / max(len(picture.times) - first, 1)
    parts = []
    for row, (series, values) in enumerate(zip(shown, found, strict=True)):
        y = TOP + row * high
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 11}" text-anchor="end">')
        parts.append(f"{escape(_told_apart(series, alike)[:24])}</text>")
        for column, number in enumerate(values):
            if number is not None:
                depth = 0.04 + 0.96 * (number - low) / span
                what = f"{series.name}, {picture.batches[first + column]}: {number:g}"
                at = (
                    f'x="{left + column * wide:.1f}" y="{y}" width="{wide:.1f}" height="{high - 1}"'
                )
                parts.append(f'<rect class="cell" {at} fill-opacity="{depth:.2f}">')
                parts.append(f"<title>{escape(what)}</title></rect>")
    return whole(parts, title, TOP + len(shown) * high + 6)


def _told_apart(series: Series, alike: bool) -> str:
    """A name without the first label, where that is the same for all."""
    return " · ".join(each for each in series.labels[alike:] if each is not None) or series.name


def grid(picture: Picture, *, title: str, rows: int = 60, columns: int = 40) -> str:
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
    downs = list(dict.fromkeys(down for down, _ in cells))[:rows]
    acrosses = list(dict.fromkeys(across for _, across in cells))[:columns]
    low, span = min(numbers), (max(numbers) - min(numbers)) or 1.0
    left, top, high = 170, 26, 26
    wide = (WIDTH - left - RIGHT) / len(acrosses)
    parts = []
    for column, across in enumerate(acrosses):
        x = left + (column + 0.5) * wide
        parts.append(f'<text class="tick" x="{x:.1f}" y="{top - 8}" text-anchor="middle">')
        parts.append(f"{escape(across[: max(int(wide / 7), 1)])}</text>")
    for row, down in enumerate(downs):
        y = top + row * high
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 17}" text-anchor="end">')
        parts.append(f"{escape(down[:24])}</text>")
        for column, across in enumerate(acrosses):
            number = cells.get((down, across))
            if number is not None:
                depth = 0.04 + 0.96 * (number - low) / span
                at = f'x="{left + column * wide:.1f}" y="{y}" width="{wide - 1:.1f}"'
                what = escape(f"{down}, {across}: {number:g}")
                parts.append(f'<rect class="cell" {at} height="{high - 1}" rx="2"')
                parts.append(f' fill-opacity="{depth:.2f}"><title>{what}</title></rect>')
    return whole(parts, title, top + len(downs) * high + 4)
