"""AdaHedge keeps its regret bound on any losses; the learner around it finds the best expert."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamdp.kinds.experts.learner import Hedge, Leader, OnlineLearner, State


@given(
    arrays.arrays(
        float,
        st.tuples(st.integers(1, 30), st.integers(1, 5)),
        elements=st.floats(-1000, 1000, width=32),
    )
)
def test_the_regret_bound_holds_for_losses_of_any_size(losses: np.ndarray) -> None:
    """The played loss exceeds the best expert's by at most twice the mixability gap."""
    hedge, played = Hedge.over(losses.shape[1]), 0.0
    for each in losses:
        weights = hedge.weights()
        assert weights.sum() == pytest.approx(1.0)
        played += float(weights @ each)
        hedge = hedge.observe(each)
    regret = played - losses.sum(axis=0).min()
    assert regret <= 2.0 * hedge.gap + 1e-6 * (1 + abs(losses).sum())


def learner(experts: int, noise: float) -> OnlineLearner:
    """Experts in a row, those next to each other alike."""
    places = np.arange(experts) / experts
    kernel = np.exp(-0.5 * ((places[:, None] - places) / 0.2) ** 2)
    return OnlineLearner(Leader.of([kernel], noise**2 * np.eye(experts)))


def play(online: OnlineLearner, losses: np.ndarray, noise: float) -> tuple[float, State]:
    """Loss of the weights on the true losses, learned from noisy ones."""
    return play_on(online, online.start(), losses, noise)


def play_on(
    online: OnlineLearner, state: State, losses: np.ndarray, noise: float
) -> tuple[float, State]:
    """Loss of the weights from a state on."""
    random, played = np.random.default_rng(7), 0.0
    for each in losses:
        played += float(online.weights(state) @ each)
        state = online.observe(state, each + random.normal(0.0, noise, each.shape))
    return played, state


def test_it_finds_the_best_expert_under_noise() -> None:
    """After two hundred releases nearly all weight lies near the best of twenty."""
    means = 0.1 + 0.4 * abs(np.arange(20) - 13) / 20
    online = learner(20, 0.3)
    played, state = play(online, np.tile(means, (200, 1)), 0.3)
    assert online.weights(state) @ means - means.min() < 0.02
    assert played / 200 - means.min() < 0.05


def test_it_follows_a_change_of_the_best_expert() -> None:
    """A leader with a short memory takes over; long memory alone would stay behind for ever."""
    before = 0.1 + 0.4 * abs(np.arange(20) - 2) / 20
    losses = np.vstack([np.tile(before, (300, 1)), np.tile(before[::-1], (200, 1))])
    online = learner(20, 0.1)
    _, state = play(online, losses, 0.1)
    assert online.weights(state) @ before[::-1] - before.min() < 0.03
    forgetful = Hedge.over(20)
    for each in losses:
        forgetful = forgetful.observe(each)
    assert forgetful.weights() @ before[::-1] - before.min() > 0.1


def test_a_state_survives_the_store() -> None:
    """As JSON and back it plays the same."""
    online = learner(5, 0.2)
    _, state = play(online, np.random.default_rng(3).uniform(size=(9, 5)), 0.2)
    again = online.restored(json.loads(json.dumps(state.to_json())))
    assert online.weights(again).tolist() == online.weights(state).tolist()


def test_a_state_of_an_earlier_version_keeps_what_it_saw() -> None:
    """It has sums, and how far behind their leaders are, of before the mixture over rates."""
    online, losses = learner(5, 0.2), np.random.default_rng(3).uniform(size=(9, 5))
    _, state = play(online, losses, 0.0)
    total = losses.sum(axis=0).tolist()
    earlier = {
        "inner": state.to_json()["inner"],
        "outer": [[4.0, 5.0, 6.0], 0.5],
        "memories": [[total, 9.0, 9.0], [total, 8.0, 7.5]],
    }
    found = online.restored(json.loads(json.dumps(earlier)))
    assert found.inner.weights().tolist() == state.inner.weights().tolist()
    assert found.memories.mean == pytest.approx(losses.mean(axis=0))
    assert found.outer.losses[:3].tolist() == [4.0, 4.0, 5.0]
    _, later = play_on(online, found, losses, 0.0)
    assert np.isfinite(online.weights(later)).all()
    stored = {key: each for key, each in state.to_json().items() if key != "unsure"}
    assert online.weights(online.restored(stored)).tolist() == online.weights(state).tolist()
    four = {**stored, "outer": [[4.0, 5.0, 6.0, 7.0], 0.5]}
    assert online.restored(four).outer.losses.tolist() == [4.0, 5.0, 6.0, *[7.0] * 6]


def test_ways_are_charged_the_noise_of_what_they_gain() -> None:
    """The variance of differences is that of the noise a leader was made for."""
    leader, weights = learner(5, 0.2).leader, np.array([[1.0, 0.0, -1.0, 0.0, 0.0]])
    assert leader.noise_of(weights) == pytest.approx([2.0 * 0.2**2], rel=1e-6)


def test_a_leader_that_jumps_is_followed_soon() -> None:
    """A mixture over rates of forgetting; one of either memory would be late or unsteady."""
    best = np.repeat(np.random.default_rng(5).integers(0, 20, 12), 30)
    losses = 0.1 + 0.8 * abs(np.arange(20) - best[:, None]) / 20
    played, _ = play(learner(20, 0.05), losses, 0.05)
    assert played / len(losses) - losses.min(axis=1).mean() < 0.03
    kept = losses[np.maximum(np.arange(len(losses)) - 30, 0)].argmin(axis=1)
    assert losses[np.arange(len(losses)), kept].mean() - losses.min(axis=1).mean() > 0.1


def test_a_leader_that_drifts_is_followed_by_the_rate_that_tells_it_best() -> None:
    """Losses are foretold best by a memory too long to tell the best expert in time."""
    best = np.round(np.linspace(0.0, 19.0, 365))
    losses = 0.1 + 0.8 * abs(np.arange(20) - best[:, None]) / 20
    played, _ = play(learner(20, 0.01), losses, 0.01)
    assert played / len(losses) - losses.min(axis=1).mean() < 0.0045


def test_large_noise_takes_nothing_from_the_least_sum() -> None:
    """Where a release is mostly noise, forgetting has to show that it gains before it is used."""
    losses, worse = np.tile(0.1 + 0.4 * abs(np.arange(20) - 13) / 20, (300, 1)), []
    for seed in range(5):
        seen = losses + np.random.default_rng(seed).normal(0.0, 1.0, losses.shape)
        online, sums, lost = learner(20, 1.0), np.zeros(20), 0.0
        state = online.start()
        for each, noisy in zip(losses, seen, strict=True):
            lost += float(online.weights(state) @ each - each[sums.argmin()])
            state, sums = online.observe(state, noisy), sums + noisy
        worse.append(lost / len(losses))
    assert np.mean(worse) < 0.005


def test_what_all_experts_lose_together_moves_nothing() -> None:
    """Only differences between experts are learned from."""
    online, losses = learner(5, 0.2), np.random.default_rng(4).uniform(size=(20, 5))
    common = np.random.default_rng(5).uniform(size=(20, 1))
    _, state = play(online, losses, 0.0)
    _, shifted = play(online, losses + common, 0.0)
    assert online.weights(shifted) == pytest.approx(online.weights(state))
