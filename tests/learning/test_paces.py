"""The weights of the experts as a picture shows them."""

from __future__ import annotations

import numpy as np

from streamdp.learning.filters import DRIFTS
from streamdp.learning.paces import pace_names, pace_shares
from streamdp.types import Json
from tests.learning.test_experts import NORMAL, learner, stable_state


def test_shares_sum_to_one_and_have_names() -> None:
    """Equal at first; one share and one name an expert."""
    for state in ({}, stable_state()):
        shares = pace_shares(state)
        assert len(shares) == len(DRIFTS) == len(set(pace_names()))
        assert np.isclose(shares.sum(), 1.0)
    assert np.ptp(pace_shares({})) == 0.0


def test_what_stays_is_trusted_to_stay_and_what_walks_to_walk() -> None:
    """The steady expert outweighs the fast one on a stable stream, and loses on a walk."""
    steady = pace_shares(stable_state(40))
    mixture = learner("10")
    state: Json = mixture.init()
    walk = np.cumsum(np.random.default_rng(1).normal(0.0, 2.0, 40))
    for step in walk:
        state = mixture.learn(state, tuple(NORMAL + step))
    moving = pace_shares(state)
    assert steady[0] > steady[-1]
    assert moving[0] < steady[0]
