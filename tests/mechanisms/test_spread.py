"""Joint draws that cut equal records: the law is that of the formula, and a record is one place."""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree import spread
from streamdp.mechanisms.quantile_tree.exponential import BaseMeasure
from streamdp.mechanisms.quantile_tree.grains import GRAINS, Grains
from streamdp.mechanisms.quantile_tree.passes import log_kernel
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES, MOST_SPREAD, choose_tree
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.spread import LEVELS, Places, SpreadDraw, standing
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, FloatArray, Grid
from tests.privacy.quantiles.law import forking, law_of

F = Fraction
GRID = Grid(F(1), 0, 2)
PRIOR = Cauchy(0.7, 0.8)


def _on_levels(count):
    held = np.zeros(spread.LEVELS, dtype=np.int64)
    levels, on = standing(count)
    held[levels] = on
    return held


def test_one_record_more_is_one_place_more():
    """Whatever the number: no record moves when another comes, and none is lost."""
    counts = (*range(1200), *range(4000, 4200), *range(16_300, 16_500), 65_535, 10**6)
    for count in counts:
        more = _on_levels(count + 1) - _on_levels(count)
        assert more.min() == 0
        assert more.sum() == 1


def test_equal_records_stand_apart_and_have_few_levels():
    """Evenly over the cell, and many more records have few levels more."""
    for count in (10, 100, 3000, 50_000):
        levels, on = standing(count)
        assert len(levels) <= max(16, 8.0 * math.sqrt(count))
        assert np.diff(levels, prepend=-1, append=LEVELS).max() <= max(2, 2 * LEVELS / len(levels))
        assert on.max() <= 2 * max(1, count / len(levels))


def _grains(counts):
    cells = np.flatnonzero(counts)
    return Grains.of(CellCounts(cells, np.asarray(counts)[cells]))


def _by_formula(counts, targets, sharpness):
    """P(cells), from all tuples of levels: masses, their factorials, and kernels of ranks."""
    masses, rows = BaseMeasure(PRIOR, GRID).between(np.arange(4)), sum(counts)
    places, before = [], 0
    for cell, count in enumerate(counts):
        held = np.cumsum(_on_levels(count)) - _on_levels(count)
        mass = math.exp(masses[cell]) / spread.LEVELS
        places += [(cell, before + int(left), mass) for left in held]
        before += count
    ends, law = [0.0, *map(float, targets), 1.0], dict[tuple[int, ...], float]()
    for tuple_ in itertools.combinations_with_replacement(range(len(places)), len(targets)):
        weight = 1.0
        for _, same in itertools.groupby(tuple_):
            weight /= math.factorial(len(list(same)))
        ranks = [0, *(places[each][1] for each in tuple_), rows]
        for gap, (left, right) in enumerate(itertools.pairwise(ranks)):
            off = abs(right - left - rows * (ends[gap + 1] - ends[gap]))
            weight *= math.exp(log_kernel(np.array([sharpness * off]))[0])
        weight *= math.prod(places[each][2] for each in tuple_)
        cells = tuple(places[each][0] for each in tuple_)
        law[cells] = law.get(cells, 0.0) + weight
    total = sum(law.values())
    return {cells: weight / total for cells, weight in law.items()}


