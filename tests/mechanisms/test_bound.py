"""The paper's bound on a drawn release: Ψ against its sum over all points, and that errors hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.exponential import log_inner_product
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.measure import Measure
from streamdp.mechanisms.quantile_tree.planning.accuracy import STANDARD, Believed
from streamdp.mechanisms.quantile_tree.planning.bound import bounded, of_first_releases
from streamdp.mechanisms.quantile_tree.planning.simulation import (
    PublicEntropy,
    batch_of,
    rank_errors,
)
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.families import Laplace, Uniform
from streamdp.priors.joint import JointPrior
from streamdp.types import CellCounts, Grid

GRID = Grid(Fraction(1), -8, 11)
BATCH = CellCounts(np.array([-3, 0, 1, 6]), np.array([2, 1, 5, 3]))
REGIONS = (Region(-8 * GRAINS, 12 * GRAINS, 12 * GRAINS - 1), Region(-170, 75, 75))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("restriction", ["conditional", "edge"])
def test_psi_is_the_sum_over_all_points(
    region: Region, restriction: Literal["conditional", "edge"]
) -> None:
    grains, q, c = Grains.of(BATCH), Fraction(2, 5), 0.7
    measure = Measure(Laplace(0.5, 2.0), GRID)
    masses = np.exp(measure.between(np.arange(GRID.lower, GRID.upper + 2)))
    point_mass = dict(enumerate(np.repeat(masses / GRAINS, GRAINS), GRID.lower * GRAINS))
    inside = {o: w for o, w in point_mass.items() if region.start <= o <= region.last}
    if restriction == "edge":
        inside[region.start] += sum(w for o, w in point_mass.items() if o < region.start)
        inside[region.last] += sum(w for o, w in point_mass.items() if o > region.last)
    base = grains.left_of(region.start)
    target = base + float(q) * (grains.left_of(region.stop) - base)

    def cost(point: int) -> float:
        low, high = grains.left_of(point), grains.left_of(point + 1)
        return max(low - target, target - high, 0.0) / GRAINS

    psi = sum(w * math.exp(-c * cost(o)) for o, w in inside.items()) / sum(inside.values())
    found = log_inner_product(grains, region, q, c, measure, restriction)
    assert found == pytest.approx(math.log(psi), abs=1e-9)


@pytest.mark.parametrize("restriction", ["conditional", "edge"])
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_errors_stay_within_the_bound(
    epsilon: Fraction, branching: int, restriction: Literal["conditional", "edge"]
) -> None:
    targets = tuple(Fraction(index, 6) for index in range(1, 6))
    grid = Grid(Fraction(1, 1000), -(10**4), 10**4)
    tree = QuantileTree(targets, epsilon, grid, branching, restriction=restriction)
    prior = JointPrior((Uniform(-10.0, 10.0),) * 5)
    entropy, beyond, bounds = PublicEntropy("bound"), 0, []
    for index in range(100):
        batch = batch_of(STANDARD.batch(index, 300), 300, grid)
        found = bounded(tree, prior, batch, entropy)
        beyond += rank_errors(batch, targets, found.cells).max() > found.rank_error + 1e-12
        bounds.append(found.rank_error)
    assert beyond <= 5
    assert np.median(bounds) < (1.0 if epsilon == Fraction(1, 2) else 0.3)


def test_a_draw_that_knows_nothing_comes_near_its_bound() -> None:
    """Under a prior that is 10⁵ times as wide as the records half the draws err by it."""
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 4), Grid(Fraction(1, 1000), -(10**6), 10**6))
    prior, entropy = JointPrior((Uniform(-1000.0, 1000.0),)), PublicEntropy("tight")
    batch = batch_of(np.sort(np.random.default_rng(1).normal(0.0, 1e-2, 80)), 80, tree.grid)
    found = [bounded(tree, prior, batch, entropy, beta=0.5) for _ in range(200)]
    errors = np.array([rank_errors(batch, tree.quantiles, each.cells).max() for each in found])
    assert np.mean(errors > found[0].rank_error) <= 0.5
    assert np.mean(errors > found[0].rank_error / 3) > 0.1


def test_a_prior_that_knows_more_has_a_smaller_bound() -> None:
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 10), Grid(Fraction(1, 100), -(10**6), 10**6))
    near, far = (
        of_first_releases(tree, JointPrior((Laplace(0.0, scale),)), 400, Believed(0.0, 1.0))
        for scale in (1.0, 1000.0)
    )
    assert near[0] < far[0]
    assert 0.0 < near[1] < far[1]
