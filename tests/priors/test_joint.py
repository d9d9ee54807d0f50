"""Shape priors: components, what releases do to their weights, and what covers the data."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.priors.joint import JointPrior, Shapes
from streamdp.priors.shapes import (
    LINEAR,
    Cauchy,
    linear_shapes,
    profile,
    shapes_from_bounds,
    shapes_from_guess,
    with_shapes,
)

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


@pytest.mark.parametrize("name", LINEAR)
def test_profiles_rise_and_their_median_is_zero(name):
    """A component is sorted, and its shift is the median of the batch it believes in."""
    standard = profile(DECILES, name)
    assert (np.diff(standard) > 0).all()
    assert standard[4] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "shapes",
    [
        shapes_from_bounds(DECILES, -10.0, 10.0, 0.001),
        shapes_from_bounds(DECILES, 0.0, 1e6, 0.01),
        shapes_from_guess(DECILES, 3.0, 1.5),
    ],
)
def test_weights_sum_to_one_and_bumps_are_sorted(shapes):
    """Shapes are a probability; centres rise along the targets."""
    assert np.exp(shapes.log_weights).sum() == pytest.approx(1.0)
    assert (np.diff(shapes.centres, axis=1) > 0).all()
    assert (shapes.widths > 0).all()


def test_a_normal_sample_is_near_some_component():
    """Bounds alone: the largest distance over deciles is a small part of the sample's spread."""
    shapes = shapes_from_bounds(DECILES, -10.0, 10.0, 0.001)
    truth = 1.3 + 0.9 * profile(DECILES, "normal")
    assert np.abs(shapes.centres - truth).max(axis=1).min() < 0.2 * 0.9


def test_releases_choose_components():
    """Bayes: a released value near one component drops the far ones and keeps the robust part."""
    standard = profile(DECILES, "normal")
    prior = with_shapes((Cauchy(0.0, 1.0),) * 9, linear_shapes(standard, (-10, 10), (0.5, 5)))
    before = prior.shapes
    assert before is not None
    best = int(np.abs(before.centres[:, [0, 8]] - [2.0, 3.5]).max(axis=1).argmin())
    released = {0: float(before.centres[best, 0]), 8: float(before.centres[best, 8])}
    kept = prior.given(released, 0.001).shapes
    assert kept is not None
    assert 0 < len(kept.log_weights) < len(before.log_weights) / 10
    chosen = kept.centres[kept.log_weights.argmax()]
    assert chosen == pytest.approx(before.centres[best])
    stray = prior.given({0: -9.0, 8: -8.999}, 0.001)
    assert stray.robust_weight > 1e-3 > 0
    assert stray.shapes is not None
    assert len(stray.shapes.log_weights) >= 1


def test_nothing_released_changes_nothing():
    """Without releases, or without shapes, the prior stays what it is."""
    plain = JointPrior((Cauchy(0.0, 1.0),) * 9)
    assert plain.given({0: 1.0}, 0.1) is plain
    shaped = with_shapes(plain.robust, shapes_from_guess(DECILES, 0.0, 1.0))
    assert shaped.given({}, 0.1) is shaped


def test_fainter_bumps_lose_weight_with_each_value_that_is_released():
    """A bump's mass counts once a target, against the robust priors."""
    shapes = shapes_from_guess(DECILES, 0.0, 1.0)
    released = {4: 0.1, 8: 0.9}
    weights = [
        replace(with_shapes((Cauchy(0.0, 1.0),) * 9, shapes), log_bump_mass=mass)
        .given(released, 0.01)
        .robust_weight
        for mass in (0.0, -2.0)
    ]
    assert weights[1] == pytest.approx(min(1.0, weights[0] * np.exp(4.0)))


@pytest.mark.parametrize("weight", [0.0, -0.5, float("nan")])
def test_a_prior_without_a_robust_share_is_refused(weight: float) -> None:
    """Shapes alone may leave points that no draw can fall on."""
    with pytest.raises(ValueError, match="robust_weight"):
        JointPrior((Cauchy(0.0, 1.0),), robust_weight=weight)


def test_values_far_from_every_narrow_shape_leave_a_weight_that_can_be_drawn():
    """Groups whose quantiles are all equal make shapes of no width: e^-10^14 fills any memory."""
    narrow = Shapes(np.zeros(2), np.zeros((2, 9)), np.full((2, 9), 1e-11))
    left = JointPrior((Cauchy(0.0, 1.0),) * 9, narrow).given({4: 1000.0}, 1.0)
    assert left.shapes is not None
    assert len(left.shapes.log_weights) > 0
    assert (left.shapes.log_weights >= -500.0).all()
    assert left.robust_weight == 1.0
