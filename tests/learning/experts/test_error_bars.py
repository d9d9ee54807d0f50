"""Intervals of a belief: wider where batches are thin, never surer than a sample, calibrated."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.facts import Facts
from streamdp.learning.experts.publishing.error_bars import around
from streamdp.priors.families import Cauchy
from streamdp.types import BoolArray, FloatArray, Grid

GUESS = (0.0, 1.0)
DECILES = np.arange(1, 10) / 10.0


def facts(targets: FloatArray, rows: int, resolution: float) -> Facts:
    """Of a column guessed to lie about 0."""
    grid = Grid(Fraction(resolution), -(10**6), 10**6)
    return Facts(targets, grid, rows, GUESS, Cauchy(*GUESS), 0.05)


def belief(point: FloatArray, deviation: FloatArray) -> Belief:
    return Belief(np.zeros(1), point[None], np.diag(deviation**2)[None])


def inside(bars: Facts) -> tuple[BoolArray, BoolArray]:
    """No quantile was drawn outside its batch."""
    none = np.zeros(len(bars.targets), dtype=bool)
    return none, none


def exponential() -> tuple[FloatArray, FloatArray]:
    """Quantiles of a law that grows thinner, and its density at each."""
    return -np.log1p(-DECILES), 1.0 - DECILES


def test_an_interval_reaches_further_where_a_batch_is_thin() -> None:
    """Of a law that thins out to the right, the upper half is the wider one of the last decile."""
    point, density = exponential()
    bars = facts(DECILES, 10_000, 0.001)
    lower, upper = around(bars, belief(point, 0.03 / density), density, {}, {}, inside(bars))
    assert upper[-1] - point[-1] > 1.3 * (point[-1] - lower[-1])
    straight = 2.6 * 0.03 / density
    assert (lower <= point - straight).all()
    assert (upper >= point + straight).all()


def test_a_belief_is_no_surer_than_a_sample() -> None:
    """√(q(1-q)/n) ranks at least, unless the quantile itself was measured better than that."""
    point, density = exponential()
    bars, sure = facts(DECILES, 100, 0.001), belief(point, np.full(9, 1e-6))
    lower, upper = around(bars, sure, density, {}, {}, inside(bars))
    sampled = 2.0 * 2.6 * np.sqrt(DECILES * (1.0 - DECILES) / 100)
    assert ((upper - lower) * density >= sampled).all()
    known = dict(enumerate(point.tolist()))
    lower, upper = around(bars, sure, density, dict.fromkeys(range(9), 0.001), known, inside(bars))
    assert ((upper - lower) * density >= 2.0 * 2.6 / 100).all()
    assert ((upper - lower) * density < sampled)[1:-1].all()


@pytest.mark.parametrize(
    ("noise", "least", "most"), [(1e-6, 1.0, 1.1), (0.05, 0.5, 0.9), (9, 0, 0.4)]
)
def test_an_interval_reaches_to_where_a_sample_would_lie(
    noise: float, least: float, most: float
) -> None:
    """Towards a value off the belief: as far as sampling, and not its noise, explains."""
    bars = facts(np.array([0.5]), 100, 0.001)
    sure, far = belief(np.zeros(1), np.full(1, 1e-6)), 2.0
    ends = [
        around(bars, sure, np.ones(1), {0: noise}, {0: value}, inside(bars)) for value in (0.0, far)
    ]
    assert ends[1][0] == ends[0][0]
    assert least - 0.01 <= (ends[1][1] - ends[0][1])[0] / far <= most


def test_an_outermost_quantile_that_noise_may_carry_away_reaches_inwards() -> None:
    """To the next one, on either side; where noise is small against the rest of a batch, not."""
    point, density = exponential()
    bars, sure = facts(DECILES, 10_000, 0.001), belief(point, 1e-3 / density)
    for noise, reaches in ((0.05, True), (0.001, False)):
        lower, upper = around(bars, sure, density, {8: noise}, {8: point[8]}, inside(bars))
        assert bool(lower[-1] <= point[-2]) is reaches
        assert bool(upper[0] >= point[1]) is reaches


def test_quantiles_that_may_lie_outside_the_batch_reach_to_the_guess() -> None:
    """To a value that is surely inside, if there is one."""
    none, some = np.zeros(3, dtype=bool), np.array([False, True, True])
    for above, inner in ((~none, -1.0), (some, 5.0), (none, None)):
        bars = facts(np.array([0.9, 0.95, 0.99]), 10_000, 0.001)
        sure = belief(np.array([5.0, 7.0, 9.0]), np.full(3, 1e-6))
        lower, upper = around(bars, sure, np.full(3, 0.01), {2: 1e-5}, {2: 9.0}, (none, above))
        assert (lower[1:] <= 5.0).all() == (inner is not None)
        assert inner is None or (lower[1:] <= inner).all()
        assert upper[0] < 7.1


def test_both_of_two_beliefs_that_cross_are_held() -> None:
    """A value measured well may lie beyond the believed next one."""
    bars = facts(np.array([0.4, 0.6]), 10_000, 0.001)
    crossing = belief(np.array([3.0, 2.0]), np.full(2, 1e-3))
    lower, upper = around(bars, crossing, np.full(2, 1.0), {}, {}, inside(bars))
    assert (lower <= 2.0).all()
    assert (upper >= 3.0).all()


def test_ends_lie_on_the_grid() -> None:
    """Rounded outwards: a batch's own quantile is one of its values."""
    bars = facts(np.array([0.5]), 10_000, 1.0)
    lower, upper = around(
        bars, belief(np.full(1, 2.9), np.full(1, 0.01)), np.ones(1), {}, {}, inside(bars)
    )
    assert (lower[0], upper[0]) == (2.0, 4.0)


