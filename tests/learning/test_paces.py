"""The weights of the experts as a picture shows them."""

from __future__ import annotations

import numpy as np

from streamdp.learning.filters import DRIFTS
from streamdp.learning.paces import pace_names, pace_shares
from tests.learning.test_experts import NORMAL, learner, stable_state


def test_shares_sum_to_one_and_have_names() -> None:
    """Equal at first; one share and one name an expert."""
    for state in (learner().init(), stable_state()):
        shares = pace_shares(state)
        assert len(shares) == len(DRIFTS) == len(set(pace_names()))
        assert np.isclose(shares.sum(), 1.0)
    assert np.ptp(pace_shares(learner().init())) == 0.0


def test_a_jump_takes_the_trust_from_what_is_steady() -> None:
    """After one release far off, the expert that forgets most gains on the one that never does."""
    mixture, state = learner("10"), stable_state(40)
    before = pace_shares(state)
    after = pace_shares(mixture.learn(state, tuple(NORMAL + 5.0)))
    assert after[-1] / after[0] > 10 * before[-1] / before[0]
