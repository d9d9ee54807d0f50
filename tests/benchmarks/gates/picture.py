"""The picture of a year behind gates: staleness of what stands, and when something new came.

python -m tests.benchmarks.gates.picture [FILE]
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from tests.benchmarks.gates.flights import WINDOW, Year, gated, scheduled, windows

mpl.use("Agg")
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

PICTURE = Path(__file__).parents[1] / "pictures" / "gates.png"
TITLE = (
    "Rank error of the standing deciles of arrival delay, epsilon = 1 a plane; dashed: a release"
)
EPSILON, HALF = Fraction(1), Fraction(1, 2)


def main(picture: Path) -> None:
    """One year of each strategy, all at epsilon = 1 for a plane."""
    half = len(windows()) // 2
    years = {
        "a release every day": (scheduled(1, EPSILON), "#adb5bd"),
        "a release every half year": (scheduled(half, EPSILON), "#e09f3e"),
        "a gate: AboveThreshold on the excess": (
            gated("excess", 2, EPSILON, HALF, Fraction(1)),
            "#013a63",
        ),
        "a gate: thresholding on the tree's chance": (
            gated("chance", 2, EPSILON, HALF, Fraction(1)),
            "#9b2226",
        ),
    }
    figure, panels = plt.subplots(4, 1, figsize=(11, 9), sharex=True, layout="constrained")
    start = date(2013, 1, 1) + timedelta(days=WINDOW - 1)
    days = np.array([start + timedelta(days=day) for day in range(len(windows()))])
    for axes, (name, (year, color)) in zip(panels, years.items(), strict=True):
        _panel(axes, days, name, year, color)
    panels[-1].xaxis.set_major_formatter(dates.DateFormatter("%b"))  # type: ignore[no-untyped-call]
    figure.suptitle(TITLE)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=72)
    print(f"wrote {picture}")


def _panel(axes: Axes, days: np.ndarray, name: str, year: Year, color: str) -> None:
    axes.fill_between(days, year.staleness, color=color, alpha=0.25, linewidth=0)
    axes.plot(days, year.staleness, color=color, linewidth=1.2)
    if len(year.releases) < 20:
        for day in year.releases:
            axes.axvline(days[day], color=color, linewidth=1.0, linestyle="--")
    count = f"{len(year.releases)} releases, mean error {year.staleness.mean():.2f}"
    axes.set_title(f"{name}: {count}", loc="left", fontsize=11)
    axes.set_ylim(0, 0.8)
    axes.set_ylabel("worst decile")
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
