from __future__ import annotations

import json

import numpy as np

from streamdp.learning.learner import Observation
from streamdp.learning.online_gradient.descent import laplace
from streamdp.learning.online_gradient.point_gradient import PointGradient
from streamdp.priors.shapes import Cauchy
from streamdp.types import FloatArray

LENGTH = 2_000


def recorded() -> FloatArray:
    """Releases of one quantile around 3, as a stream would leave them."""
    return 3.0 + np.random.default_rng(5).laplace(0.0, 0.4, LENGTH)


def losses_of(theta: FloatArray, phi: FloatArray, values: FloatArray) -> FloatArray:
    return laplace(theta, phi, values - 0.1, values + 0.1).value


def run() -> FloatArray:
    """Losses of a learner along the recorded stream."""
    learner = PointGradient(Cauchy(0.0, 1.0), 0.1, (0.0, 1.0), 0.1, 0.05)
    state, losses = learner.init(), []
    for value in recorded():
        theta, phi = (0.0, 1.0) if not state else state["parameters"][0]
        losses.append(losses_of(np.array([theta]), np.array([phi]), np.array([value]))[0])
        state = json.loads(json.dumps(learner.observe(state, Observation((float(value),)))))
    return np.array(losses)


def best_fixed() -> float:
    """Loss of the best (θ, φ) in hindsight, over a fine lattice."""
    values, ones = recorded(), np.ones(LENGTH)
    return min(
        float(losses_of(ones * place * phi, ones * phi, values).mean())
        for place in np.linspace(2.5, 3.5, 21)
        for phi in np.geomspace(0.5, 10.0, 25)
    )


def test_regret_against_the_best_fixed_parameters_vanishes() -> None:
    """Late regret a release is less than half of early regret, and below a quarter of a nat."""
    regrets = run() - best_fixed()
    assert regrets[LENGTH // 2 :].mean() < min(0.25, 0.5 * regrets[: LENGTH // 5].mean())
