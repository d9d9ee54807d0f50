"""Series over time as SVG, for pages without scripts, reports and printers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.charts.frame import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Across,
    across_of,
    axes,
    colours,
    time_axis,
    whole,
)
from streamdp.reports.charts.scales import Scale, spanning
from streamdp.reports.releases.happenings import Happenings
from streamdp.reports.releases.series import Line, Numbers, Picture, Series

HEAD, NAME_HIGH, MOST_NAMED = 28, 14, 14
"""Room above a panel, the height of a name, and lines that have one at their end."""

Mark = tuple[int, str, str]
"""Something else that happened: when, its class, and what it is."""

Shade = tuple[int, int, str]
"""A stretch of time that is marked, and what it is."""


def chart(
    picture: Picture,
    marks: Iterable[Mark] = (),
    shades: Iterable[Shade] = (),
    *,
    title: str,
) -> str:
    """Series over time: what was drawn as dots, the best line, and the interval around it.

    Measures that differ in what they are have a panel each, with an axis of its own.
    """
    if not any(_has_numbers(each) for each in picture.series):
        return ""
    panels = picture.panels()
    marks, shades = tuple(marks), tuple(shades)
    if len(panels) < 2:
        return whole(_panel(picture, marks, shades), title)
    parts = []
    for row, (name, part) in enumerate(panels.items()):
        y = row * (HEIGHT + HEAD)
        parts.append(f'<text class="panel" x="{LEFT}" y="{y + HEAD - 6}">{escape(name)}</text>')
        drawn = "".join(_panel(part, marks, shades))
        parts.append(f'<g transform="translate(0 {y + HEAD})">{drawn}</g>')
    return whole(parts, title, len(panels) * (HEIGHT + HEAD))


def _has_numbers(series: Series) -> bool:
    return any(number is not None for number in series.raw.values)


def _panel(picture: Picture, marks: Iterable[Mark], shades: Iterable[Shade]) -> list[str]:
    """Axes, lines and their names, in the frame of one chart."""
    across = across_of(picture)
    up = spanning(picture.reach(), HEIGHT - BOTTOM, TOP)
    parts = [*axes(across, up), *_shades(shades, across)]
    shown = list(zip(picture.series, colours([s.name for s in picture.series]), strict=True))
    for series, colour in shown:
        drawn = [*_band(picture.times, series.best, across, up)]
        if series.estimate is not None:
            drawn += _dots(picture.times, series.raw.values, across, up)
        drawn += _polylines(picture.times, series.best.values, across, up)
        parts += [
            f'<g class="series {colour}"><title>{escape(series.name)}</title>',
            *drawn,
            "</g>",
        ]
    return [*parts, *_flags(picture, across, up), *_names(shown, up), *_marks(marks, across)]


def _flags(picture: Picture, across: Across, up: Scale) -> Iterator[str]:
    """A diamond on each value that is flagged, which says why."""
    for series in picture.series:
        best = series.best.values
        for at, value, flag, batch in zip(
            picture.times, best, series.flags, picture.batches, strict=False
        ):
            if flag is not None and value is not None:
                x, y = across(at), up.within(value)
                yield f'<path class="flagged" d="M{x:.1f} {y - 6:.1f}l5 6l-5 6l-5 -6z">'
                yield f"<title>{escape(f'{batch}: {flag}')}</title></path>"


def _names(shown: Sequence[tuple[Series, str]], up: Scale) -> Iterator[str]:
    """The names of a few lines at their ends, none over another."""
    if not 1 < len(shown) <= MOST_NAMED:
        return
    ends = []
    for series, colour in shown:
        last = next((each for each in reversed(series.best.values) if each is not None), None)
        if last is not None:
            ends.append((up.within(last) - 6, series.name, colour))
    ends.sort(reverse=True)
    floor = HEIGHT - BOTTOM - 2.0
    lowest = TOP + NAME_HIGH
    for at, (y, name, colour) in enumerate(ends):
        floor = max(min(y, floor), lowest + (len(ends) - 1 - at) * NAME_HIGH)
        where = f'x="{WIDTH - RIGHT - 4}" y="{floor:.1f}" text-anchor="end"'
        yield f'<text class="name {colour}" {where}>{escape(name[:40])}</text>'
        floor -= NAME_HIGH


def chart_of(job: str, picture: Picture, events: Happenings) -> str:
    """The chart of a job with other events; none of choices, which have their own."""
    if any(each.chart == "choices" for each in picture.columns):
        return ""
    title = f"{job}: releases over time, {len(picture.series)} series"
    if picture.axis != "time":
        return chart(picture, title=f"{title}, {picture.said}")
    marks = [
        (each.moment, each.what, f"{each.batch}: {each.meaning}")
        for each in events.events
        if each.what != "no"
    ]
    shades = [(since, until, f"the release of {of} stands") for since, until, of in events.carried]
    return chart(picture, marks, shades, title=title)


def steps(points: Sequence[tuple[int, float]], limit: float | None, *, title: str) -> str:
    """A sum that grows in steps, under a limit."""
    if not points:
        return ""
    across = time_axis([at for at, _ in points])
    tops = [number for _, number in points] + ([] if limit is None else [limit])
    up = spanning(tops, HEIGHT - BOTTOM, TOP, zero=True)
    path = [f"M{across(points[0][0]):.1f} {up(points[0][1]):.1f}"]
    path += [f"H{across(at):.1f}V{up(number):.1f}" for at, number in points[1:]]
    line = " ".join(path)
    ground = f"{line} V{up(0):.1f} H{across(points[0][0]):.1f}Z"
    parts = [*axes(across, up), '<g class="series c0">', f'<path class="band" d="{ground}"/>']
    parts += [f'<path class="line" d="{line}"/>', "</g>"]
    if limit is not None:
        parts.append(f'<path class="limit" d="M{LEFT} {up(limit):.1f}H{WIDTH - RIGHT}"/>')
        at = f'x="{LEFT + 6}" y="{up(limit) + 14:.1f}"'
        parts.append(f'<text class="limit-label" {at}>lifetime cap</text>')
    return whole(parts, title)


def spark(values: Numbers, *, title: str) -> str:
    """A line the size of a word."""
    width, height = 160, 36
    up = spanning(values, height - 3, 3)
    across = Scale(0, max(len(values) - 1, 1), 2, width - 2)
    line = "".join(_polylines(range(len(values)), values, across, up))
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label={quoteattr(title)}><g class="series c0">{line}</g></svg>'
    )


def _shades(shades: Iterable[Shade], across: Across) -> Iterator[str]:
    for since, until, what in shades:
        start, end = max(since, int(across.scale.low)), min(until, int(across.scale.high))
        if start < end:
            at = f'x="{across(start):.1f}" width="{across(end) - across(start):.1f}"'
            tall = HEIGHT - TOP - BOTTOM
            yield f'<rect class="shade" {at} y="{TOP}" height="{tall}">'
            yield f"<title>{escape(what)}</title></rect>"


def _marks(marks: Iterable[Mark], across: Across) -> Iterator[str]:
    ground = HEIGHT - BOTTOM
    for moment, kind, what in marks:
        if across.scale.low <= moment <= across.scale.high:
            x = across(moment)
            yield f'<path class="mark {kind}" d="M{x:.1f} {ground}l-4 -8h8z">'
            yield f"<title>{escape(what)}</title></path>"


def _band(times: Sequence[int], line: Line, across: Across, up: Scale) -> Iterator[str]:
    if line.lower is None or line.upper is None:
        return
    ends = zip(times, line.lower, line.upper, strict=True)
    for there_are, stretch in groupby(ends, lambda each: None not in each):
        if there_are:
            there = list(stretch)
            above = [f"{across(at):.1f} {up.within(high or 0):.1f}" for at, _, high in there]
            below = [
                f"{across(at):.1f} {up.within(low or 0):.1f}" for at, low, _ in reversed(there)
            ]
            yield f'<path class="band" d="M{"L".join([*above, *below])}Z"/>'


def _polylines(
    times: Sequence[int], values: Numbers, across: Across | Scale, up: Scale
) -> Iterator[str]:
    points = zip(times, values, strict=True)
    for there_are, stretch in groupby(points, lambda each: each[1] is not None):
        if there_are:
            there = [f"{across(at):.1f} {up(number or 0):.1f}" for at, number in stretch]
            alone = there * 2 if len(there) == 1 else there
            yield f'<path class="line" d="M{"L".join(alone)}"/>'


def _dots(times: Sequence[int], values: Numbers, across: Across, up: Scale) -> Iterator[str]:
    """Each a line of no length with round ends: one path for all."""
    found = (
        f"M{across(at):.1f} {up(number):.1f}h0"
        for at, number in zip(times, values, strict=True)
        if number is not None and up.low <= number <= up.high
    )
    yield f'<path class="dots" d="{"".join(found)}"/>'
