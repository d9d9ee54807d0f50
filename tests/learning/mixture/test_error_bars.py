"""Intervals of what is believed: they hold the truth, and doubt what was seldom seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture.belief import Update
from streamdp.learning.mixture.evidence import Evidence
from streamdp.types import Grid
from tests.learning.mixture.worlds import DECILES, ROWS, batch, kind, run, truth

TAIL = Fraction(9, 10), Fraction(95, 100), Fraction(99, 100)
NOISE = 40.0
"""Variance of a count."""


@pytest.mark.parametrize("targets", [DECILES, TAIL], ids=["deciles", "tail"])
def test_intervals_hold_quantiles_of_two_humps_that_the_guess_does_not_know(
    targets: tuple[Fraction, ...],
) -> None:
    """Of values and of smoothed ones, at little epsilon; the belief alone held less than half."""
    random = np.random.default_rng(3)
    sides = [np.where(random.random(ROWS) < 0.35, -3.0, 3.0) for _ in range(24)]
    batches = [batch(each + 0.5 * random.normal(size=ROWS)) for each in sides]
    made = kind(targets, Fraction(1, 10))
    rows, _ = run(made, batches)
    held = [
        [
            row["lower"] <= true <= row["upper"],
            row["smoothed_lower"] <= true <= row["smoothed_upper"],
        ]
        for counts, each in zip(batches[4:], rows[4:], strict=True)
        for true, row in zip(truth(made, counts) / 100.0, each, strict=True)
    ]
    assert np.mean(held, axis=0).min() >= 0.93


def test_intervals_hold_quantiles_where_half_of_the_records_are_equal_elsewhere_each_day() -> None:
    """Between two cuts lies a pile where none has lain before."""
    random, held = np.random.default_rng(1), []
    piles = [np.where(random.random(ROWS) < 0.5, 3.0 * random.random(), 0.0) for _ in range(144)]
    batches = [batch(np.where(each, each, random.normal(size=ROWS))) for each in piles]
    made = kind(DECILES, Fraction(1, 10))
    rows, _ = run(made, batches)
    for counts, each in zip(batches[4:], rows[4:], strict=True):
        true = truth(made, counts) / 100.0
        held += [row["lower"] <= at <= row["upper"] for at, row in zip(true, each, strict=True)]
    assert np.mean(held) >= 0.93


def after(releases: int, noise: float = NOISE) -> Update:
    """What is believed after one more release, as if after so many."""
    made, random = kind(TAIL), np.random.default_rng(7)
    _, state = run(made, [batch(random.normal(size=ROWS)) for _ in range(3)])
    release_plan = made.learner.plan_release(state)
    assert release_plan is not None
    belief = replace(release_plan.basis.belief, releases=releases)
    cuts = np.array([-100.0, 0.0, 100.0, 250.0])
    shares = np.array([0.16, 0.5, 0.84, 0.993])
    below = np.tri(4, 5) - shares[:, None]
    covariance = below @ below.T * noise / ROWS**2
    found: Update = belief.after(Evidence(cuts, shares, covariance, float(ROWS), noise / ROWS**2))
    return found


def test_few_releases_leave_more_doubt_than_many() -> None:
    """On both sides of a quantile."""
    target = np.array([0.9])
    low, high = after(1).posterior.interval(target, 0.95)
    lower, upper = after(50).posterior.interval(target, 0.95)
    assert low < lower < upper < high


def test_an_outer_interval_reaches_beyond_where_the_last_of_a_thousand_is_believed() -> None:
    """Noise hides records that may lie there."""
    found = after(50)
    (last,) = found.posterior_mean.distribution().quantile(np.array([0.999]))
    assert found.posterior.interval(np.array([0.99]), 0.95)[1] > last


def test_an_interval_has_the_tails_of_its_posterior_beyond_its_ends() -> None:
    """Drawn from the posterior itself: shares at a place reach the quantile, as it says."""
    random, posterior = np.random.default_rng(5), after(50).posterior
    targets = np.array([0.9, 0.95])
    low, high = posterior.interval(targets, 0.9)
    chosen = random.choice(len(posterior.weights), 4000, p=posterior.weights)
    noise = posterior.deviations[chosen] * random.normal(size=(4000, 1))
    for target, first, last in zip(targets, low, high, strict=True):
        reached = (posterior.means[chosen] + noise >= target).mean(axis=0)
        rising = np.maximum.accumulate(reached)
        assert np.interp([first, last], posterior.cells, rising) == pytest.approx(
            [0.05, 0.95], abs=0.02
        )


def test_a_single_quantile_whose_guess_is_far_too_narrow_is_held_by_what_past_values_show() -> None:
    """Six times as wide as the guess; the least width that was looked at held few of them."""
    made, random = kind((Fraction(1, 2),)), np.random.default_rng(4)
    batches = [batch(6.0 * random.normal(size=ROWS)) for _ in range(30)]
    rows, _ = run(made, batches)
    held = [
        row["lower"] <= truth(made, counts)[0] / 100.0 <= row["upper"]
        for counts, (row,) in zip(batches[6:], rows[6:], strict=True)
    ]
    assert np.mean(held) >= 0.93


def test_a_single_quantile_whose_guess_is_far_too_wide_is_narrow_once_past_values_show_it() -> None:
    """A hundredth as wide as the guess; half as far at most, and no interval misses for it."""
    fine = Grid(Fraction(1, 10**4), -(10**8), 10**8)
    made, random = kind((Fraction(1, 2),), grid=fine), np.random.default_rng(6)
    batches = [batch(0.01 * random.normal(size=ROWS), fine) for _ in range(30)]
    rows, _ = run(made, batches)
    ends = np.array([[float(row[name] or 0) for name in ("lower", "upper")] for (row,) in rows])
    wide = ends[:, 1] - ends[:, 0]
    true = np.array([truth(made, each)[0] for each in batches]) / 10**4
    held = (ends[:, 0] <= true) & (true <= ends[:, 1])
    assert np.median(wide[16:]) <= 0.5 * np.median(wide[6:12])
    assert np.mean(held[12:]) >= 0.93
