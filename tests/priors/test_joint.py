"""Shape priors: components, what releases do to their weights, and what covers the data."""

from fractions import Fraction

import numpy as np
import pytest

from streamdp.priors.families import Cauchy
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import (
    LINEAR,
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
    "groups",
    [
        shapes_from_bounds(DECILES, -10.0, 10.0, 0.001),
        shapes_from_bounds(DECILES, 0.0, 1e6, 0.01),
        shapes_from_guess(DECILES, 3.0, 1.5),
    ],
)
def test_weights_sum_to_one_and_bumps_are_sorted(groups):
    """Every group is a probability; centres rise along the targets; bumps have mass one."""
    for group in groups:
        assert np.exp(group.log_weights).sum() == pytest.approx(1.0)
        assert (np.diff(group.centres, axis=1) > 0).all()
        assert np.exp(group.log_bump()).sum() == pytest.approx(1.0)
        assert (group.widths > 0).all()


def test_a_normal_sample_is_near_some_component():
    """Bounds alone: the largest distance over deciles is a small part of the sample's spread."""
    group = shapes_from_bounds(DECILES, -10.0, 10.0, 0.001)[0]
    truth = 1.3 + 0.9 * profile(DECILES, "normal")
    assert np.abs(group.centres - truth).max(axis=1).min() < 0.2 * 0.9


def test_releases_choose_components():
    """Bayes: a released value near one component drops the far ones and keeps the robust part."""
    standard = profile(DECILES, "normal")
    prior = with_shapes((Cauchy(0.0, 1.0),) * 9, linear_shapes(standard, (-10, 10), (0.5, 5)))
    (group,) = prior.shapes
    best = int(np.abs(group.centres[:, [0, 8]] - [2.0, 3.5]).max(axis=1).argmin())
    released = {0: float(group.centres[best, 0]), 8: float(group.centres[best, 8])}
    (kept,) = prior.given(released, 0.001).shapes
    assert 0 < len(kept.log_weights) < len(group.log_weights) / 10
    chosen = kept.centres[kept.log_weights.argmax()]
    assert chosen == pytest.approx(group.centres[best])
    stray = prior.given({0: -9.0, 8: -8.999}, 0.001)
    assert stray.robust_weight > 1e-3 > 0
    assert all(len(each.log_weights) >= 1 for each in stray.shapes)


def test_nothing_released_changes_nothing():
    """Without releases, or without shapes, the prior stays what it is."""
    plain = JointPrior((Cauchy(0.0, 1.0),) * 9)
    assert plain.given({0: 1.0}, 0.1) is plain
    shaped = with_shapes(plain.robust, *shapes_from_guess(DECILES, 0.0, 1.0))
    assert shaped.given({}, 0.1) is shaped
    assert shaped.only(tuple(range(9))) is shaped
    assert shaped.only((0, 8)).shapes[0].centres.shape[1] == 2