def test_the_spread_of_a_single_quantile_is_a_guess() -> None:
    """Its interval reaches twice as far as if a density were known."""
    one = facts(np.array([0.5]), 10_000, 0.001)
    lower, upper = around(
        one, belief(np.zeros(1), np.full(1, 0.02)), np.ones(1), {}, {}, inside(one)
    )
    assert (upper - lower)[0] == pytest.approx(2 * 2 * 2.6 * 0.02, rel=0.05)


def test_an_outer_quantile_alone_reaches_outwards_as_tails_do() -> None:
    """Beyond .99 lie few records: it reaches half as far again up as down; alike at the median."""
    for target, least, most in ((0.5, 0.9, 1.1), (0.99, 1.5, 20.0)):
        bars = facts(np.array([target]), 500, 1e-6)
        lower, upper = around(
            bars, belief(np.zeros(1), np.full(1, 1e-6)), np.ones(1), {}, {}, inside(bars)
        )
        assert least < upper[0] / -lower[0] < most


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0, 1e12])
def test_any_belief_has_ends(count: int, spread: float) -> None:
    """Finite, around the point, not decreasing: equal quantiles and hopeless beliefs too."""
    targets = np.arange(1, count + 1) / (count + 1.0)
    point = np.full(count, 7.0)
    with np.errstate(all="raise", under="ignore"):
        bars = facts(targets, 1, 1.0)
        lower, upper = around(
            bars, belief(point, np.full(count, spread)), np.full(count, 0.1), {}, {}, inside(bars)
        )
    assert np.isfinite([lower, upper]).all()
    assert (lower <= point).all()
    assert (point <= upper).all()
    assert (np.diff(lower) >= 0.0).all()
    assert (np.diff(upper) >= 0.0).all()


def test_ends_hold_what_a_belief_of_the_right_size_is_off_by() -> None:
    """Points that are off by as many ranks as is believed: 95 % of the true quantiles lie within,
    of a law that thins out as well as of a normal one."""
    generator = np.random.default_rng(5)
    for inverse in (_exponential, _normal):
        true = inverse(DECILES)
        density = 0.02 / (inverse(DECILES + 0.01) - inverse(DECILES - 0.01))
        held = []
        for _ in range(200):
            ranks = (DECILES + 0.03 * generator.normal(size=9)).clip(0.002, 0.998)
            point = np.sort(inverse(ranks))
            bars = facts(DECILES, 10_000, 0.001)
            lower, upper = around(
                bars, belief(point, 0.03 / density), density, {}, {}, inside(bars)
            )
            held.append((lower <= true) & (true <= upper))
        assert np.mean(held, axis=0).min() > 0.95


def _exponential(shares: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(-shares))


def _normal(shares: FloatArray) -> FloatArray:
    return np.array([NormalDist().inv_cdf(each) for each in shares.tolist()])
