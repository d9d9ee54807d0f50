"""Which candidate was chosen, over time, as SVG: a row a candidate, a dot a choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import (
    LETTER,
    WIDE,
    DrawnChart,
    Frame,
    across_of,
    colours,
    moments,
)
from streamdp.reports.releases.series import Picture

MOST = 24
"""Candidates that have a row of their own: those chosen most often; others share the last."""

OTHERS = "others"
HIGH, SIDE = 18, 230
"""Height of a row, and room for the names of rows at most."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: when, in which batch, in which place, and what was chosen."""

    moment: int
    batch: str
    place: str
    candidate: str


def choices(made: Sequence[Choice], picture: Picture, frame: Frame = WIDE) -> DrawnChart | None:
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
    high = frame.top + len(rows) * HIGH + frame.bottom
    frame = replace(frame, left=left, right=frame.right + 44, high=high)
    across = across_of(picture, frame)
    parts = [*moments(across, frame.ground)]
    for name, (row, often) in rows.items():
        y = frame.top + row * HIGH + HIGH / 2
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
            y = frame.top + row * HIGH + HIGH / 2
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
    many = len(often) > MOST
    kept = [name for name, _ in often.most_common(MOST - many)]
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
