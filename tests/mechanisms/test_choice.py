"""The rule of `auto` and the figures of accuracy: public, sound, and true to what happens."""

from fractions import Fraction

import numpy as np
import pytest

from streamdp.mechanisms.quantile_tree.planning.accuracy import (
    Believed,
    epsilon_needed,
    simulated_errors,
    stays_under,
)
from streamdp.mechanisms.quantile_tree.planning.choice import (
    CANDIDATES,
    NAMES,
    TABLE,
    TIES,
    choose_tree,
    expected_errors,
)
from streamdp.mechanisms.quantile_tree.planning.simulation import (
    PublicEntropy,
    batch_of,
    rank_error,
)
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy
from streamdp.types import CellCounts, Grid

F = Fraction
GRID = Grid(F(1, 100), -2000, 2000)
QUARTILES = (F(1, 4), F(1, 2), F(3, 4))


def test_the_table_names_its_best_candidate():
    """Each row chooses a known one that errs at most a tenth more than any, or the binary tree.

    Joint draws may not find equal records on a fine grid: then they must gain a share of the batch.
    """
    for row in TABLE:
        assert row.choice() in CANDIDATES
        least = min(row.errors.values())
        spared = TIES if row.choice() == "binary" else 0.0
        assert row.errors[row.choice()] <= max(1.1 * least, least + spared)
        without = frozenset({row.choice()} - {"binary"})
        assert row.choice(without) not in without


def test_the_table_has_a_column_for_each_candidate():
    """In one order, so a line that is printed is the line that is read."""
    assert tuple(CANDIDATES) == NAMES
    assert {name for row in TABLE for name in row.errors} == set(NAMES)
    assert all(row.line().split()[2:].count("-") == len(NAMES) - len(row.errors) for row in TABLE)


def test_many_records_are_drawn_by_the_binary_tree():
    """The time and memory of a joint draw grow with them; up to 2^16 nine are drawn jointly."""
    assert choose_tree(9, F(1), 10_000_000) is CANDIDATES["binary"]
    assert choose_tree(9, F(1), 32_000) is CANDIDATES["joint"]
    assert choose_tree(9, F(1), None) is CANDIDATES["binary"]


@pytest.mark.parametrize(("count", "information"), [(3, 300), (9, 1000), (29, 1000), (29, 3000)])
def test_ties_on_a_fine_grid_are_found_where_noise_is_small(count, information):
    """Two fifths of a batch are one value, among cells far narrower than it is spread.

    The quantiles inside are that value, under the form that the table chooses.
    """
    targets = tuple(F(i, count + 1) for i in range(1, count + 1))
    values = np.sort(np.random.default_rng(3).normal(size=1000))
    tied, rows = values.copy(), 1000
    tied[300:700] = values[500]
    grid = Grid(F(1, 100_000), -(2**26), 2**26)
    batch, truth = batch_of(tied, rows, grid), round(float(values[500]) * 100_000)
    form = choose_tree(count, F(information, rows), rows)
    inside = [j for j, target in enumerate(targets) if 0.4 < target < 0.6]
    tree = form.tree(targets, F(information, rows), grid)
    prior, entropy = JointPrior((Cauchy(0.2, 3.0),) * count), PublicEntropy("ties")
    drawn = np.array([tree.draw(batch, prior, entropy) for _ in range(12)])[:, inside]
    assert (np.abs(drawn - truth) > 1).mean() < 0.1


@pytest.mark.parametrize(
    ("count", "information", "best"), [(29, 500, "binary"), (29, 1700, "joint")]
)
def test_errors_are_interpolated_between_lines_of_the_table(count, information, best):
    """Simulated there, the nearest line's candidate errs 1.4 times as much as the one chosen."""
    assert choose_tree(count, F(information, 4096), 4096) is CANDIDATES[best]
    for line in TABLE:
        there = expected_errors(line.quantiles, line.epsilon_rows)
        assert there.choice() == line.choice()


