"""The posterior of what lies beyond a reach tells tails apart, and intervals hold both parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from streamdp.mechanisms.clip import DISTANCES, Clip
from streamdp.mechanisms.overshoot import Overshoot, best_reach, best_reach_of_squares
from streamdp.types import FloatArray

Law = Callable[[np.random.Generator], FloatArray]

RECORDS = 40_000
EDGES = np.array([0.0, *(10.0 * 2.0**power for power in range(DISTANCES - 1)), np.inf])


def clip(distances: FloatArray, reach: int, noise: float, scale: float = 40.0) -> Clip:
    """A clip around 0 that remembers the distances of so many records, with noise."""
    chance = np.random.default_rng(1)
    released = np.histogram(distances, EDGES)[0] + chance.normal(0.0, noise, DISTANCES)
    return Clip(0, reach, 10, scale, tuple(released.tolist()), noise**2)


def lognormal(chance: np.random.Generator) -> FloatArray:
    """Most values pile up below the mean, and one tail is heavy."""
    return np.abs(chance.lognormal(3.0, 1.5, RECORDS) - 60.0)


@pytest.mark.parametrize(
    ("law", "noise"),
    [
        (lambda g: np.abs(g.normal(0.0, 60.0, RECORDS)), 30.0),
        (lambda g: np.abs(g.normal(0.0, 60.0, RECORDS)), 600.0),
        (lambda g: g.exponential(50.0, RECORDS), 30.0),
        (lambda g: g.exponential(50.0, RECORDS), 600.0),
        (lambda g: np.abs(g.standard_t(3.0, RECORDS) * 40.0), 30.0),
        (lambda g: np.abs(g.standard_t(3.0, RECORDS) * 40.0), 600.0),
        (lognormal, 30.0),
    ],
)
def test_the_overshoot_is_within_the_posterior(law: Law, noise: float) -> None:
    """Of light tails and heavy ones, where noise hides the far cells and where it does not."""
    distances = law(np.random.default_rng(2))
    true = float(np.maximum(distances - 150.0, 0.0).mean())
    posterior = Overshoot.of(clip(distances, 150, noise))
    found = posterior.means
    assert (np.diff(found) >= 0.0).all()
    assert 0.7 * found[0] <= true <= 1.3 * found[-1]
    squares = float(np.maximum(distances**2 - 150.0**2, 0.0).mean())
    assert (np.diff(posterior.squares) >= 0.0).all()
    assert 0.7 * posterior.squares[0] <= squares <= 1.3 * posterior.squares[-1]


def test_values_that_pile_up_within_the_reach_do_not_hide_a_heavy_tail() -> None:
    """Taken for a tail, the pile falls so fast that next to nothing would lie beyond."""
    distances = lognormal(np.random.default_rng(3))
    found = Overshoot.of(clip(distances, 150, 300.0)).means
    assert found[-1] > 0.7 * float(np.maximum(distances - 150.0, 0.0).mean())


def test_more_noise_leaves_more_in_doubt() -> None:
    distances = np.random.default_rng(4).exponential(50.0, RECORDS)
    sure, unsure = (Overshoot.of(clip(distances, 150, noise)).means for noise in (10.0, 2000.0))
    assert unsure[-1] - unsure[0] > 2 * (sure[-1] - sure[0])


def test_with_nothing_seen_the_guess_says_how_much_is_hidden() -> None:
    """A reach of a fifth of the spread hides most of it; a guess that is too wide gives way."""
    nothing = Clip(0, 8, 10, 40.0, (0.0,) * DISTANCES, 1e12)
    assert np.median(Overshoot.of(nothing).means) > 8
    near = np.abs(np.random.default_rng(5).normal(0.0, 20.0, RECORDS))
    right, wide = (clip(near, 60, 30.0, scale) for scale in (20.0, 20_000.0))
    assert Overshoot.of(wide).means[-1] < 3 * Overshoot.of(right).means[-1]


def test_nothing_lies_beyond_bounds_within_the_reach() -> None:
    within = replace(
        clip(np.random.default_rng(6).exponential(50.0, RECORDS), 150, 30.0), farthest=150
    )
    assert Overshoot.of(within).means.tolist() == [0.0] * 12
    half = np.array([10.0])
    below, above = Overshoot.of(within).widened(half, half, np.array([900.0]), (0.0, 0.0))
    assert below == pytest.approx(half, rel=1e-3)
    assert above == pytest.approx(half, rel=1e-3)


def test_an_interval_holds_noise_and_what_is_hidden_together() -> None:
    """Of a tail on one known side and of one on either: wider than noise, shorter than the sum."""
    means = np.linspace(8.0, 12.0, 12)
    chance, drawn = np.random.default_rng(7), 200_000
    off = chance.normal(0.0, 5.0, drawn) + chance.choice(means, drawn)
    half, records = np.array([1.96 * 5.0]), np.array([1e6])
    found = Overshoot(means, 0.0, means, 0.0 * means)
    below, above = found.widened(half, half, records, (0.0, 1e9))
    assert 0.94 < float(((off > -below[0]) & (off < above[0])).mean()) <= 0.985
    assert below == pytest.approx(half, rel=1e-3)
    assert above[0] < 9.8 + 12.0
    low, high = found.widened(half, half, records, (1e9, 1e9))
    assert low == pytest.approx(high)
    assert 9.8 < high[0] < above[0]


def test_squares_beyond_the_reach_only_add_to_a_variance() -> None:
    """One side is wider than the other, both hold; a moved mean matters by its distance alone."""
    squares, none = np.linspace(40.0, 90.0, 12), np.zeros(12)
    chance, drawn = np.random.default_rng(8), 200_000
    off = chance.normal(0.0, 10.0, drawn) + chance.choice(squares, drawn)
    half, records = np.array([1.96 * 10.0]), np.array([1e6])
    found = Overshoot(none, 0.0, squares, none)
    below, above = found.widened_variance(half, half, records, np.array([50.0]))
    assert below == pytest.approx(half, rel=1e-2)
    assert 0.97 < float((off < above[0]).mean()) < 0.985
    moved = Overshoot(none + 1.0, 0.0, none, none)
    low, high = moved.widened_variance(half, half, records, np.array([50.0]))
    assert low == pytest.approx(high)
    assert low[0] > half[0] + 90.0


@pytest.mark.parametrize("best", [best_reach, best_reach_of_squares])
def test_one_far_cell_of_noise_does_not_drive_the_reach_out(
    best: Callable[[Clip, float], float],
) -> None:
    """It stays within a few spreads, as without that cell."""
    released = [400.0, 300.0, 200.0, 95.0, -40.0, -10.0, -30.0, 0.0, 0.0]
    before = Clip(0, 100, 10, 30.0, tuple(released), spread=900.0)
    after = replace(before, distances=(*released[:-1], 60.0))
    reaches = [best(each, 0.01) for each in (before, after)]
    assert 60.0 < reaches[0] < 200.0
    assert reaches[1] < 1.3 * reaches[0]


@pytest.mark.parametrize("best", [best_reach, best_reach_of_squares])
@pytest.mark.parametrize("noise", [0.001, 0.1, 10.0])
def test_the_reach_falls_with_noise_but_not_below_the_likely_spread(
    best: Callable[[Clip, float], float], noise: float
) -> None:
    """Noise that hides everything is no reason to clip everything."""
    values = np.abs(np.random.default_rng(4).normal(0.0, 40.0, RECORDS))
    known = clip(values, 150, 100.0)
    found = best(known, noise)
    assert known.likely_scale() <= found <= best(known, noise / 10.0)


@pytest.mark.parametrize("summed", [True, False])
def test_a_heavy_tail_does_not_drive_the_reach_out_day_after_day(summed: bool) -> None:
    """By hundred days without a bound it is 200 spreads away and farther."""
    chance = np.random.default_rng(6)
    known = Clip.first(0, 3876, 1600.0)
    for _ in range(100):
        values = np.abs(540.0 + 460.0 * chance.standard_t(3.0, 1363))
        ends = [*(low for low, _ in known.edges()), np.inf]
        released = np.histogram(values, ends)[0] + chance.laplace(0.0, 10.0, DISTANCES)
        known = known.observed(np.rint(released).astype(int).tolist(), 200.0)
        known = known.following(0, best_reach(known, 0.00115, summed=summed))
    assert 2000 < known.reach < 20_000


def test_values_that_pile_up_far_from_zero_are_not_cut_off() -> None:
    """However large the noise is, a reach that is below them all would hide them."""
    values = np.random.default_rng(7).normal(100.0, 15.0, RECORDS)
    assert best_reach(clip(values, 60, 100.0), 0.2, summed=True) > 90.0


def test_with_nothing_seen_the_reach_of_a_mean_is_as_far_as_the_guess_goes() -> None:
    """Noise of a million records a cell: neither a cell nor all of the line."""
    unseen = Clip(0, 160, 10, 40.0, (1e5, -1e6, 2e5, 0.0, 3e5, -2e5, 1e5, 0.0, 0.0), 1e12)
    assert 20 <= best_reach(unseen, 0.05) <= 640


def test_no_more_is_added_to_squares_than_clipping_hides() -> None:
    """A part of it, where releases show that there is a tail."""
    values = np.random.default_rng(5).exponential(50.0, RECORDS)
    hidden = float(np.maximum(values**2 - 100.0**2, 0.0).mean())
    assert 0.3 * hidden < Overshoot.of(clip(values, 100, 100.0)).of_squares < 1.1 * hidden
