"""The charts that a kind brings: each column of a release may ask for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import (
    LETTER,
    SIZES,
    WIDE,
    DrawnChart,
    Frame,
    Scale,
    across_of,
    axes,
    colours,
    moments,
)
from streamdp.reports.charts.lines import has_numbers, lines
from streamdp.reports.releases.series import Picture, Series, candidate, columns_of, picture
from streamdp.store.reading.places import places_of
from streamdp.types import Column, Release


@dataclass(frozen=True, slots=True)
class OwnChart:
    """One chart of a kind.

    Args:
        title: What it shows.
        sizes: The chart by the name of its size: `wide` and `small`.
        legend: The class of each colour and what has it.
    """

    title: str
    sizes: dict[str, str]
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def svg(self) -> str:
        """The chart as it stands in files."""
        return self.sizes.get("wide", "")


def own_charts(
    job: str, releases: Sequence[Release], declared: Sequence[Column], part: str = ""
) -> list[OwnChart]:
    """Charts that columns of releases ask for; none that would be empty.

    Args:
        job: Whose releases they are.
        releases: In any order.
        declared: Columns that the kind declares.
        part: The value of the first label that is looked at; all, if empty.
    """
    columns = columns_of(releases, declared)
    asked = dict.fromkeys((each.chart, each.name) for each in columns if each.chart is not None)
    found, coarse = [], list[str]()
    for form, name in asked:
        whole = picture(releases, declared, name)
        whole = whole.part(part) if part else whole
        if form != "choices" or _is_fine(whole):
            found.append(_over_time(job, name, form, whole))
        else:
            coarse.append(name)
    if coarse:
        found.append(_choices(job, releases, columns, part, coarse))
    return [each for each in found if each.sizes]


def _is_fine(whole: Picture) -> bool:
    """Whether a parameter of candidates is a number with more values than a row each can show."""
    return len({each for series in whole.series for each in series.raw.values}) > MOST_CANDIDATES


def _over_time(job: str, name: str, form: str, whole: Picture) -> OwnChart:
    said = name.replace("_", " ")
    if form == "shares":
        title = f"{said}: shares of the whole"
        return OwnChart(title, _sized(partial(stacked, whole), f"{job}: {title}"), legend(whole))
    if len({each.raw.values for each in whole.series}) == 1:
        whole = whole.only([whole.series[0].name])
    if not any(map(has_numbers, whole.series)):
        return OwnChart(said, {})
    return OwnChart(said, _sized(partial(lines, whole), f"{job}: {said} over time"))


def _sized(draw: Callable[[Frame], DrawnChart | None], title: str) -> dict[str, str]:
    """A chart in both sizes; none where nothing can be drawn."""
    found = {name: draw(frame) for name, frame in SIZES.items()}
    return {name: drawn.svg(title) for name, drawn in found.items() if drawn is not None}


def _choices(
    job: str, releases: Sequence[Release], columns: Sequence[Column], part: str, names: list[str]
) -> OwnChart:
    labels = [each.name for each in columns if each.role == "label"]
    made = []
    places = places_of(releases)
    for release, at in zip(places.releases, places.at, strict=True):
        for row in release.rows:
            said = [str(row[label]) for label in labels if row.get(label) is not None]
            if part and said[:1] != [part]:
                continue
            place = " · ".join(said[bool(part) :]) or "choice"
            made.append(Choice(at, release.batch, place, candidate(row, names)))
    title = "what was chosen"
    drawn = partial(drawn_choices, made, picture(releases))
    return OwnChart(title, _sized(drawn, f"{job}: {title} over time"))


MOST_CANDIDATES = 24
"""Candidates that have a row of their own: those chosen most often; others share the last."""

OTHERS = "others"
ROW_HIGH, SIDE = 18, 230
"""Height of a row, and room for the names of rows at most."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: when, in which batch, in which place, and what was chosen."""

    moment: int
    batch: str
    place: str
    candidate: str


