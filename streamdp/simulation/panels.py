"""The panels of a picture, labelled where the lines are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from streamdp.kinds.study import ORACLE, Stream, Trace
from streamdp.types import FloatArray

VARIANTS = ("#0072B2", "#B5578F", "#D55E00", "#7A7A7A", "#00795A", "#E69F00")
"""Colours in turn, after Okabe and Ito: told apart by colour-blind people, and in grey by their
labels. The first variant is drawn thickest."""

VALUES = ("#0072B2", "#00795A", "#C25400")
PACES = ("#08306B", "#2F78B3", "#A6CBE6", "#E69F00", "#B5578F", "#7A7A7A")
INK, GREY, FAINT = "#222222", "#666666", "#DDDDDD"

LINE = 0.075
"""Height of a label, as a share of the panel: labels stand at least this far apart."""

AROUND = 0.35
"""Room above and below the truth, in its own range, where priors are shown."""

Times = Sequence[Any]


def times(stream: Stream) -> Times:
    """Days of a table cut by time; numbers of batches otherwise."""
    starts = [batch.start for batch in stream.batches]
    known = [each for each in starts if each is not None]
    if len(known) < len(starts) or stream.synthetic:
        return list(range(len(starts)))
    return [datetime.fromtimestamp(each, UTC) for each in known]


def errors(axes: Axes, when: Times, series: Mapping[str, FloatArray], top: float) -> None:
    """Error of each variant against time; `top` is the upper end of all columns."""
    names = [name for name in series if name != ORACLE]
    colours = {name: VARIANTS[place % len(VARIANTS)] for place, name in enumerate(names)}
    colours[ORACLE] = INK
    for name, each in series.items():
        style = "dotted" if name == ORACLE else "solid"
        width = 2.4 if [name] == names[:1] else 1.4
        axes.plot(when, each, color=colours[name], linewidth=width, linestyle=style)
    axes.set_ylim(0.0, top)
    ends = {name: float(each[-max(1, len(each) // 20) :].mean()) for name, each in series.items()}
    _label_ends(axes, [(value, name, colours[name]) for name, value in ends.items()])
    _frame(axes)


def priors(axes: Axes, when: Times, seen: Trace) -> None:
    """Middle 50 % and 90 % of the prior of some values before each release, and the truth."""
    for index, colour in zip(range(len(seen.names)), VALUES, strict=False):
        low, lower, upper, high = seen.bands[:, index].T
        axes.fill_between(when, low, high, color=colour, alpha=0.14, linewidth=0)
        axes.fill_between(when, lower, upper, color=colour, alpha=0.36, linewidth=0)
        axes.plot(when, seen.truth[:, index], color=colour, linewidth=1.3)
    least, most = float(np.nanmin(seen.truth)), float(np.nanmax(seen.truth))
    room = AROUND * max(most - least, 1e-9)
    axes.set_ylim(least - room, most + room)
    ends = [
        (
            float(np.nanmedian(seen.truth[-30:, index])),
            name,
            VALUES[index],
        )
        for index, name in enumerate(seen.names)
    ]
    _label_ends(axes, ends)
    _frame(axes)


def weights(axes: Axes, when: Times, shares: FloatArray, names: Sequence[str]) -> None:
    """Weights of what is believed, stacked; the last is what is believed without the past."""
    colours = PACES[: shares.shape[1] - 1] + PACES[-1:]
    axes.stackplot(when, shares.T, colors=colours, linewidth=0)
    axes.set_ylim(0.0, 1.0)
    tops = np.cumsum(shares[-max(1, len(shares) // 20) :].mean(axis=0))
    middles = tops - np.diff(np.concatenate(([0.0], tops))) / 2.0
    named = zip(middles.tolist(), names, colours, strict=True)
    _label_ends(axes, list(named), swatch=True)
    _frame(axes)


def column_title(axes: Axes, text: str) -> None:
    """Write a column's title."""
    axes.set_title(text, loc="left", fontsize=12, fontweight="bold", color=INK, pad=24)


ROWS = (
    ("{measure} of each release", "mean of all values, running median"),
    ("Prior before each release", "middle 50 % and 90 % (bands), and the truth (line)"),
    ("Weights of what is believed", "by what each part rests on"),
)
"""Heading of each row of panels, and what it shows."""


def headings(figure: Figure, axes: Any, title: str, measure: str) -> None:
    """Write the title of the picture, and one of each row."""
    if not isinstance(axes[-1, 0].xaxis.get_major_locator(), AutoDateLocator):
        for each in axes[-1]:
            each.set_xlabel("batch", loc="right", fontsize=9.5, color=GREY)
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold", color=INK)
    for (heading, about), row in zip(ROWS, axes, strict=False):
        _row_title(row[0], heading.format(measure=measure.capitalize()), about)


def _row_title(axes: Axes, heading: str, about: str) -> None:
    """Write a heading above the first panel of a row, and behind it what the row shows."""
    written = axes.annotate(
        heading,
        (0.0, 1.04),
        xycoords="axes fraction",
        fontsize=11,
        fontweight="bold",
        color=INK,
    )
    axes.annotate(
        about,
        (1.0, 0.0),
        xycoords=written,
        xytext=(8, 0),
        va="bottom",
        textcoords="offset points",
        fontsize=9.5,
        color=GREY,
    )


def _frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=GREY, labelsize=9, length=3)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    locator = axes.xaxis.get_major_locator()
    if isinstance(locator, AutoDateLocator):
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_axisbelow(True)
    axes.margins(x=0)


def _label_ends(
    axes: Axes, ends: Sequence[tuple[float, str, str]], *, swatch: bool = False
) -> None:
    """Names at the right end of their lines or areas, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    ordered = sorted(ends)
    places = _apart([(value - low) / (high - low) for value, _, _ in ordered])
    for place, (_, name, colour) in zip(places, ordered, strict=True):
        if swatch:
            _write(axes, place, "■", colour, 6)
        _write(axes, place, name, INK if swatch else colour, 18 if swatch else 6)


def _write(axes: Axes, place: float, text: str, colour: str, right: int) -> None:
    axes.annotate(
        text,
        (1.0, place),
        xycoords="axes fraction",
        xytext=(right, 0),
        textcoords="offset points",
        va="center",
        fontsize=9.5,
        color=colour,
    )


def _apart(places: Sequence[float], gap: float = LINE) -> list[float]:
    """Increasing places, moved as little as leaves a gap between neighbours.

    >>> [round(each, 3) for each in _apart([0.5, 0.5, 0.9], gap=0.1)]
    [0.45, 0.55, 0.9]
    """
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _reach(groups[-2], gap)[1] + gap > _reach(groups[-1], gap)[0]:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_reach(group, gap)[0] + gap * k for group in groups for k in range(len(group))]


def _reach(group: Sequence[float], gap: float) -> tuple[float, float]:
    """Lowest and highest place of a group, within the panel if it fits."""
    middle, height = sum(group) / len(group), gap * (len(group) - 1)
    low = max(0.0, min(middle - height / 2.0, 1.0 - height))
    return low, low + height
