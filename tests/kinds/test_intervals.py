"""Intervals of quantiles: total, in any unit, honest about what was hardly measured, calibrated."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.kinds.quantiles.error_bars import width_of_rank
from streamdp.kinds.quantiles.error_bars.intervals import (
    Interval,
    _on_grid,
    across,
    faint,
    hides,
    intervals,
    is_noisy,
    step_of,
)
from streamdp.kinds.quantiles.error_bars.plausible import plausible
from streamdp.kinds.quantiles.kind import smoothed_columns
from streamdp.kinds.quantiles.section import QuantilesSection
from streamdp.learning.learner import Smoothed
from streamdp.mechanisms.quantile_tree.planning.accuracy import Believed
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES, TreeChoice
from streamdp.mechanisms.quantile_tree.planning.rank_law import deviations, rank_samples
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Cauchy, Uniform, shapes_from_guess
from streamdp.types import CellCounts, FloatArray, Grid, Row
from tests.benchmarks import outer_quantiles
from tests.benchmarks.calibration import Data, cell, data, kind_of

GRID = Grid(Fraction(1, 1000), -(2**40), 2**40)
CENTS = replace(GRID, resolution=Fraction(1, 100))
DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
TREE_OF_4 = CANDIDATES["tree of 4, shapes"]


def prior_of(tree: QuantileTree, scale: float = 1.5, *, shapes: bool = False) -> JointPrior:
    robust = JointPrior((Cauchy(0.0, scale),) * len(tree.quantiles))
    return replace(robust, shapes=shapes_from_guess(tree.quantiles, 0.0, scale) if shapes else None)


@pytest.mark.thinned(15)
@pytest.mark.parametrize("form", CANDIDATES.values(), ids=CANDIDATES)
@pytest.mark.parametrize("rows", [1, 30, 10**10])
@pytest.mark.parametrize("epsilon", ["1/10000", "1/10", "1000"])
@pytest.mark.parametrize("values", ["spread", "equal", "extreme"])
def test_any_release_has_intervals(form: TreeChoice, rows: int, epsilon: str, values: str) -> None:
    """On the grid, around the value, never crossing: whatever was released, no error."""
    tree = form.tree(DECILES, Fraction(epsilon), GRID)
    ends = {"spread": (-3.0, 5.0), "equal": (7.0, 7.0)}.get(values)
    low, high = ends or (GRID.value(GRID.lower), GRID.value(GRID.upper))
    released = tuple(np.round(np.linspace(low, high, 9), 3).tolist())
    with np.errstate(all="raise", under="ignore"):
        found = intervals(tree, prior_of(tree), rows, released, Believed(0.0, 1.5))
    assert all(
        each.lower <= value <= each.upper for each, value in zip(found, released, strict=True)
    )
    for ends_of in ([each.lower for each in found], [each.upper for each in found]):
        assert ends_of == sorted(ends_of)
        assert GRID.value(GRID.lower) <= ends_of[0] <= ends_of[-1] <= GRID.value(GRID.upper)


@pytest.mark.parametrize("at", [-5.0, 0.0, 3.0, 10.0, 20.0])
def test_a_prior_that_ends_has_intervals_beyond_its_end(at: float) -> None:
    """Where its mass is nothing, as at the end of bounds, and where bounds are one cell."""
    tree = QuantileTree(DECILES, Fraction(1, 10), Grid(Fraction(1), -20, 20))
    ends = JointPrior((Uniform(0.0, 10.0),) * 9)
    with np.errstate(all="raise", under="ignore"):
        found = intervals(tree, ends, 100, (at,) * 9, Believed(0.0, 2.0))
        one = QuantileTree(DECILES, Fraction(1, 10), Grid(Fraction(1), 0, 0))
        assert {
            each.lower for each in intervals(one, ends, 100, (0.0,) * 9, Believed(0.0, 2.0))
        } == {0.0}
    assert all(-20 <= each.lower <= at <= each.upper <= 20 for each in found)


@pytest.mark.parametrize("quantiles", [(Fraction(1, 2),), (Fraction(99, 100),), DECILES])
@pytest.mark.parametrize("epsilon", ["1/20", "2"])
def test_intervals_have_the_unit_of_the_values(
    quantiles: tuple[Fraction, ...], epsilon: str
) -> None:
    """A release in hundreds has the intervals of the same release in ones, a hundred times."""
    values = np.round(np.linspace(-1.0, 2.0, len(quantiles)), 2)
    found = []
    for unit in (1, 100):
        grid = replace(GRID, resolution=GRID.resolution * unit)
        tree = QuantileTree(quantiles, Fraction(epsilon), grid)
        released = tuple((values * unit).tolist())
        found.append(
            intervals(tree, prior_of(tree, 1.5 * unit), 300, released, Believed(0.0, 1.5 * unit))
        )
    for one, hundred in zip(*found, strict=True):
        assert hundred.lower == pytest.approx(100 * one.lower, abs=0.11)
        assert hundred.upper == pytest.approx(100 * one.upper, abs=0.11)


@pytest.mark.parametrize("targets", [("3/10", "3/5", "9/10"), ("1/10", "1/2", "9/10")])
@pytest.mark.parametrize("values", [(114.0, 156.0, 323.0), (90.0, 114.0, 323.0)])
def test_bounds_do_not_make_batches_outside_them_plausible(
    targets: tuple[str, ...], values: tuple[float, ...]
) -> None:
    """The same release has about the same intervals whether the grid ends near or far."""
    quantiles = tuple(map(Fraction, targets))
    found = []
    for low, high in ((0, 1000), (-1_000_000, 1_000_000)):
        tree = QuantileTree(quantiles, Fraction(1, 10), Grid(Fraction(1), low, high))
        prior = JointPrior((Cauchy(120.0, 60.0),) * 3)
        batches = plausible(tree, prior, 900, np.array(values), 60.0)
        found.append(batches.edges(np.array([0.02, 0.98])))
    near, far = found
    assert near.min() > 30.0
    assert near[0] == pytest.approx(far[0], abs=60.0)


def test_more_epsilon_or_rows_make_intervals_narrower() -> None:
    """Each factor of ten does, about tenfold where the noise is small."""
    widths = []
    for epsilon, rows in (("1/10", 300), ("1", 300), ("1", 3000), ("10", 30_000)):
        tree = QuantileTree(DECILES, Fraction(epsilon), GRID)
        released = tuple((np.linspace(-1.2, 1.2, 9) + np.arange(9) ** 2 / 777).round(3).tolist())
        found = intervals(tree, prior_of(tree), rows, released, Believed(0.0, 1.0))
        widths.append(sum(each.upper - each.lower for each in found))
    assert widths == sorted(widths, reverse=True)
    assert widths[2] > 20 * widths[3]


def test_a_noisy_median_alone_is_as_wide_as_its_noise_unless_many_draws_leave_the_batch() -> None:
    """A quarter of the draws and more may, or it lies in a tail: only the guess knows the scale."""
    past = tuple(np.linspace(0.0, 0.1, 20).round(3).tolist())
    found = {}
    for quantile, epsilon in (("1/2", "1/500"), ("1/2", "1/50"), ("99/100", "1")):
        tree = QuantileTree((Fraction(quantile),), Fraction(epsilon), GRID)
        assert is_noisy(tree, 1000)
        (each,) = intervals(tree, prior_of(tree), 1000, (0.05,), Believed(0.0, 1.0), past)
        found[quantile, epsilon] = hides(tree, 1000), each.upper - each.lower
    assert [hidden for hidden, _ in found.values()] == [True, False, True]
    hidden, shown, tail = (width for _, width in found.values())
    assert shown < hidden / 5.0
    assert shown < tail / 5.0


def test_what_was_hardly_measured_reaches_from_neighbour_to_neighbour() -> None:
    """Where the root has nearly all of the budget, the others lie anywhere between its values."""
    tree = TREE_OF_4.tree(DECILES, Fraction(1, 10), GRID)
    root = tree.nodes()[0].targets
    hardly = faint(tree, 900)
    assert set(hardly) == set(range(9)) - set(root)
    released = tuple(np.linspace(-1.2, 1.2, 9).round(3).tolist())
    found = intervals(tree, prior_of(tree, shapes=True), 900, released, Believed(0.0, 1.0))
    for target, (left, right) in hardly.items():
        if left >= 0:
            assert found[target].lower <= found[left].lower
        if right < 9:
            assert found[target].upper >= found[right].upper


def test_quantiles_that_are_lost_in_noise_reach_to_what_is_believed() -> None:
    """All of .9, .95, .99 may lie outside the batch at epsilon times rows of 30, at 3000 none."""
    quantiles = tuple(map(Fraction, ("9/10", "19/20", "99/100")))
    for epsilon, reaches in ((Fraction(3, 100), True), (Fraction(30), False)):
        tree = QuantileTree(quantiles, epsilon, GRID)
        learned = JointPrior((Cauchy(10.0, 0.5),) * 3)
        found = intervals(tree, learned, 1000, (9.9, 10.0, 10.1), Believed(0.0, 1.5))
        assert [each.lower <= -1.5 for each in found] == [reaches] * 3


def test_shapes_pull_what_they_fill_in() -> None:
    """A tree whose root has nearly all of epsilon: of what hangs below it, releases say less."""
    tree = TREE_OF_4.tree(DECILES, Fraction(10), GRID)
    root = tree.nodes()[0].targets
    values = tuple(np.linspace(-1.2, 1.21, 9).round(3).tolist())
    widths = []
    for shapes in (False, True):
        prior = prior_of(tree, shapes=shapes)
        found = intervals(tree, prior, 1000, values, Believed(0.0, 1.0))
        widths.append(np.array([each.upper - each.lower for each in found]))
    plain, pulled = widths
    for target in range(9):
        assert pulled[target] < 1.4 * plain[target] or target not in root
        assert pulled[target] > 1.5 * plain[target] or target in root


def test_beside_a_value_a_batch_may_be_as_thin_as_on_its_other_side() -> None:
    """The middle of 0, 1, 11 may lie further below 1 than a tenth of the way that it may above."""
    tree = QuantileTree((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), Fraction(1), GRID)
    found = intervals(tree, prior_of(tree), 1000, (0.0, 1.0, 11.0), Believed(0.0, 5.0))
    assert 1.0 - found[1].lower > 0.7 * (found[1].upper - 1.0) or found[1].lower <= 0.0


def test_a_stretch_that_is_wide_beside_a_narrow_one_may_be_a_hole() -> None:
    """Of two humps, deciles at the hole may lie across it; of an even batch none is so far off."""
    tree = CANDIDATES["joint"].tree(DECILES, Fraction(1), GRID)
    humps = (5.0, 5.2, 5.4, 5.6, 5.8, 25.0, 25.2, 25.4, 25.6)
    for values, reaches in (
        (humps, True),
        (tuple(np.linspace(5.001, 13.002, 9).round(3).tolist()), False),
    ):
        found = intervals(tree, prior_of(tree), 900, values, Believed(0.0, 5.0))
        gap = values[5] - values[4]
        assert (found[4].upper - values[4] > 0.6 * gap) is reaches
        assert (values[5] - found[5].lower > 0.6 * gap) is reaches
        assert found[1].upper - values[1] < 1.5 * (values[2] - values[1])


@pytest.mark.parametrize(("epsilon", "reaches"), [("1/10", True), ("10", False)])
def test_few_noisy_values_reach_across_a_hole(epsilon: str, reaches: bool) -> None:
    """To the next value, or by the guess: at epsilon times rows of 60, not of 6,000."""
    for quantiles in (("1/10", "1/2", "9/10"), ("1/2",)):
        targets = tuple(map(Fraction, quantiles))
        tree = CANDIDATES["joint" if len(targets) > 1 else "binary"].tree(
            targets, Fraction(epsilon), GRID
        )
        values = (-2.0, 0.0, 2.0) if len(targets) > 1 else (0.0,)
        low, high = across(tree, 600, np.array(values), (), 2.0)
        middle = len(values) // 2
        assert bool(high[middle] >= 1.9) is reaches
        assert bool(low[middle] <= -1.9) is reaches
        assert bool(high[middle] < 0.01) is not reaches


@pytest.mark.parametrize(
    ("last", "rows", "reach"), [(9.0, 1000, 9.0), (3.0, 1000, 1.0), (9, 10**6, 0)]
)
def test_gaps_that_grow_may_go_on_growing_where_noise_reaches_the_end(
    last: float, rows: int, reach: float
) -> None:
    """After gaps of 1 and 3 one of 9, on either side; of 1 and 1 one of 1."""
    mirrored = (("9/10", "19/20", "99/100"), 1.0), (("1/100", "1/20", "1/10"), -1.0)
    for names, side in mirrored:
        tree = CANDIDATES["joint"].tree(tuple(map(Fraction, names)), Fraction(1, 2), GRID)
        values = np.sort(side * np.array([1.0, 2.0, 2.0 + last / 3.0]))
        low, high = across(tree, rows, values, (), 1.0)
        ends = (high[-1] - values[-1], values[0] - low[0])
        assert ends[0 if side > 0 else 1] == pytest.approx(reach, abs=0.01)


def test_hardly_measured_values_have_no_holes_and_close_ones_show_them() -> None:
    """Nor do deciles that are all measured need to reach across."""
    tree = CANDIDATES["joint"].tree(DECILES, Fraction(1, 10), GRID)
    values = np.arange(9.0)
    assert (across(tree, 600, values, (), 1.0)[:, 1:-1] == values[1:-1]).all()
    low, high = across(tree, 600, values, (0, 2, 3, 5, 7, 8), 1.0)
    assert low[[1, 4, 6]].tolist() == [-3.5, 1.0, 4.0]
    assert high[[1, 4, 6]].tolist() == [4.0, 6.0, 9.0]
    assert np.isinf(low[[0, 2, 3, 5, 7, 8]]).all()


def drawn_ranks(form: str) -> tuple[QuantileTree, FloatArray]:
    """A tree of deciles, and ranks that 150 of its production draws have in an even batch."""
    tree = CANDIDATES[form].tree(DECILES, Fraction(1, 4), Grid(Fraction(1), 0, 999))
    batch = CellCounts(np.arange(1000), np.ones(1000, dtype=np.int64))
    entropy, even = PublicEntropy(form), JointPrior((Cauchy(500.0, 1e6),) * 9)
    drawn = np.array([tree.draw(batch, even, entropy) for _ in range(150)])
    return tree, drawn / 1000.0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", ["binary", "joint"])
def test_ranks_have_the_law_of_the_mechanism(form: str) -> None:
    """Against the production draw from a batch that is even in rank, under an even prior."""
    tree, drawn = drawn_ranks(form)
    told = rank_samples(tree, 1000, 2000)
    for share in (0.1, 0.5, 0.9):
        seen, expected = (np.quantile(each, share, axis=0) for each in (drawn, told))
        assert np.abs(seen - expected).max() < 0.012


def by_name(name: str) -> Data:
    return next(each for each in data() if each.name == name)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("name", "who", "information"),
    [
        ("normal", "auto", 100),
        ("lognormal", "binary", 30),
        ("lognormal", "binary", 1000),
        ("ties", "joint", 300),
        ("heavy tails", "mixture", 100),
        ("lognormal", "tree of 4, shapes", 10_000),
    ],
)
def test_intervals_hold_as_often_as_they_say(name: str, who: str, information: float) -> None:
    """Of some 200 quantiles, hardly fewer than 95 %; the benchmark has all cells."""
    row, *_ = cell(by_name(name), "deciles", information, who, 25)
    assert row["what"] == "value"
    assert float(str(row["coverage"])) >= 0.9


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", ["uniform", "two humps"])
def test_smoothed_intervals_of_many_quantiles_hold_as_often_as_they_say(name: str) -> None:
    """Where batches vary as samples do and a draw's noise is that of all draws before it too."""
    _, row = cell(by_name(name), "29", 1000, "mixture", 13)
    assert row["what"] == "smoothed"
    assert float(str(row["coverage"])) >= 0.93