def drawn_choices(
    made: Sequence[Choice], picture: Picture, frame: Frame = WIDE
) -> DrawnChart | None:
    """A dot for each choice, in the colour of its place; nothing where none was made.

    Candidates stand by how often they were chosen, which their rows end with.

    Args:
        made: In any order.
        picture: Of the same releases, for the axis of their batches.
        frame: Of the chart; its height follows from the rows.
    """
    if not made:
        return None
    rows = _rows(made)
    letters = int(min(SIDE, frame.wide * 0.3) / LETTER)
    names = {name: name if len(name) <= letters else f"{name[: letters - 1]}…" for name in rows}
    left = round(max(map(len, names.values())) * LETTER) + 16
    high = frame.top + len(rows) * ROW_HIGH + frame.bottom
    frame = replace(frame, left=left, right=frame.right + 44, high=high)
    across = across_of(picture, frame)
    parts = [*moments(across, frame.ground)]
    for name, (row, often) in rows.items():
        y = frame.top + row * ROW_HIGH + ROW_HIGH / 2
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{frame.end}"/>')
        parts.append(f'<text class="tick" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">')
        parts.append(f"{escape(names[name])}</text>")
        parts.append(f'<text class="tick" x="{frame.end + 4}" y="{y + 4:.1f}">{often} ×</text>')
    places = sorted({each.place for each in made}, key=_in_order)
    others = len(rows) - 1
    for place, colour in zip(places, colours(places), strict=True):
        parts.append(f'<g class="series {colour}"><title>{escape(place)}</title>')
        for each in (one for one in made if one.place == place):
            row = rows[each.candidate][0] if each.candidate in rows else others
            y = frame.top + row * ROW_HIGH + ROW_HIGH / 2
            what = escape(f"{each.batch}: {each.candidate}")
            parts.append(f'<path class="choice" d="M{across(each.moment):.1f} {y:.1f}h0">')
            parts.append(f"<title>{what}</title></path>")
        parts.append("</g>")
    return DrawnChart(tuple(parts), frame.wide, frame.high, across)


def _rows(made: Sequence[Choice]) -> dict[str, tuple[int, int]]:
    """The row of each candidate and how often it was chosen: numbers in their order, names by that.

    All others share the last row.
    """
    often = Counter(each.candidate for each in made)
    many = len(often) > MOST_CANDIDATES
    kept = [name for name, _ in often.most_common(MOST_CANDIDATES - many)]
    if all(_in_order(name)[0] < float("inf") for name in kept):
        kept.sort(key=_in_order)
    found = {name: (row, often[name]) for row, name in enumerate(kept)}
    if many:
        found[OTHERS] = (len(kept), sum(often.values()) - sum(often[name] for name in kept))
    return found


def _in_order(name: str) -> tuple[float, str]:
    first = name.split(" · ")[0].rpartition(" ")[2]
    try:
        return float(first), name
    except ValueError:
        return float("inf"), name


MOST_LAYERS = 8
"""Series that are told apart: those with the largest share in all; the rest is one."""

VISIBLE = 0.02
"""A share that can be seen; series that never have it are in the rest."""


def stacked(picture: Picture, frame: Frame = WIDE) -> DrawnChart | None:
    """Share of each series in the sum over all, at each moment; nothing without any share."""
    layers = _layers(picture)
    if not layers:
        return None
    across, up = across_of(picture, frame), Scale(0.0, 1.0, frame.ground, frame.top)
    parts = [*axes(across, up, frame)]
    ground = [0.0] * len(picture.times)
    for (name, shares), colour in zip(layers, colours([name for name, _ in layers]), strict=True):
        above = [low + share for low, share in zip(ground, shares, strict=True)]
        ends = [
            *((across(at), up(top)) for at, top in zip(picture.times, above, strict=True)),
            *reversed(
                [(across(at), up(low)) for at, low in zip(picture.times, ground, strict=True)]
            ),
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)
        parts.append(f'<g class="series {colour}"><title>{escape(name)}</title>')
        parts.append(f'<path class="layer" d="M{path}Z"/></g>')
        ground = above
    return DrawnChart(tuple(parts), frame.wide, frame.high, across)


def legend(picture: Picture) -> tuple[tuple[str, str], ...]:
    """The colour and the name of each layer, the lowest first."""
    names = [name for name, _ in _layers(picture)]
    return tuple(zip(colours(names), names, strict=True))


def _layers(picture: Picture) -> list[tuple[str, list[float]]]:
    """Names and shares, the largest in all first; what is left of many is the last layer."""
    values = {each.name: _numbers(each) for each in picture.series}
    sums = [sum(column) for column in zip(*values.values(), strict=True)]
    if not any(total > 0 for total in sums):
        return []
    shares = {
        name: [
            number / total if total > 0 else 0.0 for number, total in zip(row, sums, strict=True)
        ]
        for name, row in values.items()
    }
    ordered = sorted(shares, key=lambda name: -sum(shares[name]))
    seen = [name for name in ordered if max(shares[name]) >= VISIBLE]
    told = [(name, shares[name]) for name in seen[: MOST_LAYERS - 1]]
    if len(ordered) > len(told):
        rest = [shares[name] for name in ordered if name not in dict(told)]
        told.append((f"{len(rest)} others", [sum(column) for column in zip(*rest, strict=True)]))
    return told


def _numbers(series: Series) -> Sequence[float]:
    return [max(number or 0.0, 0.0) for number in series.raw.values]
