"""Replays of one stream by several contenders: few where chance matters little."""

from __future__ import annotations

from functools import partial

from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.study import ORACLE
from streamdp.simulation.comparison import Comparison, Trial, run
from streamdp.types import FloatArray
from tests.benchmarks.streams.contenders import OURS, PLANS, Contenders
from tests.benchmarks.streams.settings import Setting, stream_of

SEEDS = {
    f"experts/{OURS}": 5,
    **{f"{name}/{OURS}": 5 for name in PLANS},
    f"paper-cocob/{OURS}": 2,
    f"static-hindsight/{OURS}": 2,
    ORACLE: 2,
}
"""How often each contender is replayed; the others once."""

QUICK_LENGTH = 24


def measured(setting: Setting, names: list[str], quick: bool) -> dict[str, list[FloatArray]]:
    """Errors of each seed, shape (batches, m), by `learner/sharpness`, and of the oracle."""
    stream = partial(stream_of, setting, QUICK_LENGTH if quick else None)
    who = [ORACLE, *names]
    once = quick or setting.long
    trials = [
        Trial(name, setting.epsilon, seed)
        for name in who
        for seed in range(1 if once else SEEDS.get(name, 1))
    ]
    errors = run(
        Comparison(QuantilesStudy(), stream, Contenders(setting).kind),
        trials,
        processes=1 if quick else None,
    )
    return {name: [errors[trial] for trial in trials if trial.learner == name] for name in who}
