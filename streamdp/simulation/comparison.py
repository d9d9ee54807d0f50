"""Trials (learners, prices, seeds), each a stream replayed and measured against the truth.

They run over several processes.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from fractions import Fraction
from multiprocessing import active_children, get_context

import numpy as np

from streamdp.engine.draw import draw_and_learn, get_ready
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.study import ORACLE, ReplayedRelease, Stream, Study
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Entropy, FloatArray, Learned, ReleaseKind

TRUTH_EPSILON = Fraction(50)
"""The oracle reads its past with the noise of this epsilon: none to speak of."""

Progress = Callable[[int, int], None]
"""Called with how many trials are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One replay: a learner, a price, and the seed of its draws."""

    learner: str
    price: Fraction
    seed: int


def replay(
    study: Study,
    kind: ReleaseKind,
    stream: Stream,
    entropy: Entropy,
    shown: ReleaseKind | None = None,
) -> Iterator[ReplayedRelease]:
    """Release each batch as the engine does, and measure it against the truth.

    Args:
        study: Knows the truth of a batch.
        kind: What is simulated.
        stream: The batches.
        entropy: Chance; seeded, since nothing here is released.
        shown: Learns the truth of every past batch instead of `kind` learning its own releases:
            the oracle, which knows past values exactly, and nothing else of past batches.
    """
    taught = None if shown is None else study.taught(shown)
    learned = Learned(0, kind.signature(), (taught or kind).init())
    for batch, counts in zip(stream.batches, stream.counts, strict=True):
        ready = get_ready(kind, learned, batch, UnitCharging())
        outcome, after, _ = draw_and_learn(ready, counts, entropy)
        state, truth = ready.learned.state, study.truth(kind, counts)
        yield ReplayedRelease(
            state, ready.plan, outcome, truth, study.errors(kind, counts, outcome)
        )
        if taught is not None:
            after = replace(after, state=taught.learn(state, taught.plan(state, batch), truth))
        learned = after


def errors_of(steps: Iterator[ReplayedRelease]) -> FloatArray:
    """Errors of every release, shape (batches, m)."""
    return np.array([step.errors for step in steps])


@dataclass(frozen=True, slots=True)
class TrialSetting:
    """Setting that trials share; crosses to other processes, so its functions have names.

    Args:
        study: How the kind is simulated.
        stream: The stream of a seed.
        kind: The release kind of a learner, at a price, for that stream.
    """

    study: Study
    stream: Callable[[int], Stream]
    kind: Callable[[str, Fraction, Stream], ReleaseKind]

    def errors(self, trial: Trial) -> FloatArray:
        """Errors of every release of a trial, shape (batches, m)."""
        stream = self.stream(trial.seed)
        kind = self.kind(trial.learner, trial.price, stream)
        oracle = trial.learner == ORACLE
        shown = self.kind(ORACLE, TRUTH_EPSILON, stream) if oracle else None
        return errors_of(replay(self.study, kind, stream, chance(trial.seed), shown))

    def sample(self, trial: Trial, length: int) -> tuple[tuple[str, ...], int]:
        """Replay the first batches of a trial, to see how long it takes.

        Returns:
            The part of the release that each error is of, and how many batches there are.
        """
        stream = self.stream(trial.seed)
        kind = self.kind(trial.learner, trial.price, stream)
        errors_of(replay(self.study, kind, stream.take(length), chance(trial.seed)))
        return self.study.parts(kind), len(stream.batches)


def chance(seed: int) -> PublicEntropy:
    """Bits that anyone can repeat: nothing that they draw is released."""
    return PublicEntropy(f"simulation:{seed}")


def run(
    comparison: TrialSetting,
    trials: Sequence[Trial],
    progress: Progress = lambda done, total: None,
    processes: int | None = None,
) -> dict[Trial, FloatArray]:
    """Errors of all trials; the same whatever the number of processes.

    Args:
        comparison: What they share.
        trials: The longest first fills the processes best.
        progress: Told of every trial that ends.
        processes: As many as there are processors, if None.
    """
    workers = min(processes or os.cpu_count() or 1, len(trials))
    if workers < 2:
        found = {}
        for done, trial in enumerate(trials, start=1):
            found[trial] = comparison.errors(trial)
            progress(done, len(trials))
        return found
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (comparison,)) as pool:
        waiting = {pool.submit(_errors, trial): trial for trial in trials}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                future.result()
                progress(done, len(trials))
        except BaseException:
            _stop(pool)
            raise
        return {trial: future.result() for future, trial in waiting.items()}


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over seeds and batches: of all quantiles together, and of the worst.

    Args:
        average: Over the whole stream.
        largest: Over the whole stream, of the worst quantile of each batch.
        late_average: Over its last three quarters.
        late_largest: The same.
    """

    average: float
    largest: float
    late_average: float
    late_largest: float

    def rounded(self) -> dict[str, float | None]:
        """Figures as they are printed; None where no batch had records."""
        named = {
            "average_error": self.average,
            "largest_error": self.largest,
            "late_average_error": self.late_average,
            "late_largest_error": self.late_largest,
        }
        return {key: None if math.isnan(each) else round(each, 5) for key, each in named.items()}


def figures(errors: Sequence[FloatArray]) -> Figures:
    """Figures of trials that differ in their seed; batches without records count for nothing."""
    late = [each[len(each) // 4 :] for each in errors]
    return Figures(*_means(errors), *_means(late))


def _means(errors: Sequence[FloatArray]) -> tuple[float, float]:
    held = [each[~np.isnan(each).any(axis=1)] for each in errors]
    known = [each for each in held if len(each)]
    if not known:
        return float("nan"), float("nan")
    return (
        float(np.mean([each.mean() for each in known])),
        float(np.mean([each.max(axis=1).mean() for each in known])),
    )


_shared: list[TrialSetting] = []


def _begin(comparison: TrialSetting) -> None:
    """Begin a new process: an interrupt is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared[:] = [comparison]


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the trials that run, some take minutes, and start no more.

    It is the pool's own thread that waits for the processes: two that wait may miss their end.
    """
    for process in active_children():
        process.terminate()
    pool.shutdown(cancel_futures=True)


def _errors(trial: Trial) -> FloatArray:
    return _shared[0].errors(trial)
