"""The picture of a study: errors over time, priors against the truth, weights of what is believed.

One column a price; below the errors of all learners, one learner from inside. Lines are labelled
where they are.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.kinds.study import ORACLE, Stream, Trace
from streamdp.simulation.comparison import Trial, TrialSetting, chance, replay
from streamdp.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


MOST_COLUMNS = 3
"""Epsilons that fit side by side; the first ones are drawn."""

WINDOW = 21
"""Batches of the running median, at most; a tenth of a short stream."""

WIDTHS, ROW_HEIGHT, DPI = (9.0, 12.0, 15.0), 2.7, 100
"""Inches of a picture of one, two and three columns; of a row; dots in an inch."""

COLOURS = 128
"""Colours of the file."""


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


def require_matplotlib() -> None:
    """Fail before anything is simulated if nothing can be drawn.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigurationError(
            "a picture needs matplotlib, which is not installed",
            where="--picture",
            hint="pip install 'streamdp[plot]'",
        )


def draw(
    path: Path,
    title: str,
    comparison: TrialSetting,
    errors: Mapping[Trial, FloatArray],
    symbol: str = "ε",
) -> None:
    """Draw a comparison as a PNG.

    Args:
        path: Where to.
        title: What was simulated; the prices are added.
        comparison: What the trials share.
        errors: Of every trial.
        symbol: Of the prices' measure.
    """
    from matplotlib.figure import Figure

    prices = list(dict.fromkeys(trial.price for trial in errors))[:MOST_COLUMNS]
    names = [trial.learner for trial in errors]
    default = comparison.study.variants[0]
    inside = default if default in names else names[0]
    stream = comparison.stream(0)
    seen = [_inside(comparison, inside, each) for each in prices]
    rows = 1 if seen[0] is None else 3 if seen[0].weights is not None else 2
    figure = Figure((WIDTHS[len(prices) - 1], 0.7 + ROW_HEIGHT * rows), layout="constrained")
    axes = figure.subplots(rows, len(prices), sharex=True, sharey="row", squeeze=False)
    series = [_smoothed(errors, price) for price in prices]
    top = 1.08 * max(float(np.nanmax(each)) for by in series for each in by.values())
    for column, shown, each in zip(axes.T, series, seen, strict=True):
        _fill(column, _times(stream), shown, top, each)
    priced = [f"{float(price):g}" for price in prices]
    if len(prices) > 1:
        for head, price in zip(axes[0], priced, strict=True):
            head.set_title(
                f"{symbol} = {price}",
                loc="left",
                fontsize=12,
                fontweight="bold",
                color=INK,
                pad=24,
            )
    whole = f"{title}, {symbol} = {', '.join(priced)}"
    _write_headings(figure, axes, whole, comparison.study.measure)
    _save(figure, path)


def _fill(
    column: NDArray[np.object_],
    when: Sequence[Any],
    errors: Mapping[str, FloatArray],
    top: float,
    inside: Trace | None,
) -> None:
    """Draw the panels of one price, from the top down."""
    _draw_errors(column[0], when, errors, top)
    if inside is not None:
        _draw_priors(column[1], when, inside)
        if inside.weights is not None:
            _draw_weights(column[2], when, inside.weights, inside.weight_names)


def _inside(comparison: TrialSetting, variant: str, price: Fraction) -> Trace | None:
    """One replay from inside."""
    stream = comparison.stream(0)
    kind = comparison.kind(variant, price, stream)
    return comparison.study.trace(kind, replay(comparison.study, kind, stream, chance(0)))


def _save(figure: Figure, path: Path) -> None:
    """A picture as a PNG of few colours, a third of the size."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, "PNG", optimize=True)


def _smoothed(errors: Mapping[Trial, FloatArray], price: Fraction) -> dict[str, FloatArray]:
    """Running medians of the mean error over values and seeds, by learner."""
    groups: dict[str, list[FloatArray]] = {}
    for trial, each in errors.items():
        if trial.price == price:
            groups.setdefault(trial.learner, []).append(each.mean(axis=1))
    return {name: running_median(np.mean(group, axis=0)) for name, group in groups.items()}


def running_median(series: FloatArray, window: int = WINDOW) -> FloatArray:
    """Medians over the batches around each, fewer at the ends; NaN counts for nothing.

    >>> running_median(np.array([1.0, 9.0, 2.0, 3.0] * 10)).round(1)[:3].tolist()
    [2.0, 2.5, 2.0]
    """
    reach = min(window, max(1, len(series) // 10)) // 2
    around = [series[max(0, i - reach) : i + reach + 1] for i in range(len(series))]
    return np.array([np.median(each[~np.isnan(each)]) if len(each) else np.nan for each in around])


def _times(stream: Stream) -> Sequence[Any]:
    """Days of a table cut by time; numbers of batches otherwise."""
    starts = [batch.start for batch in stream.batches]
    known = [each for each in starts if each is not None]
    if len(known) < len(starts) or stream.synthetic:
        return list(range(len(starts)))
    return [datetime.fromtimestamp(each, UTC) for each in known]


def _draw_errors(
    axes: Axes, when: Sequence[Any], series: Mapping[str, FloatArray], top: float
) -> None:
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


def _draw_priors(axes: Axes, when: Sequence[Any], seen: Trace) -> None:
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


def _draw_weights(
    axes: Axes, when: Sequence[Any], shares: FloatArray, names: Sequence[str]
) -> None:
    """Weights of what is believed, stacked; the last is what is believed without the past."""
    colours = PACES[: shares.shape[1] - 1] + PACES[-1:]
    axes.stackplot(when, shares.T, colors=colours, linewidth=0)
    axes.set_ylim(0.0, 1.0)
    tops = np.cumsum(shares[-max(1, len(shares) // 20) :].mean(axis=0))
    middles = tops - np.diff(np.concatenate(([0.0], tops))) / 2.0
    named = zip(middles.tolist(), names, colours, strict=True)
    _label_ends(axes, list(named), swatch=True)
    _frame(axes)


ROWS = (
    ("{measure} of each release", "mean of all values, running median"),
    ("Prior before each release", "middle 50 % and 90 % (bands), and the truth (line)"),
    ("Weights of what is believed", "by what each part rests on"),
)
"""Heading of each row of panels, and what it shows."""


def _write_headings(figure: Figure, axes: Any, title: str, measure: str) -> None:
    """Write the title of the picture, and one of each row."""
    from matplotlib.dates import AutoDateLocator

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
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

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
