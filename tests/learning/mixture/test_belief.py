"""Belief after a release: Bayes' rule, also where a release says nothing, or nothing likely."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture import belief as module
from streamdp.learning.mixture.belief import BROAD, Belief, PosteriorMean, Update
from streamdp.learning.mixture.curves import SIZES, Curves
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.records import RecordsPrior
from streamdp.mechanisms.histograms import Histogram
from streamdp.types import FloatArray, Grid

GRID = Grid(Fraction(1), -500, 500)
MOVES = np.array([[0.0, 0.0], [0.4, 0.0], [-0.6, 0.3]])
WEIGHTS = np.array([0.5, 0.2, 0.3])
SIZE_WEIGHTS = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
SMALL = np.array(list(itertools.product((-0.4, 0.0, 0.4), (-0.5, 0.0, 0.5))))
TARGETS = np.arange(1, 10) / 10.0
SHARES = np.concatenate(([0.0005, 0.002, 0.01], np.arange(1, 40) / 40.0, [0.99, 0.998, 0.9995]))
NOTHING = Evidence(np.empty(0), np.empty(0), np.empty((0, 0)), 100.0, 1.0)


def even(low: float = -100.0, high: float = 100.0) -> Distribution:
    return Distribution(np.linspace(low, high, 41), np.linspace(0.0, 1.0, 41))


def before(grid: Grid = GRID, weights: FloatArray = WEIGHTS) -> Belief:
    """Three curves, of a hundred records."""
    records = RecordsPrior.expected(100)
    return Belief(grid, {BROAD: Curves(even(), MOVES)}, weights, SIZE_WEIGHTS, records, 3)


def seen(cells: list[float], shares: list[float], noise: FloatArray) -> Evidence:
    return Evidence(np.array(cells), np.array(shares), noise, 100.0, float(noise[0, 0]))


def by_hand(
    prior: Belief, evidence: Evidence, span: float, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Weights of curves and sizes, and the mean at two cells, by sums over a grid of values.

    What a batch does about its curve at the two cells is summed over all pairs of values in
    [-span, span]: no inverse and no rule of conditioning but Bayes'.
    """
    axis = np.linspace(-span, span, steps)
    pairs = np.array(list(itertools.product(axis, axis)))
    at = prior.marginal.cdf(evidence.cells)
    covariance = np.array(
        [[min(u, v) - u * v for v in at.tolist()] for u in at.tolist()], dtype=float
    )
    curves = prior.cdf(evidence.cells)
    joint, moved = np.zeros((len(curves), len(SIZES))), np.zeros((len(SIZES), 2))
    for (i, curve), (k, size) in itertools.product(enumerate(curves), enumerate(SIZES)):
        law = density(pairs, size**2 * covariance)
        law /= law.sum()
        mass = prior.weights[i] * prior.size_weights[k] * law
        mass *= density(evidence.y - curve - pairs, evidence.noise)
        joint[i, k] = mass.sum()
        moved[k] += mass @ (curve + pairs)
    return joint / joint.sum(), moved.sum(axis=0) / joint.sum()


def density(off: FloatArray, covariance: FloatArray) -> FloatArray:
    """Of a normal law of two numbers."""
    (a, b), (_, d) = covariance
    determinant = a * d - b * b
    squares = (d * off[:, 0] ** 2 - 2.0 * b * off[:, 0] * off[:, 1] + a * off[:, 1] ** 2) / (
        determinant
    )
    return np.asarray(np.exp(-0.5 * squares) / np.sqrt(determinant))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("shares", [[0.4, 0.55], [0.2, 0.35], [0.45, 0.8]], ids=str)
