"""The charts of a job, one for each question: what was measured, and in which form it reads best.

Quantiles of one batch are a fan; groups are small multiples on one scale; cells of a histogram,
and more rows than that, are a map over time; a few rows are lines. The forms follow from the labels
of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import (
    LEFT,
    LETTER,
    MINI,
    SMALL,
    WIDE,
    WIDTH,
    DrawnChart,
    Frame,
    across_of,
    moments,
    whole,
)
from streamdp.reports.charts.lines import Mark, Shade, fan, has_numbers, lines
from streamdp.reports.releases.happenings import Happenings
from streamdp.reports.releases.headline import rounded
from streamdp.reports.releases.series import NESTED, Picture, Series

CELLS = "cell"
"""Label of rows that are cells of one histogram."""

FEW, MANY = 3, 24
"""Rows that one chart shows as lines, and groups that have a chart each; of more a map is drawn."""

AS_MAP = "Each row is a series; the stronger its colour, the larger, as the key above says."

HEAD = 28
"""Room above a chart that is one of several in a file, for its title."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of a panel.

    Args:
        name: What it shows of the panel; empty where it shows all.
        rows: Names of its series in the whole picture.
        sizes: The chart by the name of its size: `wide` and `small`, or `small` alone.
    """

    name: str
    rows: tuple[str, ...]
    sizes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Panel:
    """One question, and the charts that answer it.

    Args:
        title: What was measured; empty where a job measures one thing.
        about: How to read it.
        charts: One, or one of each group on the same scale.
        form: Of the charts: `lines`, `fan`, or `map`, which has neither lines nor dots.
    """

    title: str
    about: str
    charts: tuple[Chart, ...]
    form: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A chart to be drawn: its name, its series with and without shared labels, and its form."""

    name: str
    picture: Picture
    form: str
    reach: tuple[float, float]

    def drawn(self, frame: Frame, marks: Iterable[Mark], shades: Iterable[Shade]) -> DrawnChart:
        if self.form == "map":
            return over_time(self.picture, frame)
        draw = fan if self.form == "fan" else lines
        return draw(self.picture, frame, marks, shades, self.reach)


def panels(job: str, picture: Picture, events: Happenings | None = None) -> list[Panel]:
    """A panel for each thing that a job measures; none of choices, which have their own chart."""
    if any(each.chart == "choices" for each in picture.columns):
        return []
    marks, shades = _besides(picture, events)
    asked = _asked(picture)
    found = []
    for title, about, parts in asked:
        charts = []
        for part in parts:
            text = ": ".join(filter(None, (job, title, part.name))) + ", over time"
            sizes = {"small": MINI if len(parts) > FEW + 1 else SMALL}
            if len(asked) == len(parts) == 1:
                sizes["wide"] = WIDE
            charts.append(
                Chart(
                    part.name,
                    tuple(each.key or each.name for each in part.picture.series),
                    {n: part.drawn(f, marks, shades).svg(text) for n, f in sizes.items()},
                )
            )
        found.append(Panel(title, about, tuple(charts), parts[0].form))
    return found


