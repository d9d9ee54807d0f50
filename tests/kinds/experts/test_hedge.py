"""AdaHedge keeps its regret bound on any losses; the learner around it finds the best expert."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from streamdp.kinds.experts.hedge import Hedge
from streamdp.kinds.experts.leader import Leader
from streamdp.kinds.experts.learner import OnlineLearner, State


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
    random, state, played = np.random.default_rng(7), online.start(), 0.0
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
    again = State.from_json(state.to_json())
    assert online.weights(again).tolist() == online.weights(state).tolist()


def test_what_all_experts_lose_together_moves_nothing() -> None:
    """Only differences between experts are learned from."""
    online, losses = learner(5, 0.2), np.random.default_rng(4).uniform(size=(20, 5))
    common = np.random.default_rng(5).uniform(size=(20, 1))
    _, state = play(online, losses, 0.0)
    _, shifted = play(online, losses + common, 0.0)
    assert online.weights(shifted) == pytest.approx(online.weights(state))
