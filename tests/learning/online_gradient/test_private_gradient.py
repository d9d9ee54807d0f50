"""Learning from bought gradients: the slope is that of the loss, and steps go down it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.learner import Observation
from streamdp.learning.online_gradient.descent import bet, laplace, start_betting
from streamdp.learning.online_gradient.point_gradient import PointGradient, PrivateGradient
from streamdp.priors.shapes import Cauchy
from streamdp.types import FloatArray, Json

GUESS, FEATURES = (100.0, 20.0), (0.5,)
PLAIN = (Cauchy(*GUESS), 0.1, GUESS)
LEARNER = PrivateGradient(*PLAIN, 0.5, 0.5, gradient_share=Fraction(1, 3))
VALUES = np.array([97.0, 113.0])


def state_of(standard: FloatArray) -> Json:
    """The state whose standardised parameters (W', φ') are these."""
    kept, (location, scale) = standard.copy(), GUESS
    kept[:, -1] /= scale
    kept[:, 0] += location * kept[:, -1]
    return {"parameters": kept.tolist(), "optimizer": start_betting(kept.shape)}


def parameters(state: Json) -> tuple[FloatArray, FloatArray]:
    """W and φ of a state."""
    kept = np.array(state["parameters"])
    return kept[:, :-1], kept[:, -1]


def bought(gradient: Sequence[float]) -> Observation:
    return Observation((), gradient=tuple(gradient))


def loss_of(standard: FloatArray) -> float:
    weights, phi = parameters(state_of(standard))
    theta = weights @ np.array([1.0, *FEATURES])
    losses = laplace(theta, phi, VALUES - 0.5, VALUES + 0.5).value
    return float(np.log(np.exp(losses).sum()))


def test_the_slope_is_the_derivative_of_the_loss() -> None:
    """By differences, in θ' and φ' of each quantile, away from the guess."""
    at, step = np.array([[-0.3, 0.2, 1.4], [0.8, -0.4, 0.9]]), 1e-6
    found = LEARNER.slope(state_of(at), 2, FEATURES)(VALUES)
    for place, column in ((0, 0), (1, 0), (0, 2), (1, 2)):
        nudge = np.zeros_like(at)
        nudge[place, column] = step
        rise = (loss_of(at + nudge) - loss_of(at - nudge)) / (2 * step)
        assert found[place + column] == pytest.approx(rise, rel=1e-5)


def test_steps_are_those_of_coin_betting_in_standard_coordinates() -> None:
    """One step, seen in the parameters that are kept."""
    after = LEARNER.observe(LEARNER.init(), bought((0.5, -0.5, 0.0, 0.25)))
    weights, phi = parameters(json.loads(json.dumps(after)))
    gradient, first = np.array([[0.5, 0.0], [-0.5, 0.25]]), np.array([[0.0, 1.0]] * 2)
    exact, _ = bet(gradient, start_betting((2, 2)), first)
    assert np.abs(exact - first).max() > 1e-3
    assert np.column_stack((weights[:, 0] - 100.0 * phi, phi * 20.0)) == pytest.approx(exact)


def test_without_noise_locations_come_to_the_truth() -> None:
    """Exact gradients at quantiles that stay: priors settle there and narrow."""
    state = LEARNER.init()
    for _ in range(400):
        gradient = LEARNER.slope(state, 2)(VALUES)
        state = LEARNER.observe(state, bought(gradient.tolist()))
    weights, phi = parameters(state)
    assert np.abs(weights[:, 0] / phi - VALUES).max() < 3.0
    assert (1.0 / phi).max() < 10.0


def test_noise_alone_moves_priors_little() -> None:
    """A year of it, at three sizes: nineteen of twenty within a fifth of the guessed scale."""
    for size in (1.0, 100.0, 1e4):
        chance, state = np.random.default_rng(3), LEARNER.init()
        for _ in range(365):
            state = LEARNER.observe(state, bought(chance.laplace(0.0, size, 120).tolist()))
        weights, phi = parameters(state)
        standard = np.concatenate((weights[:, 0] - 100.0 * phi, 20.0 * phi - 1.0))
        assert np.quantile(np.abs(standard), 0.95) < 0.2


def test_only_the_option_is_another_signature() -> None:
    """A state learned from releases is read by no other learner; the share changes nothing."""
    free = PointGradient(*PLAIN, 0.5, 0.5)
    other = PrivateGradient(*PLAIN, 0.5, 0.5, gradient_share=Fraction(1, 9))
    assert "private_gradient" not in free.describe()
    assert LEARNER.describe() == other.describe() != free.describe()
