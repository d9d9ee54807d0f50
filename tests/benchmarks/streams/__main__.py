"""Learning over streams: average and largest rank error of the last three quarters.

    python -m tests.benchmarks.streams [--json] [--quick]

`deviation` is that of the average over the `seeds`: five of the default learner and of the plans
that it must be as good as, two of what else learns, one of the others and of the paper's sequence.
`oracle` is the floor: the default learner, shown the truth of all past batches.
`loss_to_best_plan` is the average error over that of the best of `last-release`, no learning and
the single plans `always-few` and `always-all`. `loss_to_best_static` is the average error over
that of the best static prior with the same mechanism, and one of the static priors has seen the
whole stream; wanted is at most 1.02. `releases_to_recover` counts from the event of the stream
until a learner is within 20 % of its own stable error (alone: `tests.benchmarks.streams.recovery`).
`no-learning` is another mechanism: that of `learner: none`. A last row says what learning costs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamdp.kinds.study import ORACLE
from streamdp.simulation.comparison import figures
from streamdp.types import FloatArray
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import (
    LEARNING,
    OURS,
    PLANS,
    STATICS,
    names,
)
from tests.benchmarks.streams.cost import cost
from tests.benchmarks.streams.recovery import releases_to_recover
from tests.benchmarks.streams.settings import Setting, settings
from tests.benchmarks.streams.trials import measured


def rows(quick: bool) -> Iterable[Row]:
    """One row a stream, epsilon, learner and sharpness, with the floor beside it."""
    for setting in settings():
        yield from _rows(setting, measured(setting, names(setting, quick), quick))
    yield cost(settings()[0], 20 if quick else 100)


def _rows(setting: Setting, runs: dict[str, list[FloatArray]]) -> Iterable[Row]:
    found = {name: figures(errors) for name, errors in runs.items()}
    floor = found.pop(ORACLE).late_average
    best = min(found[f"{name}/{OURS}"].late_average for name in STATICS)
    plan = min(found[f"{name}/{OURS}"].late_average for name in PLANS if f"{name}/{OURS}" in found)
    for name, each in found.items():
        who, _, sharpness = name.partition("/")
        yield {
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
    main("Learning over streams: rank error of the last three quarters", rows)
