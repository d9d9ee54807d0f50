"""Drift is measured exactly: by excesses of sensitivity one, and by the tree's own chance."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import (
    DriftChance,
    Tolerance,
    _points,
    best,
    excess,
    rows,
)
from streamdp.mechanisms.sparse_vector.thresholding import Terms
from streamdp.types import CellCounts
from tests.privacy.quantiles.law import forking, law_of
from tests.privacy.quantiles.neighbours import counts_of, level, unit_grid

F = Fraction
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))
INTERVALS = [((0, 2), (2, 4), (3, 5)), ((1, 1), (2, 2), (4, 4)), ((0, 3), (0, 3), (1, 3))]
BATCHES = [(0, 1, 1, 3, 4, 5), (2,), (), (0, 0, 0, 5, 5, 5)]
cells = st.lists(st.integers(0, 9), max_size=40)


@pytest.fixture
def one_grain():
    """Chance forks, cells have one grain, and every cell of a small grid is a public point."""
    _points.cache_clear()
    with forking(1):
        yield
    _points.cache_clear()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
@pytest.mark.parametrize("intervals", INTERVALS, ids=str)
def test_the_chance_is_that_of_the_tree(one_grain, intervals, batch, relation):
    """Both probabilities are those of production's own law, enumerated, to a relative 1e-12."""
    tree = QuantileTree(QUARTILES, F(2), unit_grid(6), relation=relation)
    law = law_of(lambda entropy: tree.draw(counts_of(batch), (level(6),) * 3, entropy))
    left = sum(
        probability
        for released, probability in law.items()
        if any(not lo <= cell <= hi for cell, (lo, hi) in zip(released, intervals, strict=True))
    )
    chance = DriftChance(tree, intervals, pieces=6).chance(counts_of(batch))
    assert 0 < left < 1
    assert chance.success == pytest.approx(float(left), rel=1e-12)
    assert chance.failure == pytest.approx(float(1 - left), rel=1e-12)


@given(cells, st.integers(0, 9), st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_one_record_moves_scores_by_one_at_most(batch, record, low, width):
    """Excess, chance of a tree and counts: neighbours are within one of each other."""
    mine, other = counts_of(tuple(sorted(batch))), counts_of(tuple(sorted([*batch, record])))
    tolerances = (
        Tolerance(F(1, 10), low, low + width),
        Tolerance(F(1, 2), low, None, F(1, 20)),
        Tolerance(F(9, 10), None, low + width),
    )
    assert abs(excess(mine, tolerances) - excess(other, tolerances)) <= 1
    assert abs(rows(mine, F(7)) - rows(other, F(7))) == 1
    assert abs(best(mine, F(7)) - best(other, F(7))) <= 1
    terms = Terms(F(1, 2), level=F(1, 3))
    tree = QuantileTree(QUARTILES, terms.epsilon, unit_grid(10))
    test = DriftChance(tree, ((0, low), (low, low + width), (low + width, 9)), pieces=4)
    assert abs(terms.score(test.chance(mine)) - terms.score(test.chance(other))) <= 1 + 2.0**-17


def test_the_sensitivity_of_an_excess_is_reached():
    """An upper bound that a record beyond moves by its whole sensitivity, so none is wasted."""
    mine, other = counts_of((0,) * 5), counts_of((0,) * 5 + (9,))
    tolerance = (Tolerance(F(9, 10), None, 3),)
    gain = excess(counts_of((0,) * 5 + (9, 9)), tolerance) - excess(other, tolerance)
    assert gain == 1
    assert excess(other, tolerance) - excess(mine, tolerance) == 1
    assert excess(mine, tolerance, rows_per_unit=5) == excess(mine, tolerance) / 5


@given(cells.filter(bool), st.integers(0, 9), st.integers(0, 9))
def test_an_excess_is_positive_outside_the_tolerance(batch, low, width):
    """Its sign says whether the median's cell lies in the tolerance."""
    median = np.sort(batch)[[(len(batch) - 1) // 2, len(batch) // 2]]
    score = excess(counts_of(tuple(sorted(batch))), (Tolerance(F(1, 2), low, low + width),))
    assert (score > 0) == (median[1] < low or median[0] > low + width)


def test_many_records_are_told_apart_by_one_cell():
    """Costs far beyond any exponent neither under- nor overflow: the chance is 0 or 1."""
    tree = QuantileTree(QUARTILES, F(2), unit_grid(100))
    batch = CellCounts(np.arange(100), np.full(100, 100_000))
    inside = DriftChance(tree, ((20, 30), (45, 55), (70, 80))).chance(batch)
    outside = DriftChance(tree, ((20, 22), (45, 55), (70, 80))).chance(batch)
    assert inside.success < 1e-200
    assert inside.failure == pytest.approx(1.0)
    assert outside.failure < 1e-200
    assert outside.success == pytest.approx(1.0)


def test_other_trees_and_tolerances_are_errors():
    """The recursion is that of binary independent nodes, one tolerance each, within the grid."""
    tree = QuantileTree(QUARTILES, F(1), unit_grid(10))
    joint = QuantileTree(QUARTILES, F(1), unit_grid(10), node="joint")
    for wrong in [(joint, ((0, 9),) * 3), (tree, ((0, 9),)), (tree, ((0, 10),) * 3)]:
        with pytest.raises(ValueError, match=r"must|needs"):
            DriftChance(*wrong)