def test_the_belief_after_a_release_is_bayes_rule(
    shares: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against sums over a grid: weights of curves and of sizes, and shares where it was cut."""
    monkeypatch.setattr(module, "ROUNDS", 1)
    prior = before()
    noise = np.array([[4e-3, 1e-3], [1e-3, 5e-3]])
    evidence = seen([-20.0, 15.0], shares, noise)
    joint, mean = by_hand(prior, evidence, 1.6, 641)
    after = prior.after(evidence)
    assert after.weights == pytest.approx(joint.sum(axis=1), abs=2e-3)
    assert after.size_weights == pytest.approx(joint.sum(axis=0), abs=2e-3)
    assert after.posterior_mean.distribution().cdf(evidence.cells) == pytest.approx(mean, abs=2e-3)


def test_a_release_that_says_nothing_changes_nothing() -> None:
    """Of huge noise: weights, sizes and the believed distribution stay."""
    prior = before()
    after = prior.after(seen([-20.0, 15.0], [0.1, 0.2], 1e8 * np.eye(2)))
    assert after.weights == pytest.approx(WEIGHTS, abs=1e-6)
    assert after.size_weights == pytest.approx(SIZE_WEIGHTS, abs=1e-6)
    at = np.linspace(-150.0, 150.0, 31)
    assert after.posterior_mean.distribution().cdf(at) == pytest.approx(
        prior.marginal.cdf(at), abs=0.01
    )


def test_curves_learn_more_of_a_release_than_its_value_does() -> None:
    """Where batches hardly deviate from a curve, what a release says against it is its error."""
    alone = Curves(even(), np.zeros((1, 2)))
    sure = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]).clip(1e-6)
    prior = Belief(GRID, {BROAD: alone}, np.ones(1), sure, RecordsPrior.expected(100), 20)
    after = prior.after(seen([0.0], [0.6], np.array([[1e-2]])))
    value, taught = (
        float(mean.distribution().cdf(np.zeros(1))[0])
        for mean in (after.posterior_mean, after.corrected_mean)
    )
    assert value == pytest.approx(0.5, abs=2e-3)
    assert 0.53 < taught < 0.6


def test_a_release_without_noise_is_believed() -> None:
    """The distribution goes through it, and nothing is in doubt there."""
    truth = [0.3, 0.5, 0.65]
    after = before().after(seen([-60.0, 0.0, 30.0], truth, 1e-10 * np.eye(3)))
    assert after.posterior_mean.distribution().cdf(np.array([-60.0, 0.0, 30.0])) == pytest.approx(
        truth, abs=1e-3
    )
    at = np.isin(after.posterior.cells, [-60.0, 0.0, 30.0])
    assert at.sum() == 3
    spread = after.posterior.weights @ after.posterior.deviations
    assert spread[at].max() < 1e-3 < np.median(spread[~at])


def test_the_curve_that_foretold_the_release_gains_weight() -> None:
    """And sizes are as far as the batch is from it."""
    prior = before(weights=np.ones(3) / 3.0)
    cells = np.array([-60.0, 0.0, 60.0])
    for curve, shares in enumerate(prior.cdf(cells)):
        after = prior.after(Evidence(cells, shares, 1e-5 * np.eye(3), 100.0, 1e-5))
        assert int(after.weights.argmax()) == curve
        assert after.weights[curve] > 0.9
        assert after.size_weights[0] > SIZE_WEIGHTS[0]


STAGES = {
    "no records": [Histogram((-50, 0, 50), (0, 0, 0, 0))],
    "negative": [Histogram((-50, 0, 50), (-40, -3, -90, -1))],
    "huge": [Histogram((-50, 0, 50), (10**14, 10**13, 3, 10**14))],
    "one bin": [Histogram((-50, 0, 50), (0, 0, 10**6, 0))],
    "one cut": [Histogram((499,), (100, 0))],
    "the first cell": [Histogram((-500,), (100, 0))],
    "neighbours": [Histogram((0, 1, 2, 3), (50, 0, 1, 0, 50))],
    "the same twice": [Histogram((0,), (90, 10)), Histogram((0,), (10, 90))],
    "three stages": [Histogram((0,), (7, -9)), Histogram((0, 1), (1, 2, 3)), Histogram((), (5,))],
}
GRIDS = {
    "plain": GRID,
    "wide": Grid(Fraction(1), -(10**8), 10**8),
    "two cells": Grid(Fraction(1), 0, 1),
}


def check(after: Update) -> None:
    """Finite, in order."""
    known = after.posterior_mean
    assert all(np.isfinite(each).all() for each in (known.cells, known.levels))
    assert np.isfinite(after.weights).all()
    assert after.weights.sum() == pytest.approx(1.0)
    assert after.size_weights.sum() == pytest.approx(1.0)
    assert (np.diff(known.cells) > 0.0).all()
    assert (np.diff(known.levels) >= 0.0).all()
    found = known.distribution().quantile_cells(TARGETS)
    low, high = after.posterior.interval(TARGETS, 0.95)
    assert (np.diff(found) >= 0).all()
    assert (np.diff(low) >= 0.0).all()
    assert (np.diff(high) >= 0.0).all()
    assert (low <= high + 1e-6).all()


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("variance", [0.0, 2.0, 1e12])
def test_any_release_is_read(name: str, grid: str, variance: float) -> None:
    """Finite numbers, shares and quantiles in order, whatever was counted."""
    stages, prior = STAGES[name], before(GRIDS[grid])
    variances, believed = (variance,) * len(stages), prior.marginal
    check(prior.after(Evidence.counted(stages, variances, prior.records, believed)))


@pytest.mark.parametrize("cells", [[3.0] * 5, [-1e9, -1e8, 0.0, 1e8, 1e9]], ids=str)
def test_drawn_values_are_read_wherever_they_lie(cells: list[float]) -> None:
    """All equal, or out of all that is believed."""
    shares = np.arange(1, 6) / 6.0
    noise = 1e-4 * np.minimum.outer(shares, shares)
    check(before().after(Evidence(np.array(cells) - 0.5, shares, noise, 100.0, 1e-4)))


def update(prior: FloatArray, after: FloatArray) -> Update:
    """A release that changes the weights of curves."""
    believed, known = before(weights=prior), PosteriorMean(np.zeros(1), np.zeros(1))
    return Update(believed, believed, NOTHING, known, after[:, None], after, np.ones(1))


def test_news_is_the_likelihood_that_leads_from_the_belief_before_to_that_after() -> None:
    """Of normal beliefs about one number: what a release showed, and how sure it was of it."""
    values = np.linspace(-8.0, 8.0, 801)[:, None]
    prior = np.exp(-0.5 * values[:, 0] ** 2)
    likelihood = np.exp(-0.5 * (values[:, 0] - 3.0) ** 2 / 0.5)
    prior, after = prior / prior.sum(), prior * likelihood / (prior @ likelihood)
    release = update(prior, after)
    shown, variances = release.likelihood_moments(values, after @ values)
    assert shown == pytest.approx([3.0], rel=1e-3)
    assert variances == pytest.approx([0.5], rel=1e-3)


def test_a_release_that_changes_no_belief_brings_no_news() -> None:
    """Its variance is that of nothing."""
    weights, values = np.array([0.2, 0.5, 0.3]), np.array([[1.0], [2.0], [4.0]])
    after = update(weights, weights)
    assert after.likelihood_moments(values, weights @ values)[1][0] > 1e9


@pytest.mark.parametrize("cells", [[0.0], [-40.0, 60.0]], ids=["one", "two"])
def test_what_no_release_shows_does_not_drift(cells: list[float]) -> None:
    """Releases that say next to nothing leave beyond their cuts what was believed, however many."""
    grid = Grid(Fraction(1), -(10**7), 10**7)
    places = 100.0 * np.log(SHARES / (1.0 - SHARES))
    first, moves = Distribution.about(places, SHARES), SMALL
    weights, found = np.full(len(moves), 1.0 / len(moves)), first
    for _ in range(60):
        groups = {"last": Curves(found, moves), BROAD: Curves(first, MOVES)}
        both = np.concatenate((0.97 * weights, 0.03 * WEIGHTS))
        belief = Belief(grid, groups, both, SIZE_WEIGHTS, RecordsPrior.expected(100), 30)
        shares, noise = first.cdf(np.array(cells)), 0.01 * np.eye(len(cells))
        found = belief.after(seen(cells, shares.tolist(), noise)).posterior_mean.distribution()
    far = np.array([0.002, 0.05, 0.95, 0.998])
    assert found.quantile(far) == pytest.approx(first.quantile(far), rel=0.1)


def test_curves_as_wide_as_the_grid_do_not_say_where_a_tail_is_believed() -> None:
    """A fortieth of the weight is theirs: the last hundredth would be all of it."""
    grid = Grid(Fraction(1), -(10**7), 10**7)
    groups = {"last": Curves(even(), SMALL), BROAD: Curves(even(-1e6, 1e6), MOVES)}
    weights = np.concatenate((np.full(9, 0.975 / 9.0), 0.025 * WEIGHTS))
    belief = Belief(grid, groups, weights, SIZE_WEIGHTS, RecordsPrior.expected(100), 30)
    (place,), (scale,) = belief.centres(np.array([0.99]))
    assert place == pytest.approx(98.0, abs=1.0)
    assert 10.0 < scale < 100.0
    assert belief.marginal.quantile(np.array([0.99]))[0] > 1e4
