"""Privacy loss distributions: worst pairs that no draw exceeds, and no better than chance."""

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.privacy.accountants_pld import draws_of, epsilon_of_draws, hockey_stick
from streamdp.privacy.amounts import NANO
from streamdp.privacy.events import bounded_range, choice, group, parallel, pure, sequence


@settings(deadline=None)
@given(st.floats(0.01, 4), st.floats(0, 1), st.floats(-4, 4))
def test_no_bounded_range_draw_is_worse_than_its_pair(
    epsilon: float, share: float, at: float
) -> None:
    """Two-ended laws for every place of the range: all are below, and the best t reaches it."""

    def divergence(t: float) -> float:
        up = math.expm1(t - epsilon) / math.expm1(-epsilon)
        ends = ((up, t), (1 - up, t - epsilon))
        return sum(mass * max(-math.expm1(at - loss), 0.0) for mass, loss in ends)

    worst = hockey_stick("bounded-range", epsilon, at)
    assert divergence(share * epsilon) <= worst + 1e-12
    if 0 <= at <= epsilon:
        assert divergence((at + epsilon) / 2) == pytest.approx(worst, abs=1e-12)
    assert worst <= hockey_stick("pure", epsilon, at) + 1e-12


def test_events_become_draws() -> None:
    """Sequences are taken apart; shares and groups count as pure."""
    half = Fraction(1, 2)
    event = sequence([bounded_range(half), bounded_range(half), parallel([pure(half)])])
    assert draws_of(event) == {("bounded-range", half): 2, ("pure", half): 1}
    assert draws_of(choice([event, event])) == {("pure", Fraction(3, 2)): 1}
    assert draws_of(group(event, 3)) == {("pure", Fraction(9, 2)): 1}


def test_composition_lies_between_one_draw_and_the_sum() -> None:
    """Exact for one randomised response; never above the sum; a hundred are far below it."""
    pytest.importorskip("dp_accounting")
    delta = Fraction(1, 10**6)
    one = epsilon_of_draws(Counter({("pure", Fraction(1)): 1}), delta) / NANO
    exact = math.log(math.e - float(delta) * (1 + math.e))
    assert exact <= one <= exact + 2e-3
    kinds = [
        epsilon_of_draws(Counter({(kind, Fraction(1, 10)): 100}), delta) / NANO
        for kind in ("bounded-range", "pure")
    ]
    assert 2.0 < kinds[0] < kinds[1] < 6.0
