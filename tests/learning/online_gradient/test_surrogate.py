from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.learning.online_gradient.descent import laplace
from streamdp.priors.shapes import Laplace

POINTS = [(0.3, 0.7, -1.2, 0.9), (2.1, 1.3, -0.4, 0.3), (-1.7, 0.2, 5.0, 5.4), (4.0, 2.0, 1.0, 3.5)]


def at(*point: float) -> tuple[float, float, float]:
    loss = laplace(*(np.array([each]) for each in point))
    return float(loss.value[0]), float(loss.by_theta[0]), float(loss.by_phi[0])


@pytest.mark.parametrize("point", POINTS)
def test_laplace_loss_is_minus_log_mass(point: tuple[float, float, float, float]) -> None:
    """The surrogate of a Laplace prior is -ln of the mass the prior gives to the interval."""
    theta, phi, lower, upper = point
    mass = Laplace(theta / phi, 1.0 / phi).log_mass(np.array([lower]), np.array([upper]))
    assert at(*point)[0] == pytest.approx(-float(mass[0]), rel=1e-12)


@pytest.mark.parametrize("point", POINTS)
def test_gradients_match_finite_differences(point: tuple[float, float, float, float]) -> None:
    """Both derivatives agree with differences at points where no symmetry hides an error."""
    theta, phi, lower, upper = point
    step = 1e-6
    _, by_theta, by_phi = at(*point)
    high, low = at(theta + step, *point[1:]), at(theta - step, *point[1:])
    assert by_theta == pytest.approx((high[0] - low[0]) / (2 * step), abs=1e-6)
    high = at(theta, phi + step, lower, upper)
    low = at(theta, phi - step, lower, upper)
    assert by_phi == pytest.approx((high[0] - low[0]) / (2 * step), abs=1e-5)


finite = st.floats(-5.0, 5.0)
positive = st.floats(0.05, 5.0)


@given(
    theta=st.tuples(finite, finite), phi=st.tuples(positive, positive), at_=finite, width=positive
)
def test_the_surrogate_is_jointly_convex(
    theta: tuple[float, float],
    phi: tuple[float, float],
    at_: float,
    width: float,
) -> None:
    """In (θ, φ) the loss at a midpoint is not above the mean of the losses at the ends."""
    ends = [at(a, b, at_, at_ + width)[0] for a, b in zip(theta, phi, strict=True)]
    middle = at(sum(theta) / 2, sum(phi) / 2, at_, at_ + width)[0]
    assert middle <= sum(ends) / 2 + 1e-9


def test_the_loss_of_all_is_led_by_the_worst() -> None:
    """The gradient of ln Σ exp weighs quantiles by their own losses; weights sum to one."""
    losses = laplace(np.zeros(3), np.ones(3), np.array([-1.0, 2.0, 9.0]), np.array([1.0, 3.0, 9.5]))
    shares = losses.gradient()[:, 1] / losses.by_phi
    assert shares.sum() == pytest.approx(1.0)
    assert shares.argmax() == 2
