"""Drift is measured exactly: by excesses of sensitivity one, and by the tree's own chance."""

from decimal import Context
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.mechanisms.sparse_vector.drift import (
    DriftChance,
    Tolerance,
    _points,
    best,
    excess,
    least_epsilon,
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


@pytest.mark.parametrize("quantile", ["1/2", "0.158655253931", "26172456961/51539607552"])
@pytest.mark.parametrize("count", [10, 1001, 2**27 + 5, 2**38 + 3])
def test_the_chance_is_exact_whatever_the_batch_and_the_digits_of_a_quantile(quantile, count):
    """All records in one cell, so that no point is near the quantile: as rationals have it."""
    tree = QuantileTree((F(quantile),), F(1, 10), unit_grid(10))
    test = DriftChance(tree, ((0, 5),), pieces=6)
    batch = CellCounts(np.array([5]), np.array([count]))
    found, (inside, outside) = test.chance(batch), _by_rationals(test, batch)
    assert found.success == pytest.approx(max(outside, 1e-250), rel=1e-9)
    assert found.failure == pytest.approx(max(inside, 1e-250), rel=1e-9)


def _by_rationals(test, batch):
    """Chances that one quantile is inside and outside, to fifty digits."""
    grains, points, (quantile,) = Grains.of(batch), test.points(), test.tree.quantiles
    target = quantile * int(grains.before[-1]) * GRAINS
    first, last = (grains.left_of_each(each).tolist() for each in (points, points + 1))
    ranks = zip(first, last, strict=True)
    costs = [max(left - target, target - up_to, F(0)) for left, up_to in ranks]
    sharpness = F(float(test.tree.levels()[0].sharpness((quantile,)))) / GRAINS
    numbers, sums, ((low, high),) = Context(prec=50), [0, 0], test.tolerances
    for point, cost in zip(points.tolist(), costs, strict=True):
        power = (min(costs) - cost) * sharpness
        weight = numbers.exp(numbers.divide(power.numerator, power.denominator))
        sums[low * GRAINS <= point < (high + 1) * GRAINS] += weight
    return tuple(float(each / sum(sums)) for each in sums[::-1])


@pytest.mark.parametrize("quantile", ["0.158655253931", "0.15865525393145707", "0.3333333333"])
def test_one_record_moves_the_chance_by_one_where_a_target_outgrows_64_bits(quantile):
    """A product of 64 bits changed its sign there, and the answer of the gate with it."""
    terms, target = Terms(F(1, 10), level=F(1, 3)), F(quantile)
    test = DriftChance(QuantileTree((target,), terms.epsilon, unit_grid(10)), ((1, 1),))
    records = 2**63 // (GRAINS * target.numerator)
    counts = np.full(10, records // 10)
    counts[9] += records - counts.sum()
    scores = []
    for _ in range(3):
        there = np.flatnonzero(counts)
        scores.append(terms.score(test.chance(CellCounts(there, counts[there]))))
        counts[9] += 1
    assert np.abs(np.diff(scores)).max() <= 1 + 2.0**-17


def test_other_trees_and_tolerances_are_errors():
    """The recursion is that of binary independent nodes, one tolerance each, within the grid."""
    tree = QuantileTree(QUARTILES, F(1), unit_grid(10))
    joint = QuantileTree(QUARTILES, F(1), unit_grid(10), node="joint")
    faint = QuantileTree(QUARTILES, least_epsilon(3) * F(99, 100), unit_grid(10))
    trees = [(joint, ((0, 9),) * 3), (faint, ((0, 9),) * 3)]
    for wrong in [*trees, (tree, ((0, 9),)), (tree, ((0, 10),) * 3)]:
        with pytest.raises(ValueError, match=r"must|needs"):
            DriftChance(*wrong)
