"""Answers as SVG: a row each, with its interval and its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from streamdp.errors import StreamdpError
from streamdp.reports.charts.frame import RIGHT, TOP, WIDTH, alone, whole
from streamdp.reports.charts.scales import Scale, round_numbers, spanning
from streamdp.types import Json

HIGH, SIDE, BELOW = 22, 300, 28


def drawn(job: str, rows: Sequence[Mapping[str, Json]]) -> str:
    """The answers about a job, as an SVG file.

    Args:
        job: Its name.
        rows: With `value`, or `change`, between `lower` and `upper`.

    Raises:
        StreamdpError: There are none.
    """
    if not rows:
        raise StreamdpError("there is no answer to draw")
    ends = [float(row[name]) for row in rows for name in ("lower", "upper")]
    across = spanning(ends, SIDE, WIDTH - RIGHT)
    ground = TOP + HIGH * len(rows)
    parts = [*_grid(across, ground)]
    for place, row in enumerate(rows):
        y = TOP + HIGH * (place + 0.5)
        value = row["value"] if "value" in row else row["change"]
        name = " · ".join(str(row[key]) for key in ("period", "question") if key in row)
        low, high, at = (across(float(each)) for each in (row["lower"], row["upper"], value))
        said = escape(f"{name}: {value:g}, {row['lower']:g} to {row['upper']:g}")
        parts += [
            f'<text class="tick" x="{SIDE - 8}" y="{y + 4:.1f}" text-anchor="end">',
            f'{escape(name[:44])}</text><g class="series c0"><title>{said}</title>',
            f'<rect class="band" x="{low:.1f}" y="{y - 6:.1f}" width="{high - low:.1f}"',
            f' height="12"/><path class="line" d="M{at:.1f} {y - 7:.1f}v14"/></g>',
        ]
    return alone(whole(parts, f"answers about {job}", ground + BELOW))


def _grid(across: Scale, ground: int) -> Sequence[str]:
    found = []
    for number in round_numbers(across):
        x = across(number)
        found.append(f'<path class="grid" d="M{x:.1f} {TOP}V{ground}"/>')
        found.append(f'<text class="tick" x="{x:.1f}" y="{ground + 18}" text-anchor="middle">')
        found.append(f"{number:g}</text>")
    return found