def _cells(counts, targets, sharpness, prior, entropy):
    about = _grains(counts), dict(enumerate(targets)), sharpness, prior, GRID
    return tuple(point // GRAINS for point in spread.draw_spread(*about, entropy))


@pytest.mark.parametrize("counts", [(0, 0, 0), (1, 0, 2), (5, 0, 1), (3, 9, 0), (0, 0, 4)])
@pytest.mark.parametrize("targets", [(F(1, 2),), (F(1, 10), F(1, 2)), (F(1, 4), F(1, 2), F(3, 4))])
def test_the_law_is_that_of_the_formula(counts, targets, monkeypatch):
    """Each outcome has its share, with eight levels a cell; empty and equal batches too."""
    monkeypatch.setattr(spread, "LEVELS", 8)
    monkeypatch.setattr(spread, "_SINGLE", 2)
    spread._order.cache_clear()
    standing.cache_clear()
    prior = JointPrior((PRIOR,) * len(targets))
    try:
        for sharpness in (0.3, 2.0):
            draw = functools.partial(_cells, counts, targets, sharpness, prior)
            with forking():
                law = law_of(draw)
            expected = _by_formula(counts, targets, sharpness)
            assert law.keys() == expected.keys()
            for cells, share in law.items():
                assert float(share) == pytest.approx(expected[cells], rel=1e-9)
    finally:
        spread._order.cache_clear()
        standing.cache_clear()


def test_the_forward_pass_is_the_sum_over_pairs():
    """Thousands of places: the last weights are those of a pass that looks at all pairs."""
    generator, targets = np.random.default_rng(4), (F(1, 5), F(2, 5), F(1, 2), F(9, 10))
    cells = np.unique(generator.integers(-300, 300, 250))
    counts = np.where(
        generator.random(len(cells)) < 0.05, 200, generator.integers(1, 4, len(cells))
    )
    measure = BaseMeasure(Cauchy(20.0, 60.0), Grid(F(1), -1000, 1000))
    places = Places.of(Grains.of(CellCounts(cells, counts)), measure)
    assert (np.diff(places.ranks) > 0).all()
    assert np.exp(places.log_mass()).sum() == pytest.approx(
        math.exp(measure.between(np.array([-1000, 1001]))[0]), rel=1e-12
    )
    for sharpness in (0.02, 0.4, 200.0):
        made = SpreadDraw.of(places, targets, sharpness, measure)
        ends = [F(0), *targets, F(1)]
        wanted = [float((b - a) * places.rows) for a, b in itertools.pairwise(ends)]
        c, ranks, mass = made.sharpness, places.ranks.astype(float), made.log_mass
        between = np.tril(np.ones((len(ranks), len(ranks)), dtype=bool), -1)
        first, upto = [mass + log_kernel(c * np.abs(ranks - wanted[0]))], list[FloatArray]()
        for j in range(len(targets)):
            if j:
                kernel = log_kernel(c * np.abs(ranks[:, None] - ranks - wanted[j]))
                with np.errstate(divide="ignore"):
                    terms = np.where(between, kernel + upto[-1], -np.inf)
                first.append(mass + np.logaddexp.reduce(terms, axis=1))
            stays = [float(log_kernel(np.array([c * each]))[0]) for each in wanted]
            runs = [
                first[i] + (j - i) * mass - math.lgamma(j - i + 2) + sum(stays[i + 1 : j + 1])
                for i in range(j + 1)
            ]
            upto.append(np.logaddexp.reduce(np.stack(runs), axis=0))
        assert made.upto[-1] == pytest.approx(upto[-1], abs=1e-9)


def test_rounding_costs_little_whatever_the_batch():
    """Nine quantiles pay less than 3e-5, 29 less than ten times as much."""
    assert 1e-9 < spread.spread_slack(9) < 3e-5
    assert spread.spread_slack(29) < 3e-4


def test_points_have_the_ranks_of_their_places():
    """Levels of a cell share its records; beside it lie none or all."""
    measure = BaseMeasure(PRIOR, GRID)
    places = Places.of(_grains((2, 0, 5)), measure)
    at = np.array([0, GRAINS // 4, GRAINS - 1, GRAINS, 2 * GRAINS - 1, 2 * GRAINS, 3 * GRAINS - 1])
    assert places.ranks_of(at).tolist() == [0, 1, 2, 2, 2, 2, 7]


def test_records_are_spread_in_one_node_alone():
    """Nodes of a region have grains, so a tree of several levels cannot have places."""
    with pytest.raises(ValueError, match="one joint draw"):
        QuantileTree((F(1, 4), F(1, 2), F(3, 4)), F(1), GRID, 2, "joint", spread=True)
    with pytest.raises(ValueError, match="one joint draw"):
        QuantileTree((F(1, 2),), F(1), GRID, spread=True)


def test_batches_of_very_many_records_are_not_spread():
    """Time and memory grow with the number of records."""
    for count in (3, 9, 29):
        form = choose_tree(count, F(1000, MOST_SPREAD + 1), MOST_SPREAD + 1)
        assert not form.spread


def test_nine_equal_tenths_are_found():
    """Two thirds of the records are one value of a fine grid: the quantiles within are that one."""
    grid, targets = Grid(F(1, 1000), -(2**20), 2**20), tuple(F(i, 10) for i in range(1, 10))
    tree = CANDIDATES["joint"].tree(targets, F(1), grid)
    cells = np.concatenate((np.arange(-1000, 0, 10), [7], np.arange(1000, 2000, 10)))
    counts = np.ones(len(cells), dtype=np.int64)
    counts[100] = 400
    prior = JointPrior((Cauchy(0.0, 3.0),) * 9)
    for number in range(10):
        drawn = tree.draw(CellCounts(cells, counts), prior, PublicEntropy(f"equal {number}"))
        assert drawn[2:7] == (7,) * 5
        assert drawn[0] < 7 < drawn[-1]
