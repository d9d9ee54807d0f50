"""Gradient descent on the surrogate: steps, regret against the best fixed parameters, units."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamdp.learning.online_gradient.descent import Descent, LossName, StepsName, laplace
from streamdp.types import FloatArray
from streamdp.types.forms import packed, unpacked

LEVELS = np.array([0.25, 0.5, 0.75])
EFFECTS = np.array([[-1.0, 0.8, -0.5], [0.0, 0.8, -0.5], [1.0, 0.8, -0.5]])
"""Where each quantile lies: a constant and two effects."""

RADIUS = 0.05


def start(loss: LossName = "sum", steps: StepsName = "newton", count: int = 3) -> Descent:
    return Descent.start(LEVELS, count, loss, steps)


def batches(length: int, seed: int = 0) -> list[tuple[FloatArray, FloatArray]]:
    """Features and true quantiles of a stream that its features explain."""
    random = np.random.default_rng(seed)
    features = np.column_stack((np.ones(length), random.normal(size=(length, 2))))
    noise = random.laplace(0.0, 0.05, (length, len(LEVELS)))
    return list(zip(features, features @ EFFECTS.T + noise, strict=True))


def losses(descent: Descent, stream: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Σ U of each release under the priors before it."""
    found = []
    for features, quantiles in stream:
        descent = descent.updated(features, quantiles - RADIUS, quantiles + RADIUS)
        found.append(descent.last_loss)
    return np.array(found)


def hindsight(stream: list[tuple[FloatArray, FloatArray]]) -> float:
    """Mean loss of the true effects at the best scale of a lattice: no fixed W is much better."""
    best = np.inf
    for phi in np.geomspace(1.0, 100.0, 25):
        each = [
            laplace(
                EFFECTS @ features * phi, np.full(3, phi), quantiles - RADIUS, quantiles + RADIUS
            ).value.sum()
            for features, quantiles in stream
        ]
        best = min(best, float(np.mean(each)))
    return best


@pytest.mark.thinned(3)
@pytest.mark.parametrize("steps", ["newton", "adagrad", "coin-betting"])
def test_regret_against_the_best_w_in_hindsight_grows_below_its_first_rate(
    steps: StepsName,
) -> None:
    """Late regret a release is at most half of that of the first tenth."""
    stream = batches(2_000)
    regrets = losses(start(steps=steps), stream) - hindsight(stream)
    assert regrets[1_000:].mean() < 0.5 * regrets[:200].mean()


def test_effects_of_features_are_learned() -> None:
    """The priors of new batches lie where the features say."""
    descent = start()
    for features, quantiles in batches(1_000):
        descent = descent.updated(features, quantiles - RADIUS, quantiles + RADIUS)
    new = np.array([1.0, 1.5, -1.0])
    assert descent.locations(new) == pytest.approx(EFFECTS @ new, abs=0.35)


def test_features_that_say_nothing_do_little_harm() -> None:
    """A stream that stands still, ten features of chance beside it."""
    random = np.random.default_rng(1)
    descent, off = start(count=11), []
    for _ in range(400):
        features = np.concatenate(([1.0], random.normal(size=10)))
        off.append(np.abs(descent.locations(features) - EFFECTS[:, 0]).mean())
        found = EFFECTS[:, 0] + random.laplace(0.0, 0.1, 3)
        descent = descent.updated(features, found - 0.1, found + 0.1)
    assert np.mean(off[200:]) < 0.35


def test_a_release_that_shows_nothing_teaches_nothing() -> None:
    """Its interval is far wider than any prior."""
    descent = start()
    after = descent.updated(np.ones(3), np.full(3, -1e9), np.full(3, 1e9))
    assert np.abs(after.weights - descent.weights).max() < 1e-6
    assert np.abs(after.inverse_scales - descent.inverse_scales).max() < 1e-6


def test_the_worst_level_leads_under_log_sum_exp() -> None:
    """Equation 4: the level that is farthest off takes all but the whole step."""
    quantiles = np.array([-1.0, 0.0, 40.0])
    after = start("log-sum-exp", "coin-betting").updated(np.ones(3), quantiles - 1, quantiles + 1)
    moved = np.abs(after.weights - start().weights).max(axis=1)
    assert moved[2] > 100.0 * moved[:2].max()


def test_another_unit_leaves_the_priors_where_they_are() -> None:
    """Locations and scales, back in the old unit."""
    descent = start()
    for features, quantiles in batches(50):
        descent = descent.updated(features, quantiles - RADIUS, quantiles + RADIUS)
    other, features = descent.restandardised(3.0, 0.2), np.array([1.0, -2.0, 0.5])
    assert other.locations(features) * 0.2 + 3.0 == pytest.approx(descent.locations(features))
    assert other.scales * 0.2 == pytest.approx(descent.scales)


def test_placed_priors_lie_where_they_are_put() -> None:
    """For the batch that was given."""
    features, places = np.array([1.0, -2.0, 0.5]), np.array([4.0, 5.0, 9.0])
    assert start().placed(features, places).locations(features) == pytest.approx(places)


@pytest.mark.parametrize("steps", ["newton", "adagrad", "coin-betting"])
def test_a_state_survives_json(steps: StepsName) -> None:
    """To the bit, the rule's own state with it."""
    descent = start(steps=steps)
    stream = batches(20)
    for features, quantiles in stream[:10]:
        descent = descent.updated(features, quantiles - RADIUS, quantiles + RADIUS)
    again = start(steps=steps).restored(unpacked(json.loads(json.dumps(packed(descent.to_json())))))
    assert np.array_equal(losses(again, stream[10:]), losses(descent, stream[10:]))
    assert again.total_loss == descent.total_loss
