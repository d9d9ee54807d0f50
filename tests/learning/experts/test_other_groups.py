"""What a group is told of others: their mean, how sure it is, and how far groups are apart."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.learning.experts.belief.density import Usual, log_gaps
from streamdp.learning.experts.memory.other_groups import WEIGHT, Others, Profile, with_others
from streamdp.priors.families import Cauchy
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.types import FloatArray

TARGETS = np.array([0.25, 0.5, 0.75])
VALUES = np.array([-10.0, 0.0, 10.0])


def profile(rows: int, values: FloatArray, deviation: float = 1.0) -> Profile:
    return Profile(rows, values, deviation**2 * np.eye(3), np.full(3, 0.025))


def prior(shapes: Shapes | None) -> JointPrior:
    return JointPrior((Cauchy(0.0, 10.0),) * 3, shapes, 0.05)


def test_a_group_counts_by_the_root_of_its_rows() -> None:
    """Four times the rows have twice the weight, in the mean and in its noise."""
    others = Others.of([profile(400, VALUES), profile(100, VALUES + 3.0)])
    assert np.allclose(others.values, VALUES + 1.0)
    assert np.allclose(others.noise, np.eye(3) * (4.0 / 9.0 + 1.0 / 9.0))


def test_groups_far_from_each_other_say_that_the_next_may_be_far() -> None:
    """Nearly as far as they are from their mean; two that are alike say it is near."""
    far, near = (
        Others.of([profile(100, VALUES), profile(100, VALUES + move)]) for move in (400.0, 1.0)
    )
    assert np.sqrt(far.apart[1, 1]) > 150.0
    assert np.sqrt(near.apart[1, 1]) < 10.0


def test_experts_begin_at_the_reference_as_unsure_as_groups_are_apart() -> None:
    others = Others.of([profile(100, VALUES), profile(100, VALUES + 4.0)])
    usual = Usual.of(TARGETS, log_gaps(VALUES, 1.0), 1.0)
    experts = others.experts(usual)
    forecast = experts.forecast(np.ones(1), np.zeros((2, 3, 3)))
    moved = forecast.moved(others.values, others.noise)
    assert np.allclose(moved.means, VALUES + 2.0)
    assert np.allclose(experts.uncertainties, others.apart)
    assert np.allclose(moved.spreads - forecast.spreads, others.noise)


@pytest.mark.parametrize("move", [0.0, 5.0])
def test_broad_shapes_keep_all_but_a_share_of_their_weight(move: float) -> None:
    """The others' share is theirs; its heaviest shape is the reference itself."""
    broad = Shapes(np.log(np.array([0.5, 0.5])), np.stack((VALUES, VALUES + 50.0)), np.ones((2, 3)))
    others = Others.of([profile(100, VALUES + move)])
    shapes = with_others(prior(broad), others).shapes
    assert shapes is not None
    weights = np.exp(shapes.log_weights)
    assert np.isclose(weights[:2].sum(), 1.0 - WEIGHT)
    assert np.isclose(weights[2:].sum(), WEIGHT)
    heaviest = 2 + int(weights[2:].argmax())
    assert np.allclose(shapes.centres[heaviest], VALUES + move)
    assert (np.diff(shapes.centres, axis=1) >= 0.0).all()


def test_a_prior_without_shapes_stays_as_it_is() -> None:
    """Where draws say much, points of a lattice would only be in their way."""
    bare = prior(None)
    assert with_others(bare, Others.of([profile(100, VALUES)])) is bare


def test_shapes_are_as_near_to_each_other_however_far_groups_are_apart() -> None:
    """Else a group would be drawn onto the nearest, far from its quantiles."""
    broad = Shapes(np.zeros(1), VALUES[None], np.ones((1, 3)))
    others = Others.of([profile(100, VALUES), profile(100, VALUES + 100.0)])
    shapes = with_others(prior(broad), others).shapes
    assert shapes is not None
    middles = np.unique(shapes.centres[1:, 1])
    assert np.diff(middles).max() < 0.1 * 20.0


def test_others_of_one_value_make_shapes_of_some_width() -> None:
    """Ties all over: no width is zero."""
    broad = Shapes(np.zeros(1), VALUES[None], np.ones((1, 3)))
    shapes = with_others(prior(broad), Others.of([profile(100, np.zeros(3))])).shapes
    assert shapes is not None
    assert (shapes.widths > 0.0).all()
    assert np.isfinite(shapes.centres).all()
