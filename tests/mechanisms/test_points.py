"""Public points of joint draws: fine where records pile up, and few enough to be summed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.grains import GRAINS
from streamdp.mechanisms.quantile_tree.joint import MOST_TERMS
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.points import aimed_at, public_points
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, Grid

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))


@pytest.mark.parametrize(("lower", "upper"), [(-(2**40), 2**40), (0, 5000), (7, 10**6), (-9, -2)])
@pytest.mark.parametrize("scale", [0.02, 20.0, 1e6])
def test_zero_and_the_ends_have_all_levels(lower: int, upper: int, scale: float) -> None:
    """Whatever the prior; masses are those of the whole grid, points few enough to be summed."""
    grid = Grid(Fraction(1, 100), lower, upper)
    prior = Cauchy(10.0, scale)
    found = public_points((prior,) * 9, grid)
    for cell in {lower, upper, min(max(0, lower), upper)}:
        assert ((found.points // GRAINS) == cell).sum() == GRAINS
    assert (np.diff(found.points) > 0).all()
    assert found.points[0] == lower * GRAINS
    assert len(found.points) < min(4 * aimed_at(9) + 3 * GRAINS, MOST_TERMS)
    whole = BaseMeasure(prior, grid).between(np.array([lower, upper + 1]))
    assert np.exp(found.log_masses[0]).sum() == pytest.approx(np.exp(whole[0]))


@pytest.mark.parametrize("at", [0, 5000])
@pytest.mark.parametrize("epsilon", ["1", "4", "10"])
def test_many_equal_records_at_zero_or_at_a_bound_are_found(at: int, epsilon: str) -> None:
    """60 of 100 records, the others in cents: six deciles of a joint draw are that value."""
    generator = np.random.default_rng(3)
    cells = np.where(generator.random(800) < 0.6, at, generator.integers(1000, 4000, 800))
    counts = CellCounts(*np.unique(cells.astype(np.int64), return_counts=True))
    grid = Grid(Fraction(1, 100), 0, 5000)
    tree = QuantileTree(DECILES, Fraction(epsilon), grid, branching=10, node="joint")
    prior = JointPrior((Cauchy(10.0, 20.0),) * 9)
    drawn = np.array(tree.draw(counts, prior, PublicEntropy(epsilon)))
    assert (drawn == at).sum() in (4, 5, 6)
    others = drawn[drawn != at]
    assert (others[(others < 1000) | (others > 4000)]).size <= 1
