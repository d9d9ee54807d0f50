"""The picture of a study: errors over time, priors against the truth, weights of what is believed.

One column a price; below the errors of all learners, one learner from inside.
"""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.kinds.study import Trace
from streamdp.simulation.comparison import Trial, TrialSetting, chance, replay
from streamdp.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from streamdp.simulation.panels import Times

MOST_COLUMNS = 3
"""Epsilons that fit side by side; the first ones are drawn."""

WINDOW = 21
"""Batches of the running median, at most; a tenth of a short stream."""

WIDTHS, ROW_HEIGHT, DPI = (9.0, 12.0, 15.0), 2.7, 100
"""Inches of a picture of one, two and three columns; of a row; dots in an inch."""

COLOURS = 128
"""Colours of the file."""


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

    from streamdp.simulation import panels

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
        _fill(column, panels.times(stream), shown, top, each)
    priced = [f"{float(price):g}" for price in prices]
    if len(prices) > 1:
        for head, price in zip(axes[0], priced, strict=True):
            panels.column_title(head, f"{symbol} = {price}")
    whole = f"{title}, {symbol} = {', '.join(priced)}"
    panels.headings(figure, axes, whole, comparison.study.measure)
    _save(figure, path)


def _fill(
    column: NDArray[np.object_],
    when: Times,
    errors: Mapping[str, FloatArray],
    top: float,
    inside: Trace | None,
) -> None:
    """Draw the panels of one price, from the top down."""
    from streamdp.simulation import panels

    panels.errors(column[0], when, errors, top)
    if inside is not None:
        panels.priors(column[1], when, inside)
        if inside.weights is not None:
            panels.weights(column[2], when, inside.weights, inside.weight_names)


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
