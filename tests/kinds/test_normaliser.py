"""Normaliser of a joint draw: what the mechanism itself sums up; intervals of draws that follow."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest

from streamdp.kinds.quantiles.error_bars.intervals import intervals
from streamdp.kinds.quantiles.error_bars.normaliser import RootNormaliser
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains, Region
from streamdp.mechanisms.quantile_tree.joint import log_joint_inner_product
from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, shapes_from_guess, with_shapes
from streamdp.types import CellCounts, FloatArray, Grid

GRID = Grid(Fraction(1, 100), -(10**6), 10**6)
TARGETS = tuple(Fraction(i, 4) for i in range(1, 4))
NORMAL = NormalDist()
ROWS = 200

BATCHES = ((0.0, 1.0), (1.0, 1.0), (4.0, 0.5), (30.0, 2.0), (0.0, 6.0), (-3.0, 0.2))
"""Places and spreads."""


def batch(place: float, spread: float) -> CellCounts:
    shares = (np.arange(ROWS) + 0.5) / ROWS
    values = [place + spread * NORMAL.inv_cdf(each) for each in shares.tolist()]
    return CellCounts(
        *np.unique(np.rint(np.array(values) * 100).astype(np.int64), return_counts=True)
    )


def quantiles(levels: FloatArray) -> FloatArray:
    standard = np.array([NORMAL.inv_cdf(each) for each in levels.tolist()])
    return np.array([place + spread * standard for place, spread in BATCHES])


def cdfs(values: FloatArray) -> FloatArray:
    found = [NormalDist(place, spread) for place, spread in BATCHES]
    return np.array([[law.cdf(each) for each in values.tolist()] for law in found])


@pytest.mark.parametrize("shaped", [False, True])
@pytest.mark.parametrize("epsilon", ["1/20", "1/5"])
def test_it_is_what_the_mechanism_sums_up(epsilon: str, shaped: bool) -> None:
    """Logarithms of totals under one batch and another differ as the mechanism's own do."""
    tree = QuantileTree(TARGETS, Fraction(epsilon), GRID, len(TARGETS) + 1, "joint")
    robust = (Cauchy(0.0, 1.0),) * len(TARGETS)
    shapes = shapes_from_guess(TARGETS, 0.0, 1.0)
    prior = with_shapes(robust, shapes) if shaped else JointPrior(robust)
    root = RootNormaliser.of(tree, prior, ROWS)
    found = root.log_totals(quantiles, cdfs(root.points()))
    top = (GRID.upper + 1) * GRAINS
    region = Region(GRID.lower * GRAINS, top, top - 1)
    targets = dict(enumerate(tree.nodes()[0].quantiles))
    sharpness = float(tree.levels()[0].sharpness(tree.nodes()[0].quantiles))
    total = partial(log_joint_inner_product, region=region, targets=targets, sharpness=sharpness)
    own = np.array([total(Grains.of(batch(*each)), prior=prior, grid=GRID) for each in BATCHES])
    assert np.ptp(own) > 1.5
    assert found - found[0] == pytest.approx(own - own[0], abs=0.9 if shaped else 0.4)


@pytest.mark.parametrize(("place", "spread"), [(6.0, 1.0), (0.0, 8.0), (-9.0, 2.0)])
def test_a_release_that_follows_its_prior_says_little(place: float, spread: float) -> None:
    """Draws of a batch far from the guess, with little budget, lie about the guess."""
    deciles = tuple(Fraction(i, 10) for i in range(1, 10))
    tree = CANDIDATES["tree of 6, shapes"].tree(deciles, Fraction(1, 20), GRID, "add-remove")
    prior = with_shapes((Cauchy(0.0, 1.0),) * 9, shapes_from_guess(deciles, 0.0, 1.0))
    counts, entropy = batch(place, spread), PublicEntropy(f"follows {place}")
    truth = np.array([place + spread * NORMAL.inv_cdf(float(each)) for each in deciles])
    held = []
    for _ in range(8):
        values = tuple(GRID.value(cell) for cell in tree.draw(counts, prior, entropy))
        found = intervals(tree, prior, ROWS, values, Believed(0.0, 1.0))
        ends = np.array([(each.lower, each.upper) for each in found]).T
        held.append((ends[0] <= truth) & (truth <= ends[1]))
    assert np.mean(held) > 0.9
