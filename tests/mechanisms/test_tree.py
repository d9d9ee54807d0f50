"""The tree's law on tiny grids against sums over every outcome, and what holds on any grid."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamdp.mechanisms.quantile_tree.grains import GRAINS
from streamdp.mechanisms.quantile_tree.sharpness import (
    addition_range,
    gaps,
    slot_ranges,
    substitution_range,
)
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, Laplace, Uniform, linear_shapes, profile, with_shapes
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.types import CellCounts, Grid

F = Fraction


class Seeded:
    """Entropy that can be repeated; for tests."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def bits(self, count):
        return self.random.getrandbits(count)


def counts_of(cells):
    values, counts = np.unique(np.array(cells, dtype=np.int64), return_counts=True)
    return CellCounts(values, counts.astype(np.int64))


def ranks_of(cells, grid):
    """Records left of each fine point of the grid."""
    points = np.arange(grid.lower * GRAINS, (grid.upper + 1) * GRAINS)
    each = np.clip((points[:, None] - np.array(cells)[None, :] * GRAINS) / GRAINS, 0, 1)
    return each.sum(axis=1)


def masses_of(prior, grid):
    edges = np.arange(grid.lower, grid.upper + 2) - 0.5
    masses = np.exp(prior.log_mass(edges[:-1], edges[1:]))
    return np.repeat(masses / GRAINS, GRAINS)


def chi_square(observed, law):
    """Of cell tuples against a law, rare outcomes together; and its degrees of freedom."""
    total = sum(observed.values())
    often = [key for key, share in law.items() if share * total >= 10]
    rest = total * (1 - sum(law[key] for key in often))
    value = sum(
        (observed.get(key, 0) - law[key] * total) ** 2 / (law[key] * total) for key in often
    )
    rare = total - sum(observed.get(key, 0) for key in often)
    value += (rare - rest) ** 2 / max(rest, 1e-9) if rest > 5 else 0.0
    return value, len(often)


def observed_of(tree, statistic, priors, repeats):
    entropy = Seeded(1)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(repeats):
        cells = tree.draw(statistic, priors, entropy)
        seen[cells] = seen.get(cells, 0) + 1
    return seen


GRID = Grid(F(1), -1, 3)
CELLS = [0, 0, 0, 1, 1, 3, 3, 3, 3]
PAIR = (F(1, 3), F(3, 5))


def by_cell(weights):
    """Sum a law over pairs of fine points to a law over pairs of cells."""
    size = GRID.upper - GRID.lower + 1
    table = weights.reshape(size, GRAINS, size, GRAINS).sum(axis=(1, 3))
    table /= table.sum()
    cells = range(size)
    return {(i + GRID.lower, j + GRID.lower): table[i, j] for i in cells for j in cells if i <= j}


def joint_law(tree, priors):
    ranks, n = ranks_of(CELLS, GRID), len(CELLS)
    sharpness = float(tree.levels()[0].sharpness(tree.quantiles))
    low, middle, high = (float(gap) * n for gap in gaps(tree.quantiles))
    cost = np.abs(ranks - low)[:, None] + np.abs(ranks[None, :] - ranks[:, None] - middle)
    cost = cost + np.abs(n - ranks - high)[None, :]
    weights = np.outer(masses_of(priors[0], GRID), masses_of(priors[1], GRID))
    return by_cell(np.triu(weights * np.exp(-sharpness * cost)))


def independent_law(tree, priors):
    ranks, n = ranks_of(CELLS, GRID), len(CELLS)
    sharpness = float(tree.levels()[0].sharpness(tree.quantiles))
    one = [
        masses_of(prior, GRID) * np.exp(-sharpness * np.abs(ranks - float(q) * n))
        for prior, q in zip(priors, tree.quantiles, strict=True)
    ]
    both = np.outer(one[0], one[1])
    return by_cell(np.triu(both) + np.triu(both.T, 1))


def binary_law(tree, priors):
    """Two levels: the first target is the root, the second is drawn right of it."""
    ranks, n = ranks_of(CELLS, GRID), len(CELLS)
    assert [node.targets for node in tree.nodes()] == [(0,), (1,)]
    levels, (low, high) = tree.levels(), tree.quantiles
    c_root = float(levels[0].sharpness((low,)))
    rescaled = (high - low) / (1 - low)
    c_right = float(levels[1].sharpness((rescaled,)))
    weights = masses_of(priors[0], GRID) * np.exp(-c_root * np.abs(ranks - float(low) * n))
    table = np.zeros((len(ranks), len(ranks)))
    prior = masses_of(priors[1], GRID)
    for point in range(len(ranks)):
        inside = prior[point:].copy()
        if tree.restriction == "edge":
            inside[0] += prior[:point].sum()
        own = n - ranks[point]
        right = inside * np.exp(
            -c_right * np.abs(ranks[point:] - ranks[point] - float(rescaled) * own)
        )
        table[point, point:] = weights[point] * right / right.sum()
    return by_cell(table)


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "relation", ["add-remove", pytest.param("substitute", marks=pytest.mark.long)]
)
@pytest.mark.parametrize(
    ("law", "options"),
    [
        (joint_law, {"node": "joint", "branching": 3}),
        (independent_law, {"branching": 3}),
        (binary_law, {}),
        (binary_law, {"restriction": "edge"}),
    ],
)
def test_draws_follow_the_law(law, options, relation):
    """Frequencies of 2,500 draws fit the sum over all pairs of fine points."""
    priors = (Cauchy(2.0, 0.5), Laplace(1.0, 1.0))
    tree = QuantileTree(PAIR, F(2), GRID, relation=relation, **options)
    expected = law(tree, priors)
    observed = observed_of(tree, counts_of(CELLS), priors, 2500)
    value, freedom = chi_square(observed, expected)
    assert value < freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.long
