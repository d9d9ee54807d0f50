"""A run of a gate between whose tests other draws fall: it composes with them as one draw."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding
from streamdp.privacy.accountants import rho_of_epsilon
from streamdp.types import FloatArray
from tests.privacy.gates.cases import STEPS, _chance_of, asked
from tests.privacy.gates.law import NO_ENTROPY, Asked, _bits, coarse, noise_law

GATE = Thresholding(Fraction(1), Fraction(1, 10), horizon=100)
TERMS = Terms(Fraction(1, 50))
OTHER = Fraction(1, 4)
"""Price of a draw between two tests: randomised response, which loses all of it."""

TESTS, ORDERS = 5, (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)

Seen = dict[tuple[int, ...], tuple[float, float]]
"""Probability under both neighbours, by the bits of the gate and of the draws before each."""


def seen(questions: dict[tuple[int, ...], Asked], *, redrawn: bool = False) -> Seen:
    """The joint law of a run and of the draws between its tests, which decide what is asked next.

    Args:
        questions: The next test by all answers of draws so far, one more than tests.
        redrawn: Whether the threshold is drawn anew for each test, which is a mistake.
    """
    rho = noise_law(lambda: int(GATE.start(NO_ENTROPY)["rho"]))
    nu = noise_law(lambda: GATE.noise.gap({"rho": 0}, NO_ENTROPY) - GATE.noise.offset())
    odds = math.exp(float(OTHER))
    found = dict[tuple[int, ...], list[float]]()

    def follow(past: tuple[int, ...], draws: tuple[int, ...], alive: FloatArray, side: int) -> None:
        for answer in (0, 1):
            share = (odds if answer == side else 1.0) / (1.0 + odds)
            drawn, weight = (*draws, answer), alive * share
            question = questions[drawn]
            chance = question.other if side else question.mine
            bits = _bits(GATE, len(drawn), question, chance, rho, nu)
            for accepted, bit in zip((1, 0), bits, strict=True):
                here = (*past, answer, accepted)
                left = weight * (np.full(len(rho), rho @ bit) if redrawn else bit)
                if accepted or len(drawn) == TESTS:
                    found.setdefault(here, [0.0, 0.0])[side] += float(left.sum())
                else:
                    follow(here, drawn, left, side)

    for side in (0, 1):
        follow((), (), rho, side)
    return {each: (mine, other) for each, (mine, other) in found.items()}


def some_questions(seed: int) -> dict[tuple[int, ...], Asked]:
    """Tests whose neighbours move up or down, by what was drawn before them."""
    generator = np.random.default_rng(seed)
    found = {}
    for size in range(1, TESTS + 1):
        for drawn in itertools.product((0, 1), repeat=size):
            chance = _chance_of(generator.uniform(-12.0, 12.0), TERMS)
            up = bool(generator.integers(2)) if size < TESTS else not drawn[-1]
            found[drawn] = asked(TERMS, chance, up)
    return found


def largest_ratio(law: Seen) -> float:
    """Largest loss over what the prices add up to."""
    return max(
        abs(math.log(mine / other)) / float(GATE.epsilon + OTHER * (len(each) // 2))
        for each, (mine, other) in law.items()
        if min(mine, other) > 1e-12
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_run_and_the_draws_between_its_tests_lose_the_sum_of_their_prices(seed: int) -> None:
    """In epsilon, and of all orders in what epsilon implies of rho."""
    with coarse(*STEPS[False]):
        law = seen(some_questions(seed))
    assert sum(mine for mine, _ in law.values()) == pytest.approx(1.0, abs=1e-9)
    assert largest_ratio(law) <= 1.0 + 1e-6
    rho = float(rho_of_epsilon(GATE.epsilon) + TESTS * rho_of_epsilon(OTHER))
    for order, (one, two) in itertools.product(ORDERS, ((0, 1), (1, 0))):
        sum_ = sum(
            each[one] * (each[one] / each[two]) ** (order - 1.0)
            for each in law.values()
            if min(each) > 1e-12
        )
        assert math.log(sum_) / (order - 1.0) <= order * rho * (1 + 1e-6)


def test_a_threshold_drawn_anew_after_each_draw_loses_more() -> None:
    """Each test would be a run of its own, at the price of one for all."""
    near, far = (_chance_of(score, TERMS) for score in (-2.0, -20.0))
    worst = {
        drawn: asked(TERMS, *((near, True) if len(drawn) < TESTS else (far, False)))
        for drawn in some_questions(0)
    }
    with coarse(*STEPS[False]):
        assert 0.95 < largest_ratio(seen(worst)) <= 1.0 + 1e-6
        assert largest_ratio(seen(worst, redrawn=True)) > 1.2
