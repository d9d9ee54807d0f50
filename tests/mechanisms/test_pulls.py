"""How far priors pull draws: simulated with batches of almost no width, and with equal records."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.pulls import off_atoms, outside
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, FloatArray, Grid

GRID = Grid(Fraction(1, 100), -(2**40), 2**40)
ROWS = 600
TAIL = tuple(map(Fraction, ("9/10", "19/20", "99/100")))
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
JOINT = QuantileTree(TAIL, Fraction(1, 2), GRID, branching=4, node="joint")
BINARY = QuantileTree(TAIL, Fraction(1, 2), GRID)


def prior_of(tree: QuantileTree) -> JointPrior:
    return JointPrior((Cauchy(10.0, 20.0),) * len(tree.quantiles))


def drawn(tree: QuantileTree, cells: FloatArray, releases: int) -> FloatArray:
    """Values of some releases, shape (releases, m)."""
    counts = CellCounts(*np.unique(cells.astype(np.int64), return_counts=True))
    entropy = PublicEntropy("pulls")
    found = [tree.draw(counts, prior_of(tree), entropy) for _ in range(releases)]
    return np.array(found) * float(GRID.resolution)


@pytest.mark.parametrize("tree", [JOINT, BINARY])
def test_draws_leave_a_narrow_batch_only_where_they_are_said_to(tree: QuantileTree) -> None:
    """Of a batch a hundred times as narrow as the prior, 95 % and more of the others stay."""
    generator = np.random.default_rng(1)
    cells = np.rint(1000.0 + 20.0 * generator.random(ROWS))
    values = drawn(tree, cells, 25)
    below, above = outside(tree, ROWS)
    left = (values > cells.max() / 100.0).mean(axis=0)
    assert (left[~above] <= 0.1).all()
    assert left[-1] > 0.3
    assert above[-1]
    assert not below.any()


def test_more_records_keep_draws_inside_and_joint_draws_leave_together() -> None:
    """Nine tenths alone would stay: three that leave together gain thrice for what one pays."""
    assert outside(JOINT, ROWS)[1].all()
    alone = replace(JOINT, quantiles=TAIL[:1], branching=2)
    assert not outside(alone, ROWS)[1].any()
    assert not np.any(outside(JOINT, 100 * ROWS))
    below, above = outside(JOINT, 1)
    assert below.all()
    assert above.all()


@pytest.mark.parametrize("epsilon", ["3/8", "4"])
def test_intervals_reach_from_values_that_were_pulled_off_zeros(epsilon: str) -> None:
    """60 % zeros among cents: true quantiles lie between the ends and the released values."""
    tree = QuantileTree(DECILES, Fraction(epsilon), GRID, branching=10, node="joint")
    generator = np.random.default_rng(2)
    prices = np.rint(100.0 * np.exp(generator.normal(3.0, 1.0, 800)))
    cells = np.sort(np.where(generator.random(800) < 0.6, 0.0, prices))
    true = cells[(np.arange(1, 10) * 80) - 1] / 100.0
    held = []
    for values in drawn(tree, cells, 8):
        assert (values == 0.0).any()
        lower, upper = off_atoms(tree, prior_of(tree), 800, values)
        slack = 3.0 / float(Fraction(epsilon))
        ends = np.minimum(values, lower) - slack, np.maximum(values, upper) + slack
        held.append((ends[0] <= true) & (true <= ends[1]))
    assert np.mean(held) > 0.9


def test_a_mirrored_release_has_mirrored_ends() -> None:
    """Lower and upper ends of piles are found by one rule."""
    tree = QuantileTree(DECILES, Fraction(1, 2), GRID, branching=10, node="joint")
    prior = JointPrior((Cauchy(0.0, 20.0),) * len(DECILES))
    values = np.array([0.0, 0.0, 0.0, 2.0, 5.0, 9.0, 14.0, 20.0, 31.0])
    lower, upper = off_atoms(tree, prior, ROWS, values)
    mirrored = off_atoms(tree, prior, ROWS, -values[::-1])
    assert np.isfinite(lower).any()
    assert (np.diff(lower[np.isfinite(lower)]) > 0.0).any()
    np.testing.assert_allclose(mirrored[1][::-1], -lower)
    np.testing.assert_allclose(mirrored[0][::-1], -upper)


def test_values_that_were_released_once_are_no_atoms() -> None:
    """Nothing reaches to them; to a value that was released twice, its neighbours do."""
    tree = QuantileTree(DECILES, Fraction(1, 4), GRID, branching=10, node="joint")
    values = np.arange(3.0, 12.0)
    none = off_atoms(tree, prior_of(tree), ROWS, values)
    assert not np.isfinite(none).any()
    values[3] = values[4]
    some = off_atoms(tree, prior_of(tree), ROWS, values)
    assert some[0, 5] == some[1, 2] == values[4]
    many = off_atoms(tree, prior_of(tree), 1000 * ROWS, values)
    assert many[0, 5] > values[5] - 0.05


def test_values_that_no_pile_can_reach_are_not_pushed_on_by_it() -> None:
    """Two of nine lie at zero: the next may have been pulled off it, the median has not."""
    tree = QuantileTree(DECILES, Fraction(1, 2), GRID)
    values = np.array([0.0, 0.0, 0.01, *range(30, 90, 10)])
    lower, upper = off_atoms(tree, prior_of(tree), 20_000, values)
    assert lower[:2].tolist() == [0.0, 0.0]
    assert lower[2] < values[2]
    assert np.isinf(lower[4:]).all()
    assert np.isinf(upper[2:]).all()
    noisy = off_atoms(tree, prior_of(tree), 200, values)[0]
    assert (noisy[4:] < values[4:]).all()