def test_shapes_and_robust_priors_mix_by_their_totals():
    """With shapes that cover one pair of cells, that pair's share is what the totals say."""
    shapes = linear_shapes(np.zeros(2), (0.9, 1.1), (0.01, 0.01))
    prior = JointPrior((Uniform(-1.5, 3.5),) * 2, shapes, 1.0)
    tree = QuantileTree(PAIR, F(2), GRID, branching=3, node="joint")
    plain = joint_law(tree, prior.robust)
    ranks, n = ranks_of(CELLS, GRID), len(CELLS)
    at = np.searchsorted(np.arange(-GRAINS, 4 * GRAINS), round(1.5 * GRAINS))
    assert ranks[at] == pytest.approx(4.0)
    observed = observed_of(tree, counts_of(CELLS), prior, 2500)
    low, middle, high = (float(gap) * n for gap in gaps(PAIR))
    sharpness = float(tree.levels()[0].sharpness(PAIR))
    cost = abs(4 - low) + middle + abs(5 - high)
    robust = np.outer(*[masses_of(each, GRID) for each in prior.robust])
    full = np.abs(ranks - low)[:, None] + np.abs(ranks[None, :] - ranks[:, None] - middle)
    full = full + np.abs(n - ranks - high)[None, :]
    total = np.triu(robust * np.exp(-sharpness * full)).sum()
    shape = np.exp(-sharpness * cost) * np.exp(shapes.log_weights).sum()
    share = (shape + total * plain[1, 1]) / (shape + total)
    assert observed[1, 1] / 2500 == pytest.approx(share, abs=0.04)


STATISTICS = {
    "none": [],
    "one record": [7],
    "all equal": [7] * 50,
    "two values": [-40] * 30 + [90] * 20,
    "a third on one value": [5] * 30 + list(range(-35, 35)),
    "the ends": [-100] * 10 + [100] * 10,
}
OPTIONS = [
    {"branching": k, "node": node, "relation": relation, "restriction": restriction}
    for k, (node, restriction), relation in itertools.product(
        (2, 3, 10),
        (("independent", "conditional"), ("independent", "edge"), ("joint", "conditional")),
        ("add-remove", "substitute"),
    )
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(map(str, each.values())))
@pytest.mark.parametrize("cells", STATISTICS.values(), ids=STATISTICS)
def test_every_statistic_gives_sorted_cells_of_the_grid(cells, options):
    """Ties, ends, one record and none: total, never crossing, on the public grid."""
    grid, targets = Grid(F(1), -100, 100), tuple(F(i, 10) for i in range(1, 10))
    tree = QuantileTree(targets, F(1, 2), grid, level_power=F(1, 2), **options)
    robust = (Laplace(1e4, 1.0),) * 5 + (Uniform(-1.0, 1.0),) * 4
    for priors in (
        robust,
        with_shapes(robust, linear_shapes(profile(targets, "right"), (-100, 100), (5, 50))),
    ):
        drawn = tree.draw(counts_of(cells), priors, Seeded(3))
        assert list(drawn) == sorted(drawn)
        assert all(grid.lower <= cell <= grid.upper for cell in drawn)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(map(str, each.values())))
def test_a_sharp_tree_finds_the_quantiles(options):
    """With a large epsilon each release is within a cell of the truth, also with uneven targets."""
    grid, targets = Grid(F(1), -100, 1100), (F(1, 100), F(1, 7), F(1, 2), F(9, 10), F(99, 100))
    tree = QuantileTree(targets, F(1000), grid, **options)
    drawn = tree.draw(counts_of(range(1000)), (Cauchy(0.0, 1e3),) * 5, Seeded(4))
    assert drawn == pytest.approx([float(q) * 1000 for q in targets], abs=1.01)


