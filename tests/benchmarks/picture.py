"""The picture of the README: a year of released deciles, and the truth they stand for.

    python -m tests.benchmarks.picture [FILE]

The truth is shown because these flights are public; a production store holds no such line.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import duckdb
import matplotlib as mpl
import numpy as np

from streamdp.store.archive import select_releases
from streamdp.store.database import connect_to_read

mpl.use("Agg")
from matplotlib import dates
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).parent / "pictures" / "air_time.png"
TRUTH = (
    "SELECT date, quantile_disc(air_time, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])"
    " FROM read_parquet(?) GROUP BY date ORDER BY date"
)


def main(picture: Path) -> None:
    """Run the demonstration in a fresh folder and draw its releases."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.yaml").write_text((ROOT / "config.yaml").read_text())
        command = [sys.executable, "-m", "streamdp", "run", "--once"]
        subprocess.run(command, cwd=folder, check=True)
        releases = select_releases(connect_to_read(Path(folder) / "streamdp.db"))
    days = np.array([date.fromisoformat(release.batch) for release in releases])
    values = [[row["value"] for row in release.rows] for release in releases]
    flights = str(ROOT / "streamdp" / "demo" / "flights.parquet")
    truth = np.array([row[1] for row in duckdb.execute(TRUTH, [flights]).fetchall()])
    figure, panels = plt.subplots(2, 1, figsize=(11, 6), sharex=True, layout="constrained")
    _fan(panels[0], days, np.array(values), "released: nine deciles of each day, epsilon 0.1 a day")
    _fan(panels[1], days, truth, "the truth, which nobody sees (these flights are public)")
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=80)
    print(f"wrote {picture}")


def _fan(axes: Axes, days: np.ndarray, values: np.ndarray, title: str) -> None:
    """Bands between deciles that mirror each other, and the median as a line."""
    for inner in range(4):
        low, high = values[:, inner], values[:, 8 - inner]
        axes.fill_between(days, low, high, color="#2a6f97", alpha=0.16, linewidth=0)
    axes.plot(days, values[:, 4], color="#013a63", linewidth=1.2, label="median")
    axes.set_ylim(0, 500)
    axes.set_ylabel("air time (minutes)")
    axes.set_title(title, loc="left", fontsize=11)
    axes.xaxis.set_major_formatter(dates.DateFormatter("%b"))  # type: ignore[no-untyped-call]
    axes.legend(loc="upper right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
