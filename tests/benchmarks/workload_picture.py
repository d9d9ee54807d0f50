"""The picture of the kind workload: errors day by day, remembered and from a fresh start.

python -m tests.benchmarks.workload_picture [FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from streamdp.privacy.price import Price
from tests.benchmarks.workload import Replay, Score, Stream

mpl.use("Agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "pictures" / "workload.png"
EPSILON, DAYS, SHIFT, COLD_ROUNDS, SEEDS = Fraction(3, 10), 120, 60, 3, 3


def main(picture: Path) -> None:
    """Draw the three streams below each other."""
    stable = Stream.of("flights").days(slice(DAYS))
    streams = {
        "the flights as they are": stable,
        f"all values change places on day {SHIFT}": stable.relabelled([SHIFT]),
        "all values change places every day": stable.relabelled(range(DAYS)),
    }
    figure, panels = plt.subplots(3, 1, figsize=(9, 8), sharex=True, layout="constrained")
    for panel, (name, stream) in zip(panels, streams.items(), strict=True):
        replay = Replay(stream, Price(EPSILON))
        remembered = [replay.remembering(seed) for seed in range(SEEDS)]
        fresh = [replay.cold(COLD_ROUNDS, range(DAYS), seed) for seed in range(SEEDS)]
        panel.plot(_errors(fresh), color="tab:gray", label="from a fresh start every day")
        panel.plot(_errors(remembered), color="tab:blue", label="kind: workload")
        panel.set(title=name, ylabel="average error", ylim=(0, 0.75))
        panel.grid(alpha=0.3)
    panels[0].legend()
    panels[-1].set_xlabel(f"day; all one- and two-way tables, ε = {float(EPSILON):g} a day")
    figure.savefig(picture, dpi=100)


def _errors(runs: Sequence[Sequence[Score]]) -> list[float]:
    """Of each day, the mean over the runs."""
    return [float(np.mean([each.average for each in day])) for day in zip(*runs, strict=True)]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
