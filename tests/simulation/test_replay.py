"""A replay is what the daemon does, repeatable, and the same over processes."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.quantiles.synthetic import RESOLUTION, moving, synthetic
from streamdp.kinds.study import ORACLE, Stream, Trace
from streamdp.learning.learner import Fixed
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.mechanisms.histograms import Histograms
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.privacy.price import Price
from streamdp.simulation.comparison import Trial, TrialSetting, chance, errors_of, replay, run
from streamdp.simulation.table import table_stream
from streamdp.types import Grid
from tests.worlds import MemoryBackend, ReplayedEntropy, World

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def kind(learner: str, epsilon: Fraction, stream: Stream) -> Quantiles:
    """Of quartiles of a synthetic stream."""
    grid, robust = Grid(RESOLUTION, -(2**40), 2**40), Cauchy(0.0, 1.0)
    tree = QuantileTree(QUARTILES, epsilon, grid)
    if learner in ("mixture", ORACLE):
        first = tree, JointPrior((robust,) * len(QUARTILES))
        counts = (Histograms(Price(epsilon), grid),)
        mixture = BayesianMixture(tree, robust, 0.05, (0.0, 1.0), 500, first, counts)
        return Quantiles("x", QUARTILES, epsilon, grid, mixture)
    return Quantiles("x", QUARTILES, epsilon, grid, Fixed((robust,) * len(QUARTILES)))


QUANTILES = QuantilesStudy()


def inside(kind: Quantiles, stream: Stream) -> Trace:
    return QUANTILES.trace(kind, replay(QUANTILES, kind, stream, chance(2)))


STUDY = TrialSetting(QUANTILES, partial(synthetic, "random-walk", QUARTILES, length=12), kind)
TRIALS = [
    Trial(who, Fraction(1, 2), seed) for who in ("mixture", "none", ORACLE) for seed in (0, 1)
]


def test_a_replay_releases_what_the_daemon_releases(tmp_path: Path) -> None:
    """Batch by batch, with the same chance: the same rows and the same learned states."""
    world = World(tmp_path, days=5)
    values = {key: [30 + 3 * day + i for i in range(20)] for day, key in enumerate(keys(world))}
    world.backend = MemoryBackend(values)
    job = world.job()
    world.runner.round([job])
    released = [release.rows for release in world.sink.taken]
    assert isinstance(job.kind, Quantiles)
    batches, asked = world.source.batches(world.clock.now()), job.kind.query()
    stream = table_stream("s", batches, world.backend, lambda batch: asked)
    entropy = ReplayedEntropy()
    steps = replay(QUANTILES, job.kind, stream, entropy)
    replayed = []
    for _ in stream.batches:
        entropy.bits(96)  # the daemon draws the id of each release first
        replayed.append(next(steps).outcome.rows)
    assert len(released) == 5
    assert replayed == released


def keys(world: World) -> list[str]:
    return [batch.key for batch in world.source.batches(world.clock.now())]


@pytest.mark.long
def test_trials_repeat_by_seed_and_do_not_depend_on_processes() -> None:
    """The same errors again, and from two processes; others from another seed."""
    once, twice = run(STUDY, TRIALS, processes=1), run(STUDY, TRIALS, processes=2)
    assert list(once) == list(twice)
    assert all(np.array_equal(once[trial], twice[trial]) for trial in TRIALS)
    assert not np.array_equal(once[TRIALS[0]], once[TRIALS[1]])


def test_an_interrupt_ends_all_processes() -> None:
    """No trial goes on once one was given up, neither waiting nor running."""

    def give_up(done: int, total: int) -> None:
        raise KeyboardInterrupt

    long = [Trial("mixture", Fraction(1, 2), seed) for seed in range(500)]
    with pytest.raises(KeyboardInterrupt):
        run(STUDY, long, give_up, processes=2)
    assert not active_children()


def test_progress_counts_every_trial() -> None:
    """From one to all."""
    told: list[tuple[int, int]] = []
    run(STUDY, TRIALS[2:4], lambda done, total: told.append((done, total)), processes=1)
    assert told == [(1, 2), (2, 2)]


def test_the_oracle_learns_the_truth_and_not_its_releases() -> None:
    """At an epsilon that says nothing it still knows where the stream lies."""
    stream = moving("level-shift", 1, 30).take(15)
    tiny = Fraction(1, 1000)
    shown = kind(ORACLE, Fraction(50), stream)
    floor = errors_of(replay(QUANTILES, kind(ORACLE, tiny, stream), stream, chance(1), shown))[
        5:
    ].mean()
    blind = errors_of(replay(QUANTILES, kind("mixture", tiny, stream), stream, chance(1)))[
        5:
    ].mean()
    assert floor < 0.5 * blind


def test_a_trace_shows_priors_around_the_truth_and_weights_that_sum_to_one() -> None:
    """Bands in order, 90 % around the truth mostly; the mixture's weights where there is one."""
    stream = moving("wrong-guess", 2, 24)
    seen = inside(kind("mixture", Fraction(1), stream), stream)
    assert seen.names == ("quantile 0.25", "quantile 0.5", "quantile 0.75")
    assert seen.weights is not None
    assert np.allclose(seen.weights.sum(axis=1), 1.0)
    assert (np.diff(seen.bands, axis=2) >= 0.0).all()
    within = (seen.bands[..., 0] <= seen.truth) & (seen.truth <= seen.bands[..., 3])
    assert within[12:].mean() > 0.7
    assert not within[0].any()
    assert inside(kind("none", Fraction(1), stream), stream).weights is None
