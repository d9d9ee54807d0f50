from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.experts.belief.belief import Belief, Release, observe
from streamdp.learning.experts.belief.noise import NoisyDraw, log_normaliser, noisy_draws
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Cauchy, Laplace
from streamdp.types import Grid, Prior

GRID = Grid(Fraction(1, 100), -100_000, 100_000)


def root(strength: float) -> NoisyDraw:
    """One median over the whole grid."""
    return NoisyDraw(0, -1, 1, 0.5, strength, 1.0, 0)


def observed(prior: Prior, strength: float, value: float) -> Belief:
    before = Belief(np.zeros(1), np.zeros((1, 1)), np.eye(1)[None])
    release = Release(np.array([value]), np.array([0.4]), (-1000.0, 1000.0), 0.01)
    return observe(before, root(strength), prior, release)


def test_the_normaliser_is_the_integral_of_prior_and_law() -> None:
    """ln Z agrees with a fine sum over the region: well near the peaks, roughly far from them."""
    draw, prior = root(20.0), Cauchy(1.0, 0.5)
    unit = draw.unit(0.4)
    points, log_z = log_normaliser(draw, 0.4, prior, (-50.0, 50.0), np.array([-0.3, 1.0]), unit)
    edges = np.linspace(-50.0, 50.0, 400_001)
    masses = np.exp(prior.log_mass(edges[:-1], edges[1:]))
    middles = (edges[:-1] + edges[1:]) / 2.0
    for at, tolerance in ((-2.0, 0.7), (-0.3, 0.1), (0.4, 0.1), (1.0, 0.1), (3.0, 0.7)):
        exact = np.log((masses * np.exp(-draw.cost(middles - at, 0.4))).sum())
        assert np.interp(at, points, log_z) == pytest.approx(exact, abs=tolerance)


def test_a_draw_without_data_teaches_nothing() -> None:
    """At a strength of nothing the belief stays, wherever the prior put the release."""
    after = observed(Laplace(0.0, 0.1), 1e-9, 0.2)
    assert after.means[0, 0] == pytest.approx(0.0, abs=0.01)
    assert after.covariances[0, 0, 0] == pytest.approx(1.0, rel=0.02)


def test_a_strong_draw_from_a_wide_prior_is_believed() -> None:
    """Where data decide, the belief moves to the release, as far off as the law's own width."""
    after = observed(Cauchy(0.0, 50.0), 200.0, 0.7)
    assert after.means[0, 0] == pytest.approx(0.7, abs=0.05)
    assert np.sqrt(after.covariances[0, 0, 0]) < 3.0 * root(200.0).unit(0.4)


def test_a_draw_from_a_narrow_prior_says_less_than_one_from_a_wide_prior() -> None:
    """The echo: the same release moves the belief less when the prior already wanted it there."""
    narrow, wide = observed(Laplace(0.5, 0.02), 10.0, 0.5), observed(Cauchy(0.0, 50.0), 10.0, 0.5)
    assert abs(narrow.means[0, 0]) < 0.6 * abs(wide.means[0, 0])


@pytest.mark.parametrize("branching", [2, 3, 6])
def test_every_target_is_drawn_once_and_parents_come_first(branching: int) -> None:
    """The learner reads each quantile once, after the neighbours that bound its region."""
    targets = tuple(Fraction(index, 10) for index in range(1, 10))
    tree = QuantileTree(targets, Fraction(1), GRID, branching)
    draws = noisy_draws(tree, 500, tuple(range(9)), 9)
    seen = {-1, len(targets)}
    for draw in draws:
        assert {draw.left, draw.right} <= seen
        assert draw.target not in seen
        seen.add(draw.target)
    assert len(seen) == len(targets) + 2