@given(
    st.lists(st.fractions(F(1, 99), F(98, 99), max_denominator=99), min_size=1, max_size=12),
    st.integers(2, 13),
    st.sampled_from(["independent", "joint"]),
    st.sampled_from(["add-remove", "substitute"]),
    st.sampled_from([0, 1, F(1, 3)]),
)
@settings(max_examples=150, deadline=None)
def test_the_event_costs_epsilon_and_no_more(targets, branching, node, relation, power):
    """Levels and slack add up to epsilon exactly; rho is at most that of one bounded range."""
    tree = QuantileTree(
        tuple(sorted(set(targets))),
        F(1),
        Grid(F(1), 0, 9),
        branching,
        node,
        relation,
        level_power=power,
    )
    event = tree.event()
    assert epsilon_of(event) == 1
    assert rho_of(event) <= F(1, 8)
    assert sorted(t for each in tree.nodes() for t in each.targets) == list(
        range(len(tree.quantiles))
    )


@pytest.mark.parametrize("targets", [(), (F(0),), (F(1),), (F(1, 2), F(1, 2)), (F(2, 3), F(1, 3))])
def test_targets_out_of_order_are_refused(targets):
    """None, an end, twice the same, unsorted."""
    with pytest.raises(ValueError, match="increase strictly"):
        QuantileTree(targets, F(1), Grid(F(1), 0, 9))


def change_ranges(targets, node, size, relation):
    """Largest range over outputs of the cost's change, by trying all small neighbours."""
    best = F(0)
    for record in range(size):
        for moved in range(size) if relation == "substitute" else (None,):
            changes = _changes(targets, node, size, record, moved)
            best = max(best, sum((max(each) - min(each) for each in changes), F(0)))
    return best


def _changes(targets, node, size, record, moved):
    """Changes of each draw's cost over outputs, batch 0 ... size - 1 without/with a record."""
    before = [x for x in range(size) if x != record]
    after = sorted([*before, record if moved is None else moved + F(1, 2)])
    before = before if moved is None else [*range(size)]
    after = (
        after if moved is None else sorted([x for x in before if x != record] + [moved + F(1, 2)])
    )
    outputs = [x - F(1, 4) for x in range(size + 1)] + [x + F(1, 4) for x in range(size + 1)]
    outputs.sort()

    def ranks(batch):
        return [sum(x < o for x in batch) for o in outputs]

    def costs(batch):
        own, n = ranks(batch), len(batch)
        if node == "independent":
            return [[abs(q * n - r) for r in own] for q in targets]
        wanted = [gap * n for gap in gaps(targets)]
        tuples = itertools.combinations_with_replacement(range(len(outputs)), len(targets))
        return [
            [
                sum(abs(b - a - w) for a, b, w in zip((0, *t), (*t, n), wanted, strict=True))
                for t in ([own[i] for i in each] for each in tuples)
            ]
        ]

    pairs = zip(costs(before), costs(after), strict=True)
    return [[b - a for a, b in zip(x, y, strict=True)] for x, y in pairs]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("node", ["independent", "joint"])
@pytest.mark.parametrize(
    "targets", [(F(1, 2),), (F(1, 5),), (F(1, 3), F(2, 3)), (F(1, 5), F(1, 2))], ids=str
)
def test_ranges_are_attained_and_never_exceeded(targets, node):
    """Among neighbours of up to 13 distinct records the range found is the one that is charged."""
    added = change_ranges(targets, node, 13, "add-remove")
    moved = change_ranges(targets, node, 9, "substitute")
    assert added <= addition_range(targets, node)
    assert moved <= substitution_range(targets, node)
    assert float(added) == pytest.approx(float(addition_range(targets, node)), rel=0.02)
    assert moved == substitution_range(targets, node)


def test_slots_of_even_targets():
    """Two thirds: a record in the middle is worth less than one at an end."""
    one = F(1)
    assert slot_ranges((F(1, 3), F(2, 3))) == ((F(4, 3), one), (one, one), (one, F(4, 3)))


@pytest.mark.parametrize("shaped", [False, True])
def test_a_joint_draw_of_many_records_is_cheap(shaped):
    """Ten million records at epsilon 1 make no number of a million bits, and find the deciles."""
    grid, targets = Grid(F(1), 0, 9999), tuple(F(i, 10) for i in range(1, 10))
    robust = (Uniform(-0.5, 9999.5),) * 9
    shapes = linear_shapes(profile(targets, "normal"), (0, 10_000), (500, 5000))
    prior = with_shapes(robust, shapes) if shaped else robust
    tree = QuantileTree(targets, F(1), grid, branching=10, node="joint")
    statistic = CellCounts(np.arange(10_000), np.full(10_000, 1000))
    entropy = Recording(5)
    drawn = tree.draw(statistic, prior, entropy)
    assert drawn == pytest.approx([1000 * i for i in range(1, 10)], abs=2)
    assert entropy.most < 20_000


class Recording(Seeded):
    most = 0

    def bits(self, count):
        self.most = max(self.most, count)
        return super().bits(count)