@pytest.mark.parametrize("who", ["auto", "mixture"])
def test_one_quantile_is_held_where_batches_are_six_times_as_wide_as_guessed(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the guess tells how a batch is spread, until past values tell how they differ.

    Were no batch taken to be wider than the guess, intervals would miss more often where
    no past values tell.
    """
    narrow = replace(by_name("normal"), guess=(0.3, 0.17))

    def held() -> list[float]:
        return [float(str(row["coverage"])) for row in cell(narrow, "median", 1000, who, 20)]

    assert min(held()) >= 0.9
    monkeypatch.setattr(width_of_rank, "WRONG", np.log((0.4, 1.0)))
    assert (max(held()) < 0.9) == (who == "auto")


def test_an_outer_quantile_alone_is_as_thin_as_its_past_values_show() -> None:
    """Of the last hundredth the guess says even less; the smoothed one is held too."""
    rows = list(cell(by_name("normal"), "0.99", 1000, "mixture", 30))
    assert [row["what"] for row in rows] == ["value", "smoothed"]
    assert min(float(str(row["coverage"])) for row in rows) >= 0.9


@pytest.mark.parametrize(("epsilon", "strays"), [("1", True), ("100", False)])
def test_an_outer_quantile_that_moves_far_more_than_its_noise_may_be_anywhere(
    epsilon: str, strays: bool
) -> None:
    """Unless so many records lie beyond it that no draw leaves a batch, or values stay."""
    tree = CANDIDATES["binary"].tree((Fraction(99, 100),), Fraction(epsilon), GRID)
    ends = GRID.value(GRID.lower), GRID.value(GRID.upper)
    past = tuple(np.round(0.01 * np.sin(np.arange(12.0)), 3).tolist())

    def reaches(value: float) -> bool:
        asked = tree, prior_of(tree), 1000, (value,), Believed(0.0, 0.01), past
        (found,) = intervals(*asked)
        return (found.lower, found.upper) == ends

    assert not reaches(0.004)
    assert reaches(30.0) == strays


@pytest.mark.parametrize(
    ("cells", "step"),
    [
        ((135, 255, 300, 400, 500, 600, 765, 900, 1000), 100),
        ((-700, -350, 0, 350, 1050), 350),
        ((300, 600, 601, 703), 1),
        ((1, 2, 3, 4, 5), 1),
        ((0, 0, 500, 500), 1),
    ],
)
def test_values_show_a_step_where_chance_does_not_explain_it(
    cells: tuple[int, ...], step: int
) -> None:
    """Several multiples of a number that few cells are multiples of."""
    assert step_of(np.array(cells)) == step


def test_values_of_a_column_without_a_step_hardly_ever_show_one() -> None:
    """In one release of a thousand, or so."""
    chance = np.random.default_rng(4)
    shown = [step_of(chance.integers(-5000, 5000, size)) for size in (3, 9, 29) for _ in range(400)]
    assert np.mean(np.array(shown) > 1) < 0.005


def test_intervals_reach_to_the_next_step() -> None:
    """Values between steps were drawn off one beside them; public points show nothing."""
    values = (1.35, 2.55, 3.0, 4.0, 5.0, 6.0, 7.65, 9.0, 10.0)
    ends = {}
    for form in ("binary", "joint", "joint, shapes", "tree of 4, shapes"):
        tree = CANDIDATES[form].tree(DECILES, Fraction(10), CENTS)
        prior = prior_of(tree, 5.0, shapes=CANDIDATES[form].shapes)
        found = intervals(tree, prior, 1000, values, Believed(5.0, 5.0))
        ends[form] = [(each.lower, each.upper) for each in found]
    for form in ("binary", "joint", "joint, shapes"):
        assert ends[form][0] == (1.0, 2.0)
        assert ends[form][6] == (7.0, 8.0)
    assert ends["tree of 4, shapes"][0][1] < 2.0


def test_steps_of_public_points_are_none_of_the_column() -> None:
    """Centres of shapes at every hundredth cell draw values there, whatever the batch is."""
    cells, public = np.array([100, 300, 500, 737, 1100]), np.arange(0, 2000, 100)
    assert step_of(cells) == 100
    assert step_of(cells, public) == 1
    assert step_of(cells, np.arange(0, 2000, 7)) == 100


@pytest.mark.parametrize(("distance", "reaches"), [(0.05, False), (0.3, True)])
def test_a_value_on_a_step_reaches_the_next_if_its_rank_is_near(
    distance: float, reaches: bool
) -> None:
    values = np.arange(1.0, 10.0)
    found = _on_grid(CENTS, 100, values, values - distance, values + distance)
    assert found[3] == (Interval(3.0, 5.0) if reaches else Interval(4.0 - distance, 4.0 + distance))


def test_whole_numbers_on_a_grid_of_hundredths_have_their_quantile_held() -> None:
    """Half of the records are at most 2: a median is drawn anywhere between 2 and 3."""

    def batch(number: int) -> FloatArray:
        chance = np.random.default_rng([17, number])
        shares = [0.3, 0.2, *[0.0625] * 8]
        return np.asarray(100.0 * chance.choice(np.arange(1, 11), 4000, p=shares))

    whole = Data("whole", batch, "0.01", (3.0, 3.0), 4000)
    for who in ("auto", "mixture"):
        assert float(next(cell(whole, "deciles", 4000.0, who, 12))["coverage"] or 0) >= 0.93


def test_past_draws_show_a_thin_part_of_a_batch() -> None:
    """A ninth decile between two humps, in a hundredth of the records that lie far apart."""

    def batch(number: int) -> FloatArray:
        chance = np.random.default_rng([18, number])
        low, thin, high = chance.multinomial(4000, (0.895, 0.01, 0.095)).tolist()
        parts = chance.normal(0, 1, low), chance.uniform(5, 95, thin), chance.normal(100, 1, high)
        return np.asarray(np.rint(100.0 * np.concatenate(parts)))

    found = Data("thin", batch, "0.01", (1.0, 2.0), 4000)
    held = next(cell(found, "0.1 0.5 0.9", 6000.0, "mixture", 24))
    assert float(held["coverage"] or 0) >= 0.93


def test_a_shift_of_all_quantiles_is_no_thin_part() -> None:
    """Intervals of values that move together stay as narrow as those of values that stay."""
    targets = (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
    tree = CANDIDATES["binary"].tree(targets, Fraction(1), GRID)
    chance = np.random.default_rng(19)
    places = [*(5.0 * chance.normal(size=8)), 0.0]
    past = [(place - 1.317, place + 0.004, place + 1.291) for place in places]
    alone, after = (
        intervals(tree, prior_of(tree), 5000, past[-1], Believed(0.0, 1.5), before)
        for before in ((), tuple(np.ravel(past[:-1]).tolist()))
    )
    assert alone == after


@pytest.mark.thinned(2)
@pytest.mark.parametrize("form", ["binary", "joint"])
def test_deviations_of_ranks_are_those_of_all_draws_that_lead_to_a_value(form: str) -> None:
    """Against the production draw: of a tree below the root more than its own node's noise."""
    tree, drawn = drawn_ranks(form)
    off = np.sqrt(((drawn - np.arange(1, 10) / 10.0) ** 2).mean(axis=0))
    assert deviations(tree, 1000) == pytest.approx(off, rel=0.35)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("who", ["binary", "mixture"])
def test_intervals_of_noise_that_is_taken_for_a_tenth_hold_less_often(who: str) -> None:
    """Power, and what fails where expected_rows is ten times too high: most that are drawn.

    Of those that are counted some fail, since totals correct the number of records. Where it is ten
    times too low, they hold.
    """
    held: dict[float, list[float]] = {}
    for factor in (0.1, 1.0, 10.0):
        wrong = replace(by_name("normal"), expected=round(1000 * factor))
        rows = list(cell(wrong, "deciles", 300, who, 20))
        assert [row["what"] for row in rows] == ["value", "smoothed"][: len(rows)]
        held[factor] = [float(str(row["coverage"])) for row in rows]
    assert max(held[10.0]) < {"binary": 0.5, "mixture": 0.93}[who]
    assert min(held[1.0]) > 0.88
    assert min(held[0.1]) > {"binary": 0.99, "mixture": 0.95}[who]


def test_where_noise_reaches_the_ends_of_a_batch_its_shape_is_a_question() -> None:
    """Deciles at epsilon times rows of 30 are noisy, at 10,000 they are not."""
    noisy = [is_noisy(QuantileTree(DECILES, Fraction(e, 1000), GRID), 1000) for e in (30, 10_000)]
    assert noisy == [True, False]


def test_a_smoothed_interval_that_misses_the_drawn_one_reaches_over_both() -> None:
    """Both are about one quantile, so one of two that have nothing in common is wrong.

    That of the release is taken, as far as the smoothed value, where it is narrower.
    """
    kind = kind_of(data()[0], "median", 100, "mixture")
    away, near, wide = (
        Smoothed(5.0, 4.0, 6.0),
        Smoothed(0.5, 0.2, 2.0),
        Smoothed(1.5, -2.0, 3.0),
    )
    row: Row = {"quantile": 0.5, "value": 0.0, "lower": -1.0, "upper": 1.0}
    for each, ends in ((away, (-1.0, 6.0)), (near, (0.2, 2.0)), (wide, (-1.0, 1.5))):
        published = smoothed_columns(kind, row, each)
        assert (published["smoothed_lower"], published["smoothed_upper"]) == ends


def test_the_statement_names_quantiles_with_few_records_beyond() -> None:
    """Their intervals are wide, and it says why; with more records it does not."""
    told = {"kind": "quantiles", "source": "s", "column": "x", "resolution": 1, "bounds": [0, 9]}
    told |= {"quantiles": ["1/2", "9/10", "99/100"], "epsilon": "1/10"}
    for rows, named in ((900, "0.9, 0.99 is below"), (20_000, "0.99 is below"), (10**6, None)):
        section = QuantilesSection.model_validate(told | {"expected_rows": rows})
        said = section.about_errors() or ""
        assert (f"records beyond {named}" in said) if named else ("beyond" not in said)
        assert ("no draw shows that it is empty" in said) == (not section.counts())


def test_where_draws_hardly_show_an_outer_quantile_its_interval_reaches_a_heavy_tail() -> None:
    """Tens of draws about a prior that is too near say little: it held 3 in 10 of such days."""
    found = outer_quantiles.cell("lognormal 2", "0.99", 100, 12)
    assert float(str(found["coverage"])) > 0.9
