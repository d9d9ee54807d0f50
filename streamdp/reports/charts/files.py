"""Pictures as files: answers as SVG, a row each, and a job's series by matplotlib, an extra."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from streamdp.errors import ConfigurationError, StreamdpError
from streamdp.reports.charts.frame import (
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    across_of,
    alone,
    round_numbers,
    spanning,
    whole,
)
from streamdp.types import FloatArray, Json

if TYPE_CHECKING:
    from streamdp.reports.releases.digest import Digest

HIGH, SIDE, HEAD, BELOW = 22, 300, 30, 50
LETTERS = 40
"""Letters of a label for which there is room on its side."""


def draw_answers(job: str, rows: Sequence[Mapping[str, Json]], *, shares: bool = False) -> str:
    """The answers about a job, as an SVG file.

    What all answers have in common stands above them, and what bars and ticks are; what their
    values are stands below. Shares are drawn from 0 on, in percent.

    Args:
        job: Its name.
        rows: With `value`, or `change`, between `lower` and `upper`.
        shares: Whether values are shares of the records.

    Raises:
        StreamdpError: There are none.
    """
    if not rows:
        raise StreamdpError("there is no answer to draw")
    ends = [float(row[name]) for row in rows for name in ("lower", "upper")]
    across = spanning(ends, SIDE, WIDTH - RIGHT, zero=shares)
    first = TOP + HEAD
    ground = first + HIGH * len(rows)
    keys = [key for key in ("period", "question") if key in rows[0]]
    common = [key for key in keys if len(rows) > 1 and len({row[key] for row in rows}) == 1]
    title = " · ".join([job, *(str(rows[0][key]) for key in common)])
    parts = [
        f'<text class="panel" x="{RIGHT}" y="{TOP + 12}">{escape(title)}</text>',
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{TOP + 12}" text-anchor="end">',
        "tick: the answer, bar: its 95 % interval</text>",
        *_grid(across, first, ground, shares=shares),
        f'<text class="tick" x="{WIDTH - RIGHT}" y="{ground + 40}" text-anchor="end">',
        f"{escape(_axis(rows, shares=shares))}</text>",
    ]
    for place, row in enumerate(rows):
        y = first + HIGH * (place + 0.5)
        value = row["value"] if "value" in row else row["change"]
        name = " · ".join(str(row[key]) for key in keys)
        label = " · ".join(str(row[key]) for key in keys if key not in common) or str(place + 1)
        short = label if len(label) <= LETTERS else f"{label[: LETTERS - 1]}…"
        low, high, at = (across(float(each)) for each in (row["lower"], row["upper"], value))
        said = escape(f"{name}: {value:g}, {row['lower']:g} to {row['upper']:g}")
        parts += [
            f'<text class="tick" x="{SIDE - 8}" y="{y + 4:.1f}" text-anchor="end">',
            f'{escape(short)}</text><g class="series c0"><title>{said}</title>',
            f'<rect class="band" x="{low:.1f}" y="{y - 6:.1f}" width="{high - low:.1f}"',
            f' height="12"/><path class="line" d="M{at:.1f} {y - 7:.1f}v14"/></g>',
        ]
    return alone(whole(parts, f"answers about {job}", ground + BELOW))


def _axis(rows: Sequence[Mapping[str, Json]], *, shares: bool) -> str:
    """What the values of all rows are; empty where nobody said, or they differ."""
    if shares:
        return "share of the records"
    units = {str(row.get("unit", "")) for row in rows}
    unit = units.pop() if len(units) == 1 else ""
    return f"change in {unit}" if unit and "change" in rows[0] else unit


def _grid(across: Scale, top: int, ground: int, *, shares: bool) -> Sequence[str]:
    found = []
    for number in round_numbers(across):
        x = across(number)
        found.append(f'<path class="grid" d="M{x:.1f} {top}V{ground}"/>')
        found.append(f'<text class="tick" x="{x:.1f}" y="{ground + 18}" text-anchor="middle">')
        found.append(f"{100 * number:g} %</text>" if shares else f"{number:g}</text>")
    return found


INCHES, DOTS = (11.0, 4.6), 150


def draw_series(digest: Digest, form: str) -> bytes:
    """The picture as PNG or PDF: dots of what was drawn, lines of the best, their intervals.

    Raises:
        ConfigurationError: The extra is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        hint = "pip install 'streamdp[plot]', or write an .svg, which needs nothing"
        raise ConfigurationError("this picture needs matplotlib", hint=hint)
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, dpi=DOTS, layout="constrained")
    axes = figure.subplots()
    is_time = digest.picture.axis == "time"
    times = np.array(digest.picture.times, dtype="datetime64[s]" if is_time else "int64")
    series = digest.picture.series
    colours = colormaps["viridis"].resampled(len(series) + 1)
    for index, each in enumerate(series):
        best, colour = each.best, colours(index)
        if best.lower is not None and best.upper is not None:
            ends = _floats(best.lower), _floats(best.upper)
            axes.fill_between(times, *ends, color=colour, alpha=0.15, lw=0)
        if each.estimate is not None:
            axes.plot(times, _floats(each.raw.values), ".", color=colour, ms=3, alpha=0.45)
        axes.plot(times, _floats(best.values), color=colour, lw=1.5, label=each.name)
    low, high = digest.picture.reach()
    room = (high - low) * 0.05 or 1.0
    if not is_time:
        marks = across_of(digest.picture).marks
        axes.set_xticks([at for at, _ in marks], [name for _, name in marks])
    axes.set_ylim(low - room, high + room)
    axes.set_title(digest.job, loc="left", fontweight="bold")
    axes.set_ylabel(digest.picture.unit)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if 1 < len(series) <= 24:
        title = " · ".join(digest.picture.labels)
        figure.legend(loc="outside right upper", title=title, frameon=False, reverse=True)
    file = io.BytesIO()
    figure.savefig(file, format=form)
    return file.getvalue()


def _floats(values: tuple[float | None, ...]) -> FloatArray:
    return np.array([float("nan") if value is None else value for value in values])
