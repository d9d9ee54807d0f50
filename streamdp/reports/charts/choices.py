"""Which candidate was chosen, over time, as SVG: a row a candidate, a dot a choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import RIGHT, TOP, WIDTH, across_of, colours, moments, whole
from streamdp.reports.releases.series import Picture

MOST = 24
"""Candidates that have a row of their own: those chosen most often; others share the last."""

OTHERS = "others"
HIGH, SIDE, BELOW = 18, 230, 28


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: when, in which batch, in which place, and what was chosen."""

    moment: int
    batch: str
    place: str
    candidate: str


def choices(made: Sequence[Choice], picture: Picture, *, title: str) -> str:
    """A dot for each choice, in the colour of its place; nothing where none was made.

    Args:
        made: In any order.
        picture: Of the same releases, for the axis of their batches.
        title: Of the chart.
    """
    if not made:
        return ""
    rows = _rows(made)
    ground = TOP + len(rows) * HIGH
    across = across_of(picture, SIDE)
    parts = [*moments(across, ground)]
    for name, row in rows.items():
        y = TOP + row * HIGH + HIGH / 2
        parts.append(f'<path class="grid" d="M{SIDE} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{SIDE - 8}" y="{y + 4:.1f}" text-anchor="end">')
        parts.append(f"{escape(name[:34])}</text>")
    places = sorted({each.place for each in made}, key=_in_order)
    for place, colour in zip(places, colours(places), strict=True):
        parts.append(f'<g class="series {colour}"><title>{escape(place)}</title>')
        for each in (one for one in made if one.place == place):
            y = TOP + rows.get(each.candidate, len(rows) - 1) * HIGH + HIGH / 2
            what = escape(f"{each.batch}: {each.candidate}")
            parts.append(f'<path class="choice" d="M{across(each.moment):.1f} {y:.1f}h0">')
            parts.append(f"<title>{what}</title></path>")
        parts.append("</g>")
    return whole(parts, title, ground + BELOW)


def _rows(made: Sequence[Choice]) -> dict[str, int]:
    """The row of each candidate: by its name, numbers in their order; others below."""
    often = Counter(each.candidate for each in made)
    many = len(often) > MOST
    kept = [name for name, _ in often.most_common(MOST - many)]
    return {name: row for row, name in enumerate([*sorted(kept, key=_in_order), *[OTHERS] * many])}


def _in_order(name: str) -> tuple[float, str]:
    first = name.split(" · ")[0].rpartition(" ")[2]
    try:
        return float(first), name
    except ValueError:
        return float("inf"), name
