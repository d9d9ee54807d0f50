"""Charts as SVG: for pages without scripts, reports and printers.

Colours are classes: the page's style sheet says them, and knows light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.charts.scales import Scale, round_moments, round_numbers, spanning
from streamdp.reports.happenings import Happenings
from streamdp.reports.series import Line, Numbers, Picture, Series

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 28
ORDERED, UNORDERED = 9, 8
"""Colours of series in an order, and of others."""

STYLE = (
    ".chart{font-family:system-ui,sans-serif;background:#fff}"
    ".grid{stroke:#dfe3e9;fill:none}.tick,.limit-label{fill:#5a6372;font-size:12px}"
    ".line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}"
    ".dots{fill:none;stroke:currentColor;stroke-width:3.2;stroke-linecap:round;opacity:.42}"
    ".band{fill:currentColor;opacity:.16}.shade{fill:#5a6372;opacity:.14}.cell{fill:#3b5bdb}"
    ".limit{stroke:#b3261e;stroke-dasharray:5 4;fill:none}"
    ".burn{fill:#b3261e}.refuse{fill:#8a5300}.yes{fill:#1b7a43}.no{fill:#5a6372}"
    ".o0{color:#472d7b}.o1{color:#41478c}.o2{color:#355f8d}.o3{color:#2a768e}.o4{color:#1f8d8c}"
    ".o5{color:#1f9e77}.o6{color:#4a9a3a}.o7{color:#87870f}.o8{color:#b96b00}"
    ".c0{color:#3b5bdb}.c1{color:#c2510c}.c2{color:#0b7a5f}.c3{color:#9c36b5}"
    ".c4{color:#a16207}.c5{color:#0e7490}.c6{color:#be185d}.c7{color:#4d5566}"
)
"""Of a chart that stands alone, on paper."""

Mark = tuple[int, str, str]
"""Something else that happened: when, its class, and what it is."""

Shade = tuple[int, int, str]
"""A stretch of time that is marked, and what it is."""


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


def chart(
    picture: Picture,
    marks: Iterable[Mark] = (),
    shades: Iterable[Shade] = (),
    *,
    title: str,
) -> str:
    """Series over time: what was drawn as dots, the best line, and the interval around it."""
    if not picture.times:
        return ""
    across = _times(picture.times)
    up = spanning(picture.reach(), HEIGHT - BOTTOM, TOP)
    parts = [*_axes(across, up), *_shades(shades, across)]
    for series, colour in zip(
        picture.series, colours([s.name for s in picture.series]), strict=True
    ):
        drawn = [*_band(picture.times, series.best, across, up)]
        if series.estimate is not None:
            drawn += _dots(picture.times, series.raw.values, across, up)
        drawn += _polylines(picture.times, series.best.values, across, up)
        parts += [
            f'<g class="series {colour}"><title>{escape(series.name)}</title>',
            *drawn,
            "</g>",
        ]
    return _whole([*parts, *_marks(marks, across)], title)


def chart_of(job: str, picture: Picture, events: Happenings) -> str:
    """The chart of a job, with what happened besides."""
    marks = [
        (each.moment, each.what, f"{each.batch}: {each.meaning}")
        for each in events.events
        if each.what != "no"
    ]
    shades = [(since, until, f"the release of {of} stands") for since, until, of in events.carried]
    title = f"{job}: releases over time, {len(picture.series)} series"
    return chart(picture, marks, shades, title=title)


def steps(points: Sequence[tuple[int, float]], limit: float | None, *, title: str) -> str:
    """A sum that grows in steps, under a limit."""
    if not points:
        return ""
    across = _times([at for at, _ in points])
    tops = [number for _, number in points] + ([] if limit is None else [limit])
    up = spanning(tops, HEIGHT - BOTTOM, TOP, zero=True)
    path = [f"M{across(points[0][0]):.1f} {up(points[0][1]):.1f}"]
    path += [f"H{across(at):.1f}V{up(number):.1f}" for at, number in points[1:]]
    line = " ".join(path)
    ground = f"{line} V{up(0):.1f} H{across(points[0][0]):.1f}Z"
    parts = [*_axes(across, up), '<g class="series c0">', f'<path class="band" d="{ground}"/>']
    parts += [f'<path class="line" d="{line}"/>', "</g>"]
    if limit is not None:
        parts.append(f'<path class="limit" d="M{LEFT} {up(limit):.1f}H{WIDTH - RIGHT}"/>')
        at = f'x="{LEFT + 6}" y="{up(limit) + 14:.1f}"'
        parts.append(f'<text class="limit-label" {at}>lifetime cap</text>')
    return _whole(parts, title)


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
    return _whole(parts, title, TOP + len(shown) * high + 6)


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
    return _whole(parts, title, top + len(downs) * high + 4)


def spark(values: Numbers, *, title: str, width: int = 160, height: int = 36) -> str:
    """A line the size of a word."""
    up = spanning(values, height - 3, 3)
    across = Scale(0, max(len(values) - 1, 1), 2, width - 2)
    line = "".join(_polylines(range(len(values)), values, across, up))
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label={quoteattr(title)}><g class="series c0">{line}</g></svg>'
    )


def _times(times: Sequence[int]) -> Scale:
    low, high = times[0], times[-1]
    if low == high:
        low, high = low - 43_200, high + 43_200
    return Scale(low, high, LEFT + 6, WIDTH - RIGHT - 6)


def _whole(parts: Iterable[str], title: str, height: int = HEIGHT) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' xmlns="http://www.w3.org/2000/svg" aria-label={quoteattr(title)}>'
        f"{''.join(parts)}</svg>"
    )


def _axes(across: Scale, up: Scale) -> Iterator[str]:
    for number in round_numbers(up):
        y = up(number)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        at = f'x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"'
        yield f'<text class="tick" {at}>{number:g}</text>'
    for moment, text in round_moments(int(across.low), int(across.high)):
        x = across(moment)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{text}</text>'


def _shades(shades: Iterable[Shade], across: Scale) -> Iterator[str]:
    for since, until, what in shades:
        start, end = max(since, int(across.low)), min(until, int(across.high))
        if start < end:
            at = f'x="{across(start):.1f}" width="{across(end) - across(start):.1f}"'
            tall = HEIGHT - TOP - BOTTOM
            yield f'<rect class="shade" {at} y="{TOP}" height="{tall}">'
            yield f"<title>{escape(what)}</title></rect>"


def _marks(marks: Iterable[Mark], across: Scale) -> Iterator[str]:
    ground = HEIGHT - BOTTOM
    for moment, kind, what in marks:
        if across.low <= moment <= across.high:
            x = across(moment)
            yield f'<path class="mark {kind}" d="M{x:.1f} {ground}l-4 -8h8z">'
            yield f"<title>{escape(what)}</title></path>"


def _band(times: Sequence[int], line: Line, across: Scale, up: Scale) -> Iterator[str]:
    if line.lower is None or line.upper is None:
        return
    ends = zip(times, line.lower, line.upper, strict=True)
    for whole, stretch in groupby(ends, lambda each: None not in each):
        if whole:
            there = list(stretch)
            above = [f"{across(at):.1f} {up(high or 0):.1f}" for at, _, high in there]
            below = [f"{across(at):.1f} {up(low or 0):.1f}" for at, low, _ in reversed(there)]
            yield f'<path class="band" d="M{"L".join([*above, *below])}Z"/>'


def _polylines(times: Sequence[int], values: Numbers, across: Scale, up: Scale) -> Iterator[str]:
    points = zip(times, values, strict=True)
    for whole, stretch in groupby(points, lambda each: each[1] is not None):
        if whole:
            there = [f"{across(at):.1f} {up(number or 0):.1f}" for at, number in stretch]
            alone = there * 2 if len(there) == 1 else there
            yield f'<path class="line" d="M{"L".join(alone)}"/>'


def _dots(times: Sequence[int], values: Numbers, across: Scale, up: Scale) -> Iterator[str]:
    """Each a line of no length with round ends: one path for all."""
    found = (
        f"M{across(at):.1f} {up(number):.1f}h0"
        for at, number in zip(times, values, strict=True)
        if number is not None and up.low <= number <= up.high
    )
    yield f'<path class="dots" d="{"".join(found)}"/>'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
