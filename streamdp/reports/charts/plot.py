"""A job's series as a picture file, by matplotlib, which is an extra."""

from __future__ import annotations

import importlib.util
import io

import numpy as np

from streamdp.errors import ConfigurationError
from streamdp.reports.charts.frame import across_of
from streamdp.reports.releases.digest import Digest
from streamdp.types import FloatArray

INCHES, DOTS = (11.0, 4.6), 150


def drawn(digest: Digest, form: str) -> bytes:
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
