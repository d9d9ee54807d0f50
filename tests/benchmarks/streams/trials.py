"""Replays of one stream by several contenders: few where chance matters little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.study import ORACLE
from streamdp.simulation.comparison import Trial, TrialSetting, run
from streamdp.types import FloatArray
from tests.benchmarks.streams.contenders import OURS, Contenders, names
from tests.benchmarks.streams.settings import PAPERS_LENGTH, Setting, stream_of

SEEDS = {f"mixture/{OURS}": 5, f"last-release/{OURS}": 2}
"""How often each contender is replayed; the others once, and all once on the paper's sequence."""

QUICK_LENGTH = 24

PROCESSES = 2

Errors = dict[str, list[FloatArray]]
"""Of each seed, shape (batches, m), by `learner/sharpness`, and of the oracle."""


def measured(
    setting: Setting, who: Sequence[str], quick: bool, seeds: Mapping[str, int] = SEEDS
) -> Errors:
    """Errors of all who are named, one after the other.

    Args:
        setting: The stream and the price.
        who: As `learner/sharpness`.
        quick: One seed and few batches.
        seeds: How often each is replayed; once where it is not named.
    """
    stream = partial(stream_of, setting, QUICK_LENGTH if quick else setting.length)
    once = quick or setting.length == PAPERS_LENGTH
    trials = [
        Trial(name, setting.epsilon, seed)
        for name in who
        for seed in range(1 if once else seeds.get(name, 1))
    ]
    comparison = TrialSetting(QuantilesStudy(), stream, Contenders(setting).kind)
    errors = run(comparison, trials, processes=1)
    return {name: [errors[trial] for trial in trials if trial.learner == name] for name in who}


def all_measured(settings: Sequence[Setting], quick: bool) -> Iterator[tuple[Setting, Errors]]:
    """Every setting and its errors, in order; two at once, a process each."""
    measure = partial(_everyone, quick=quick)
    if quick:
        yield from zip(settings, map(measure, settings), strict=True)
        return
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        yield from zip(settings, pool.map(measure, settings), strict=True)


def _everyone(setting: Setting, quick: bool) -> Errors:
    return measured(setting, [ORACLE, *names(quick)], quick)