def chart(
    picture: Picture,
    marks: Iterable[Mark] = (),
    shades: Iterable[Shade] = (),
    *,
    title: str,
) -> str:
    """The panels below each other in one SVG, for files and printers; empty without numbers."""
    marks, shades = tuple(marks), tuple(shades)
    asked = _asked(picture)
    flat = [(name, part) for name, _, parts in asked for part in parts]
    if len(flat) == 1 and not asked[0][0]:
        return flat[0][1].drawn(WIDE, marks, shades).svg(title)
    elements, y = list[str](), 0
    for name, _, parts in asked:
        said = f'<text class="panel" x="{LEFT}" y="{y + HEAD - 8}">{escape(name)}</text>'
        elements, y = ([*elements, said], y + HEAD) if name else (elements, y)
        frame = WIDE if len(parts) == 1 else Frame(WIDTH // 3, 190, 48)
        across = WIDTH // frame.wide
        for at, part in enumerate(parts):
            drawn = part.drawn(frame, marks, shades)
            head = 18 if part.name else 0
            x, top = at % across * frame.wide, y + at // across * (drawn.high + head)
            if part.name:
                text = f'<text class="name" x="{x + frame.left}" y="{top + 12}">'
                elements.append(f"{text}{escape(part.name)}</text>")
            inner = "".join(drawn.parts)
            elements.append(f'<g transform="translate({x} {top + head})">{inner}</g>')
            bottom = top + head + drawn.high
        y = bottom
    return whole(elements, title, y) if elements else ""


def chart_of(job: str, picture: Picture, events: Happenings) -> str:
    """The chart of a job with other events; none of choices, which have their own."""
    if any(each.chart == "choices" for each in picture.columns):
        return ""
    title = f"{job}: releases over time, {len(picture.series)} series"
    if picture.said:
        title = f"{title}, {picture.said}"
    return chart(picture, *_besides(picture, events), title=title)


def _besides(
    picture: Picture, events: Happenings | None
) -> tuple[tuple[Mark, ...], tuple[Shade, ...]]:
    """Other events as marks, and where a release stood as shades; only along time."""
    if events is None or picture.axis != "time":
        return (), ()
    marks = (
        (each.moment, each.what, f"{each.batch}: {each.meaning}")
        for each in events.events
        if each.what != "no"
    )
    shades = ((since, until, f"the release of {of} stands") for since, until, of in events.carried)
    return tuple(marks), tuple(shades)


def _asked(picture: Picture) -> list[tuple[str, str, list[_Part]]]:
    """Title of each panel, how to read it, and its charts."""
    found = []
    for title, part in picture.panels().items():
        kept = part.only([each.name for each in part.series if has_numbers(each)])
        if kept.series:
            unit = kept.unit if title and kept.unit != picture.unit else ""
            found.append((f"{title}, in {unit}" if unit else title, *_parts(kept)))
    return found


def _parts(picture: Picture) -> tuple[str, list[_Part]]:
    """How to read the charts of one panel, and the charts."""
    differ, reach = set(picture.differing()), picture.reach()
    interval = "the band is its interval" if picture.series[0].best.lower else ""
    groups = picture.groups()
    if NESTED in differ and all(len(each.series) > 2 for each in groups.values()):
        if len(groups) > MANY:
            return AS_MAP, [_map(picture, reach)]
        return (
            "Bands lie between pairs of quantiles; the line is the median, with its interval.",
            [_Part(name, each, "fan", reach) for name, each in groups.items()]
            if len(groups) > 1
            else [_Part("", next(iter(groups.values())), "fan", reach)],
        )
    many = len(picture.series)
    if many > FEW and (CELLS in differ or len(differ) > 1 or many > MANY):
        return AS_MAP, [_map(picture, reach)]
    read = f"; {interval}" if interval else ""
    read = f"The line is {_drawn(picture.series[0])}{read}."
    if many <= FEW:
        return read, [_Part("", picture, "lines", reach)]
    whole = [each.name for each in picture.series if (each.key or each.name) in picture.together]
    alike = picture.only([each.name for each in picture.series if each.name not in whole])
    shared = alike.reach()
    scale = "Groups on one scale, all together on another" if whole else "All on one scale"
    return f"{scale}. {read}", [
        _Part(
            picture.called(each),
            one := picture.only([each.name]),
            "lines",
            one.reach() if each.name in whole else shared,
        )
        for each in picture.series
    ]


def _drawn(series: Series) -> str:
    """What the line of a series is: what was released, or what follows from it."""
    return "the value" if series.estimate is None else f"the value {series.estimate.column}"


def _map(picture: Picture, reach: tuple[float, float]) -> _Part:
    return _Part("", picture, "map", reach)


MOST_ROWS = 60
"""The most rows of a map."""

NAMES_WIDE, HIGH = 170, 15
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
    wide = _cell_width(picture, frame.end - left)
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
    letters = int(min(NAMES_WIDE, frame.wide * 0.3) / LETTER)
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def _cell_width(picture: Picture, room: float) -> float:
    """Width of a cell: what usually lies between two batches."""
    steps = [after - before for before, after in pairwise(picture.times)]
    span = picture.times[-1] - picture.times[0]
    return max(room * median(steps) / (span + median(steps)), 1.0) if span else room / 2
