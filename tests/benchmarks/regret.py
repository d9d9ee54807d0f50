"""Regret of gradient descent on the surrogate, against the best fixed W and φ in hindsight.

    python -m tests.benchmarks.regret [--json] [--quick]

Priors of nine deciles are those of the learner before each release: Laplace((W·f)/φ, 1/φ), f a one
and the public features. The loss of a prior is -ln of the mass that it gives to a cell. `regret` is
the sum of the losses at the cells of the batches' own quantiles, less the least sum that one W and
φ have over the same releases, chosen for each T anew; `at_releases` is the same at the cells that
were released, which is all that the learner is told. Both are nats, of all nine deciles together.
The theorem of gradient descent bounds the regret by a multiple of √T, so `over_root`, which is
regret/√T, stays bounded where it holds. A learner that may change can have less loss than the best
fixed prior, so regret may be negative.

`steps` are the rules of `online-gradient`, which counts. The paper's form draws, and takes released
points for the truth; bought gradients are those of the batches' own quantiles, and their price is a
share of each release's epsilon. The guess never learns.

References:
    Khodak et al. 2023, section 4 (the surrogate, and gradient descent on it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.study import ReplayedRelease, Stream
from streamdp.learning.features import calendar, weekday
from streamdp.learning.mixture.mixture import BayesianMixture
from streamdp.learning.online_gradient.descent import StepsName, laplace
from streamdp.learning.online_gradient.learner import OnlineGradient
from streamdp.learning.summary import best_fixed
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.simulation.comparison import replay
from streamdp.types import Batch, FloatArray, Outcome
from tests.benchmarks.private_gradients import bought
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import OURS, Contenders
from tests.benchmarks.streams.settings import DECILES, Setting, settings

LENGTHS = (25, 50, 100, 200, 400)
"""Numbers T of releases; a year of flights ends at 365."""

STREAMS = ("synthetic 1", "flights-air_time 0.1", "seasonal 0.2")
"""Ten features that decide; flights and a made-up week, whose feature is the weekday."""

STEPS: tuple[StepsName, ...] = ("newton", "adagrad", "coin-betting")

SHARE = Fraction(1, 10)
"""Of epsilon, that buys gradients."""

SEED = 1


def rows(quick: bool) -> Iterable[Row]:
    """One row a stream, learner and number of releases."""
    known = {setting.key: setting for setting in settings()}
    for setting in map(known.__getitem__, STREAMS):
        stream = setting.make(SEED, LENGTHS[1 if quick else -1])
        feature = stream.feature() or weekday
        inputs = np.array([[1.0, *feature(batch)] for batch in stream.batches])
        counts = [length for length in LENGTHS if length < len(inputs)] + [len(inputs)]
        truth = np.array([])
        for who, share, kind in _learners(setting, stream):
            made = replace(kind, features=feature)
            steps = list(replay(QuantilesStudy(), made, stream, PublicEntropy("regret")))
            truth = np.array([_values(step.truth) for step in steps])
            released = np.array([_values(step.outcome) for step in steps])
            priors = _priors(setting, made, stream.batches, steps)
            for count in counts:
                own = _regret(setting, inputs[:count], truth[:count], priors)
                told = _regret(setting, inputs[:count], released[:count], priors)
                yield _row(setting, who, share, count, own, told)
        guess = np.tile(np.array(setting.guess)[:, None], (len(inputs), 1, len(DECILES)))
        for count in counts:
            own = _regret(setting, inputs[:count], truth[:count], guess)
            yield _row(setting, "the guess", 0.0, count, own, None)


def _learners(setting: Setting, stream: Stream) -> Iterator[tuple[str, float, Quantiles]]:
    """Name, share of epsilon that it pays to learn, and release kind."""
    made = Contenders(setting)
    kind = made.kind(f"online-gradient/{OURS}", setting.epsilon, stream)
    assert isinstance(kind.learner, OnlineGradient)
    for steps in STEPS:
        yield f"steps: {steps}", 0.0, replace(kind, learner=replace(kind.learner, steps=steps))
    yield "the paper's form", 0.0, made.kind(f"paper-cocob/{OURS}", setting.epsilon, stream)
    yield "bought gradients", float(SHARE), bought(setting, SHARE)


def _priors(
    setting: Setting, kind: Quantiles, batches: tuple[Batch, ...], steps: list[ReplayedRelease]
) -> FloatArray:
    """Location and scale of each decile before each release, shape (t, 2, m)."""
    found: list[FloatArray] = []
    targets = np.array([float(each) for each in DECILES])
    for batch, step in zip(batches, steps, strict=True):
        priors = kind.learner.linear_priors(step.state)
        if priors is None:
            found.append(np.tile(np.array(setting.guess)[:, None], len(DECILES)))
            continue
        at = np.searchsorted(priors.levels, targets) if len(priors.levels) else slice(None)
        places = priors.effects[at] @ _told(kind, batch)
        found.append(np.array([places, priors.scales[at]]))
    return np.array(found)


def _told(kind: Quantiles, batch: Batch) -> FloatArray:
    """Public numbers of a batch that the learner uses, a one first."""
    features = kind.features(batch) if kind.features else ()
    known = calendar(batch) if isinstance(kind.learner, BayesianMixture) else ()
    return np.array([1.0, *(() if known == features else known), *features])


def _values(outcome: Outcome) -> list[float]:
    return [float(row["value"] or 0.0) for row in outcome.rows]


def _regret(setting: Setting, inputs: FloatArray, values: FloatArray, priors: FloatArray) -> float:
    """Loss of priors at the cells of some values, less that of the best fixed W and φ."""
    half = float(setting.grid.resolution) / 2.0
    regret = 0.0
    each = np.moveaxis(priors[: len(values)], 0, -1).swapaxes(0, 1)
    for places, (middles, scales) in zip(values.T, each, strict=True):
        ends = places - half, places + half
        regret += float(laplace(middles / scales, 1.0 / scales, *ends).value.sum())
        regret -= float(best_fixed(inputs, *ends, 2.0 * half).sum())
    return regret


def _row(
    setting: Setting, who: str, share: float, count: int, own: float, told: float | None
) -> Row:
    return {
        "stream": setting.name,
        "epsilon": float(setting.epsilon),
        "who": who,
        "share_of_epsilon": share,
        "releases": count,
        "regret": round(own, 1),
        "over_root": round(own / count**0.5, 2),
        "a_release": round(own / count, 3),
        "at_releases": None if told is None else round(told, 1),
        "at_releases_over_root": None if told is None else round(told / count**0.5, 2),
    }


if __name__ == "__main__":
    main("Regret on the surrogate against the best fixed W and φ", rows)
