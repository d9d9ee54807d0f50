"""Learning over streams: average and largest rank error of the last three quarters.

    python -m tests.benchmarks.streams [--json] [--quick] [--final]

Real streams of development and synthetic ones; with `--final` those that nothing is tuned on, in
their place. README.md beside this file says which is which, and when the final ones are run.

`deviation` is that of the average over the `seeds`. `oracle` is the floor: the default learner,
shown the truth of all past batches. `loss_to_best_plan` is the average error over that of the best
of `last-release`, no learning and the single plans. `loss_to_best_static` is the average error over
that of the best static prior with the same mechanism, and one of the static priors has seen the
whole stream; wanted of both is at most 1.02. `to_c7b2b41` is the average error over that of the
default learner of that commit. `releases_to_recover` counts from the event of the stream until a
learner is within 20 % of its own stable error (alone: `tests.benchmarks.streams.recovery`).
`no-learning` is another mechanism: that of `learner: none`. The last rows say what learning costs,
and the geometric means over all streams.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from functools import partial

import numpy as np

from streamdp.kinds.study import ORACLE
from streamdp.simulation.comparison import figures
from streamdp.types import FloatArray
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import LEARNING, OURS, PLANS, STATICS
from tests.benchmarks.streams.cost import cost
from tests.benchmarks.streams.recovery import releases_to_recover
from tests.benchmarks.streams.settings import Setting, final, settings
from tests.benchmarks.streams.summary import summary, to_recorded
from tests.benchmarks.streams.trials import Errors, all_measured

EVERY = 3
"""Quickly: one stream of so many."""


def rows(quick: bool, last: bool) -> Iterable[Row]:
    """One row a stream, epsilon, learner and sharpness, with the floor beside it."""
    chosen, shown = final() if last else settings(), list[Row]()
    chosen = chosen[:: EVERY if quick else 1]
    for done, (setting, runs) in enumerate(all_measured(chosen, quick), start=1):
        for row in _rows(setting, runs, quick):
            shown.append(row)
            yield row
        if sys.stderr.isatty():
            print(f"{done} of {len(chosen)}: {setting.key}", file=sys.stderr)
    yield cost(settings()[0], 20 if quick else 100)
    yield from summary(shown)


def _rows(setting: Setting, runs: Errors, quick: bool) -> Iterable[Row]:
    found = {name: figures(errors) for name, errors in runs.items()}
    floor = found.pop(ORACLE).late_average
    best = min(found[f"{name}/{OURS}"].late_average for name in STATICS)
    plan = min(found[f"{name}/{OURS}"].late_average for name in PLANS)
    for name, each in found.items():
        who, _, sharpness = name.partition("/")
        yield {
            "part": setting.part,
            "stream": setting.name,
            "epsilon": float(setting.epsilon),
            "who": who,
            "sharpness": sharpness,
            "seeds": len(runs[name]),
            "average_error": round(each.late_average, 4),
            "deviation": round(_deviation(runs[name]), 4),
            "largest_error": round(each.late_largest, 4),
            "oracle": round(floor, 4),
            "loss_to_best_static": round(each.late_average / best, 3),
            "loss_to_best_plan": round(each.late_average / plan, 3),
            "to_c7b2b41": None if quick else to_recorded(setting, each),
            "releases_to_recover": _recovery(setting, who, runs[name]),
        }


def _deviation(errors: list[FloatArray]) -> float:
    """Standard deviation of the average over seeds; 0 for one."""
    return float(np.std([figures([each]).late_average for each in errors]))


def _recovery(setting: Setting, who: str, errors: list[FloatArray]) -> int | None:
    if setting.event is None or who not in LEARNING:
        return None
    return releases_to_recover(errors, int(setting.event * len(errors[0])))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(add_help=False)
    asked.add_argument("--final", action="store_true", help="streams that nothing is tuned on")
    known, _ = asked.parse_known_args()
    title = "Learning over streams: rank error of the last three quarters"
    main(title, partial(rows, last=known.final), parser=asked)
