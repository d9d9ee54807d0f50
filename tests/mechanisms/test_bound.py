"""The paper's bound on a drawn release: Ψ against its sum over all points, and that errors hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure, log_inner_product
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.joint import log_joint_inner_product
from streamdp.mechanisms.quantile_tree.planning.accuracy import STANDARD, Believed, simulated_errors
from streamdp.mechanisms.quantile_tree.planning.bound import bounded, of_first_releases
from streamdp.mechanisms.quantile_tree.planning.simulation import (
    PublicEntropy,
    batch_of,
    rank_errors,
)
from streamdp.mechanisms.quantile_tree.points import shape_points
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior, Shapes
from streamdp.priors.shapes import Laplace, Uniform
from streamdp.types import CellCounts, FloatArray, Grid, IntArray

GRID = Grid(Fraction(1), -8, 11)
BATCH = CellCounts(np.array([-3, 0, 1, 6]), np.array([2, 1, 5, 3]))
REGIONS = (Region(-8 * GRAINS, 12 * GRAINS, 12 * GRAINS - 1), Region(-170, 75, 75))


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("restriction", ["conditional", "edge"])
def test_psi_is_the_sum_over_all_points(
    region: Region, restriction: Literal["conditional", "edge"]
) -> None:
    grains, q, c = Grains.of(BATCH), Fraction(2, 5), 0.7
    measure = BaseMeasure(Laplace(0.5, 2.0), GRID)
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


SHAPES = Shapes(
    np.log([0.5, 0.2, 1.0]),
    np.array([[-3.0, 0.0], [0.0, 1.0], [-1.0, 6.0]]),
    np.ones((3, 2)),
)


@pytest.mark.parametrize("shapes", [None, SHAPES])
@pytest.mark.parametrize("region", REGIONS)
def test_psi_of_a_tuple_is_the_sum_over_all_tuples(region: Region, shapes: Shapes | None) -> None:
    grains, c, quantiles = Grains.of(BATCH), 0.7, (Fraction(1, 5), Fraction(3, 5))
    priors = Laplace(0.5, 2.0), Laplace(1.0, 3.0)
    prior = JointPrior(priors, shapes, robust_weight=0.3, log_bump_mass=-0.5)
    points = np.arange(region.start, region.last + 1)
    ranks = grains.left_of_each(points) - grains.left_of(region.start)
    size = grains.left_of(region.stop) - grains.left_of(region.start)

    def kernel(grains: IntArray, share: float) -> FloatArray:
        return np.asarray(np.exp(-c * np.abs(grains - share * size) / GRAINS))

    def utility(left: IntArray, right: IntArray) -> FloatArray:
        return kernel(left, 0.2) * kernel(right - left, 0.4) * kernel(size - right, 0.4)

    edges = np.arange(GRID.lower, GRID.upper + 2)
    masses = [np.exp(BaseMeasure(each, GRID).between(edges)) / GRAINS for each in priors]
    first, second = (each[points // GRAINS - GRID.lower] for each in masses)
    mu = 0.3 * np.triu(first[:, None] * second)
    total, weighed = mu.sum(), (mu * utility(ranks[:, None], ranks)).sum()
    if shapes is not None:
        tuples = shape_points(shapes, (0, 1), GRID).points.T
        for weight, found in zip((0.5, 0.2, 1.0), tuples, strict=True):
            if region.holds(found).all():
                left, right = grains.left_of_each(found) - grains.left_of(region.start)
                total += weight * math.exp(-1.0)
                weighed += weight * math.exp(-1.0) * utility(left, right)
    targets = dict(enumerate(quantiles))
    found = log_joint_inner_product(grains, region, targets, c, prior, GRID)
    assert found == pytest.approx(math.log(weighed / total), abs=1e-6)


TREES: list[dict[str, Any]] = [
    *({"branching": 2, "restriction": each} for each in ("conditional", "edge")),
    *({"branching": 3, "restriction": each} for each in ("conditional", "edge")),
    {"branching": 3, "node": "joint"},
    {"branching": 6, "node": "joint"},
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("form", TREES, ids=lambda form: "-".join(map(str, form.values())))
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_errors_stay_within_the_bound(epsilon: Fraction, form: dict[str, Any]) -> None:
    targets = tuple(Fraction(index, 6) for index in range(1, 6))
    grid = Grid(Fraction(1, 1000), -(10**4), 10**4)
    tree = QuantileTree(targets, epsilon, grid, **form)
    prior = JointPrior((Laplace(0.0, 2.0),) * 5)
    entropy, beyond, bounds = PublicEntropy("bound"), 0, []
    for index in range(40):
        batch = batch_of(STANDARD.batch(index, 300), 300, grid)
        found = bounded(tree, prior, batch, entropy)
        error, bound = rank_errors(batch, targets, found.cells).max(), found.rank_error(0.05)
        beyond += error > bound + 1e-12
        bounds.append(bound)
        assert found.beyond(bound) <= 0.05 + 1e-9
    assert beyond <= 2
    assert np.median(bounds) < (0.9 if epsilon == Fraction(1, 2) else 0.3)


@pytest.mark.parametrize("node", ["independent", "joint"])
def test_a_draw_that_knows_nothing_comes_near_its_bound(
    node: Literal["independent", "joint"],
) -> None:
    """Under a prior that is 10⁵ times as wide as the records many draws err by a third of it."""
    grid = Grid(Fraction(1, 1000), -(10**6), 10**6)
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 4), grid, node=node)
    prior, entropy = JointPrior((Uniform(-1000.0, 1000.0),)), PublicEntropy("tight")
    batch = batch_of(np.sort(np.random.default_rng(1).normal(0.0, 1e-2, 80)), 80, tree.grid)
    found = [bounded(tree, prior, batch, entropy) for _ in range(200)]
    errors = np.array([rank_errors(batch, tree.quantiles, each.cells).max() for each in found])
    assert np.mean(errors > found[0].rank_error(0.5)) <= 0.5
    assert np.mean(errors > found[0].rank_error(0.5) / 3) > 0.1


@pytest.mark.long
def test_simulated_releases_stay_within_the_bound_of_the_plan() -> None:
    """Of a quarter of the releases of two settings, and of a twentieth."""
    grid = Grid(Fraction(1, 10), -(10**4), 10**4)
    targets = tuple(Fraction(index, 4) for index in range(1, 4))
    for node in ("independent", "joint"):
        tree = QuantileTree(targets, Fraction(1, 2), grid, 4, node=node)
        prior = JointPrior((Laplace(0.0, 2.0),) * 3)
        errors = simulated_errors(tree, prior, 500, STANDARD, 80).max(axis=1)
        bounds = [of_first_releases(tree, prior, 500, STANDARD, share)[0] for share in (0.75, 0.95)]
        assert bounds[0] < bounds[1] < 0.3
        assert [np.mean(errors > each) for each in bounds] <= [0.25, 0.05]


def test_a_prior_that_knows_more_has_a_smaller_bound() -> None:
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 10), Grid(Fraction(1, 100), -(10**6), 10**6))
    near, far = (
        of_first_releases(tree, JointPrior((Laplace(0.0, scale),)), 400, Believed(0.0, 1.0))
        for scale in (1.0, 1000.0)
    )
    assert near[0] < far[0]
    assert 0.0 < near[1] < far[1]
