"""Series over time as SVG, for pages without scripts, reports and printers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

from streamdp.reports.charts.frame import (
    LONGEST_NAME,
    WIDE,
    Across,
    DrawnChart,
    Frame,
    Scale,
    across_of,
    axes,
    colours,
    number_axis,
    spanning,
    time_axis,
    whole,
)
from streamdp.reports.releases.series import NESTED, Numbers, Picture, Series, SeriesLine

NAME_HIGH, MOST_NAMED = 14, 14
"""Height of a name, and lines that have one at their end."""

USUAL, MISSED = 0.8, 1.5
"""Share of steps that are alike where batches are regular, and steps that leave a gap there."""

Mark = tuple[int, str, str]
"""Something else that happened: when, its class, and what it is."""

Shade = tuple[int, int, str]
"""A stretch of time that is marked, and what it is."""


def has_numbers(series: Series) -> bool:
    """Whether anything of a series can be drawn."""
    return any(number is not None for number in series.raw.values)


def lines(
    picture: Picture,
    frame: Frame = WIDE,
    marks: Iterable[Mark] = (),
    shades: Iterable[Shade] = (),
    reach: tuple[float, float] | None = None,
) -> DrawnChart:
    """Lines over time: what was drawn as dots, the best line, and the interval around it.

    Args:
        picture: The series.
        frame: Of the chart.
        marks: Other events.
        shades: Stretches of time that are marked.
        reach: Lowest and highest value of the axis; by default as the series are.
    """
    shown = list(zip(picture.series, colours([s.name for s in picture.series]), strict=True))
    names = [picture.called(each) for each, _ in shown] if 1 < len(shown) <= MOST_NAMED else []
    frame = frame.named(names)
    across, up = _plane(picture, frame, reach)
    parts = [*axes(across, up, frame), *_shades(shades, across, frame)]
    for series, colour in shown:
        parts += _line(picture, series, colour, across, up)
    ends = [(name, *each) for name, each in zip(names, shown, strict=False)]
    parts += [*_flags(picture, picture.series, across, up), *_names(ends, up, frame)]
    return DrawnChart((*parts, *_marks(marks, across, frame)), frame.wide, frame.high, across)


def fan(
    picture: Picture,
    frame: Frame = WIDE,
    marks: Iterable[Mark] = (),
    shades: Iterable[Shade] = (),
    reach: tuple[float, float] | None = None,
) -> DrawnChart:
    """Quantiles over time: a band between each pair, and the middle one with its interval on top.

    Args:
        picture: Of rows that differ in their quantile alone.
        frame: Of the chart.
        marks: Other events.
        shades: Stretches of time that are marked.
        reach: Lowest and highest value of the axis; by default as the series are.
    """
    nested = picture.labels.index(NESTED)
    ordered = sorted(picture.series, key=lambda each: float(each.labels[nested] or 0))
    best = [each.told(each.best) for each in ordered]
    names = [picture.called(each) for each in ordered]
    frame = frame.named(names)
    across, up = _plane(picture, frame, reach)
    parts = [*axes(across, up, frame), *_shades(shades, across, frame)]
    middle = ordered[len(ordered) // 2]
    parts += _ahead(picture, middle, across, up)
    parts.append('<g class="series c0">')
    for low, high in zip(range(len(best) // 2), range(len(best) - 1, 0, -1), strict=False):
        between = SeriesLine("", best[low].values, best[low].values, best[high].values)
        parts.append(f"<g><title>{escape(f'{names[low]} to {names[high]}')}</title>")
        parts += [*_band(picture.times, between, across, up), "</g>"]
    parts.append("</g>")
    if len(ordered) % 2:
        parts += _line(picture, middle, "c1", across, up)
    ends = [
        (n, each, "c1" if each is middle else "c0") for n, each in zip(names, ordered, strict=True)
    ]
    parts += [*_flags(picture, [middle], across, up), *_names(ends, up, frame)]
    return DrawnChart((*parts, *_marks(marks, across, frame)), frame.wide, frame.high, across)


def _plane(
    picture: Picture, frame: Frame, reach: tuple[float, float] | None
) -> tuple[Across, Scale]:
    """The axes of a chart of series."""
    up = spanning(reach or picture.reach(), frame.ground, frame.top)
    return across_of(picture, frame), up


def _line(
    picture: Picture, series: Series, colour: str, across: Across, up: Scale
) -> Iterator[str]:
    """A series: its interval, what was drawn where that is not the line, and the line."""
    yield f'<g class="series {colour}"><title>{escape(picture.called(series))}</title>'
    best = series.told(series.best)
    yield from _band(picture.times, best, across, up)
    if series.estimate is not None:
        yield from _dots(picture.times, series.told(series.raw).values, across, up)
    yield from _polylines(picture.times, best.values, across, up)
    yield "</g>"


def _ahead(picture: Picture, series: Series, across: Across, up: Scale) -> Iterator[str]:
    """A faint band behind the last batch: where the next is expected."""
    each = picture.expected().get(series.key or series.name)
    if each is not None:
        left, right = across(picture.times[-1]) + 1, across.scale.end
        low, high = up.within(each.lower), up.within(each.upper)
        said = f"{picture.called(series)}, expected next: {each.lower:.4g} to {each.upper:.4g}"
        yield f'<g class="series c1"><title>{escape(said)}</title>'
        path = f"M{left:.1f} {low:.1f}H{right:.1f}V{high:.1f}H{left:.1f}z"
        yield f'<path class="ahead" d="{path}"/></g>'


def breaks(times: Sequence[int]) -> frozenset[int]:
    """Places after which a batch is missing, where batches are regular."""
    steps = [after - before for before, after in pairwise(times)]
    usual, often = Counter(steps).most_common(1)[0] if steps else (0, 0)
    if often < USUAL * len(steps) or len(steps) < 3:
        return frozenset()
    return frozenset(at for at, step in enumerate(steps) if step > MISSED * usual)


def _stretches(times: Sequence[int], numbers: Sequence[object]) -> Iterator[list[int]]:
    """Places that follow each other with neither a value nor a batch missing."""
    gaps, found = breaks(times), list[int]()
    for at, number in enumerate(numbers):
        if number is not None:
            found.append(at)
        if found and (number is None or at in gaps):
            yield found
            found = []
    if found:
        yield found


def _flags(picture: Picture, flagged: Iterable[Series], across: Across, up: Scale) -> Iterator[str]:
    """A diamond on each value that is flagged, which says why."""
    for series in flagged:
        for at, value in enumerate(series.best.values):
            flag = series.flag(at)
            if flag is not None and value is not None:
                x, y = across(picture.times[at]), up.within(value)
                yield f'<path class="flagged" d="M{x:.1f} {y - 6:.1f}l5 6l-5 6l-5 -6z">'
                yield f"<title>{escape(f'{picture.batches[at]}: {flag}')}</title></path>"


def _names(ends: Sequence[tuple[str, Series, str]], up: Scale, frame: Frame) -> Iterator[str]:
    """The names of lines beside their ends, none over another; the middle one where none fit."""
    found = []
    for name, series, colour in ends:
        line = series.told(series.best)
        last = next((each for each in reversed(line.values) if each is not None), None)
        if last is not None:
            found.append((up.within(last) + 4, name, colour))
    found.sort(reverse=True)
    lowest, floor = frame.top + NAME_HIGH - 4, frame.ground + 2.0
    room = max(int((floor - lowest) // NAME_HIGH) + 1, 1)
    if len(found) > room:
        found = [found[round(at * (len(found) - 1) / max(room - 1, 1))] for at in range(room)]
    for at, (y, name, colour) in enumerate(found):
        floor = max(min(y, floor), lowest + (len(found) - 1 - at) * NAME_HIGH)
        short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        yield f'<text class="name {colour}" x="{frame.end + 4}" y="{floor:.1f}">'
        yield f"{escape(short)}</text>"
        floor -= NAME_HIGH


def steps(
    points: Sequence[tuple[int, float]],
    limit: float,
    *,
    dated: bool,
    title: str,
    frame: Frame = WIDE,
) -> str:
    """A sum that grows in steps, under a limit.

    Args:
        points: Place and sum of each, in order.
        limit: The limit.
        dated: Whether places are POSIX seconds; else they are numbers.
        title: Of the chart, in words.
        frame: Of the chart.
    """
    across = (time_axis if dated else number_axis)([at for at, _ in points], frame)
    tops = [*(number for _, number in points), limit]
    up = spanning(tops, frame.ground, frame.top, zero=True)
    path = [f"M{across(points[0][0]):.1f} {up(points[0][1]):.1f}"]
    path += [f"H{across(at):.1f}V{up(number):.1f}" for at, number in points[1:]]
    line = " ".join(path)
    ground = f"{line} V{up(0):.1f} H{across(points[0][0]):.1f}Z"
    parts = [
        *axes(across, up, frame),
        '<g class="series c0">',
        f'<path class="band" d="{ground}"/>',
    ]
    parts += [f'<path class="line" d="{line}"/>', "</g>"]
    parts.append(f'<path class="limit" d="M{frame.left} {up(limit):.1f}H{frame.end}"/>')
    at = f'x="{frame.left + 6}" y="{up(limit) + 14:.1f}"'
    parts.append(f'<text class="limit-label" {at}>lifetime cap</text>')
    return whole(parts, title, frame.high, frame.wide)


def spark(values: Numbers, *, title: str) -> str:
    """A line the size of a word."""
    width, height = 160, 36
    up = spanning(values, height - 3, 3)
    across = Scale(0, max(len(values) - 1, 1), 2, width - 2)
    line = "".join(_polylines(range(len(values)), values, across, up))
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' preserveAspectRatio="none" role="img" aria-label={quoteattr(title)}>'
        f'<g class="series c0">{line}</g></svg>'
    )


def _shades(shades: Iterable[Shade], across: Across, frame: Frame) -> Iterator[str]:
    for since, until, what in shades:
        start, end = max(since, int(across.scale.low)), min(until, int(across.scale.high))
        if start < end:
            at = f'x="{across(start):.1f}" width="{across(end) - across(start):.1f}"'
            yield f'<rect class="shade" {at} y="{frame.top}" height="{frame.ground - frame.top}">'
            yield f"<title>{escape(what)}</title></rect>"


def _marks(marks: Iterable[Mark], across: Across, frame: Frame) -> Iterator[str]:
    for moment, kind, what in marks:
        if across.scale.low <= moment <= across.scale.high:
            x = across(moment)
            yield f'<path class="mark {kind}" d="M{x:.1f} {frame.ground}l-4 -8h8z">'
            yield f"<title>{escape(what)}</title></path>"


def _band(times: Sequence[int], line: SeriesLine, across: Across, up: Scale) -> Iterator[str]:
    if line.lower is None or line.upper is None:
        return
    lower, upper = line.lower, line.upper
    known = [None if a is None or b is None else a for a, b in zip(lower, upper, strict=True)]
    for stretch in _stretches(times, known):
        above = [f"{across(times[at]):.1f} {up.within(upper[at] or 0):.1f}" for at in stretch]
        below = [f"{across(times[at]):.1f} {up.within(lower[at] or 0):.1f}" for at in stretch]
        yield f'<path class="band" d="M{"L".join([*above, *reversed(below)])}Z"/>'


def _polylines(
    times: Sequence[int], values: Numbers, across: Across | Scale, up: Scale
) -> Iterator[str]:
    for stretch in _stretches(times, values):
        there = [f"{across(times[at]):.1f} {up.within(values[at] or 0):.1f}" for at in stretch]
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