def test_little_data_is_drawn_with_shapes():
    """Nine or 29 quantiles of a thousand records at epsilon 0.1 need what shapes know."""
    assert choose_tree(9, F(1, 10), 1000).shapes
    assert choose_tree(29, F(1, 10), 1000).shapes


@pytest.mark.parametrize("choice", CANDIDATES.values(), ids=CANDIDATES)
def test_every_choice_is_a_tree_for_any_targets(choice):
    """One target and many, both relations."""
    for targets in ((F(1, 2),), QUARTILES, tuple(F(i, 30) for i in range(1, 30))):
        for relation in ("add-remove", "substitute"):
            tree = choice.tree(targets, F(1), GRID, relation)
            assert tree.quantiles == targets
            assert tree.relation == relation


def test_batches_hold_what_they_are_asked_to():
    """All rows, sorted cells on the grid, also with fewer values than rows or values outside."""
    for rows in (1, 7, 10_000):
        batch = batch_of(np.linspace(-50.0, 50.0, min(rows, 4096)), rows, GRID)
        assert batch.counts.sum() == rows
        assert (np.diff(batch.cells) > 0).all()
        assert GRID.lower <= batch.cells[0] <= batch.cells[-1] <= GRID.upper


def test_rank_error_counts_ties_in_favour():
    """A value that holds the target rank is no error; a cell beside it is."""
    batch = CellCounts(np.array([0, 5]), np.array([50, 50]))
    assert rank_error(batch, (F(1, 4), F(3, 4)), (0, 5)) == 0.0
    assert rank_error(batch, (F(1, 4), F(3, 4)), (0, 6)) == pytest.approx(0.25)


BELIEVED = Believed(0.0, 1.0)
PRIOR = JointPrior((Cauchy(0.0, 1.0),) * 3)


def stated(epsilon, rows=500):
    return stays_under(QuantileTree(QUARTILES, epsilon, GRID), PRIOR, rows, BELIEVED)


def test_releases_stay_under_the_stated_error():
    """Of 200 further simulated releases about 95 % stay under the figure for the prior."""
    tree = QuantileTree(QUARTILES, F(1), GRID)
    errors = simulated_errors(tree, PRIOR, 500, BELIEVED, repeats=260).max(axis=1)
    assert 0.93 <= np.mean(errors <= stated(F(1))) <= 0.999


@pytest.mark.parametrize("quantiles", [(F(1, 2),), (F(99, 100),), QUARTILES])
def test_the_figure_is_true_of_one_quantile_and_in_any_unit(quantiles):
    """Not zero where releases err, and the same where all is measured in hundreds."""
    coarse = Grid(F(100) * GRID.resolution, GRID.lower, GRID.upper)
    figures = [
        stays_under(
            QuantileTree(quantiles, F(1, 20), grid),
            JointPrior((Cauchy(0.0, unit),) * len(quantiles)),
            200,
            Believed(0.0, unit),
        )
        for grid, unit in ((GRID, 1.0), (coarse, 100.0))
    ]
    assert figures[0] == pytest.approx(figures[1], abs=1e-9)
    assert figures[0] > 0.005


def test_a_normal_batch_is_released_as_accurately_as_stated():
    """A batch no simulation drew, whose prior is right about its place, meets the figure."""
    tree = QuantileTree(QUARTILES, F(1), GRID)
    values = np.sort(np.random.default_rng(5).normal(size=500))
    batch = batch_of(values, 500, GRID)
    entropy = PublicEntropy("a normal batch")
    figure, drawn = stated(F(1)), [tree.draw(batch, PRIOR, entropy) for _ in range(100)]
    assert np.mean([rank_error(batch, QUARTILES, cells) <= figure for cells in drawn]) >= 0.85


def test_the_needed_epsilon_gives_the_wanted_error():
    """What is suggested stays under what was asked, and is not ten times too much."""
    epsilon = epsilon_needed(stated, F(1, 10), 0.05)
    assert epsilon is not None
    assert stated(epsilon) <= 0.05 < stated(epsilon / 10)


def test_figures_are_the_same_every_time():
    """Public chance: two people who compute the figure agree."""
    assert stated(F(1), 100) == stated(F(1), 100)
