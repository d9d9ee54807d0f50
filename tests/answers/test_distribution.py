"""Answers about periods lie near the records of the period, and their intervals hold them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from streamdp.answers.counted import Counted, Shares, Stage, shares_of
from streamdp.answers.job import ColumnDistribution, United
from streamdp.answers.regression import BatchHistory, share
from streamdp.errors import ConfigurationError, QuestionError
from tests.answers.worlds import DECILES, Days, days


def distribution(made: Days) -> ColumnDistribution:
    places = {place: place for place in range(len(made.batches))}
    bounds = (-100_000, 100_000)
    return ColumnDistribution("job", BatchHistory(made.batches), places, Fraction(1), bounds)


def moving(seed: int, count: int = 70) -> Days:
    """Centres that go with the weekday and from day to day."""
    chance = np.random.default_rng(1000 + seed)
    own = chance.normal(0.0, 200.0, count)
    return days([300.0 * (day % 7 == 6) + each for day, each in enumerate(own)], seed)


@pytest.mark.parametrize("worlds", [1, pytest.param(20, marks=pytest.mark.long)])
def test_quantiles_of_a_week_are_those_of_its_records(worlds: int) -> None:
    """Intervals hold them nineteen times in twenty, and the error is of the noise's size."""
    held, errors = [], []
    for seed in range(worlds):
        made = moving(seed)
        of = distribution(made)
        for first in (0, 21, 42, 63):
            places = np.arange(first, first + 7)
            truth = np.sort(made.pooled(places.tolist()))
            for quantile in DECILES[1:-1]:
                answer = of.quantile(float(quantile), places)
                true = truth[int(np.ceil(quantile * len(truth))) - 1]
                held.append(answer.lower <= true <= answer.upper)
                share = np.searchsorted(truth, answer.value, side="right") / len(truth)
                errors.append(abs(share - quantile))
    assert 0.92 <= np.mean(held) <= 1.0
    assert np.mean(errors) < 0.01


def test_intervals_would_not_hold_if_noise_were_larger_than_is_said() -> None:
    """The test above can fail: three times the noise, said as before, is found."""
    held = []
    for seed in range(2):
        loud = days([0.0] * 70, seed, noise=80.0)
        lying = tuple(
            Counted(each.at, tuple(Stage(s.cuts, s.counts, 100.0) for s in each.stages))
            for each in loud.batches
        )
        of = distribution(Days(lying, loud.records))
        truth = np.sort(loud.pooled(range(21, 28)))
        for quantile in DECILES[1:-1]:
            answer = of.quantile(float(quantile), np.arange(21, 28))
            true = truth[int(np.ceil(quantile * len(truth))) - 1]
            held.append(answer.lower <= true <= answer.upper)
    assert np.mean(held) < 0.9


def test_shares_of_bins_add_up() -> None:
    """Up to, between and above: together one."""
    of, places = distribution(moving(1, 30)), np.arange(14, 21)
    parts = [of.share(None, -500, places), of.share(-500, 400, places), of.share(400, None, places)]
    assert sum(each.value for each in parts) == pytest.approx(1.0)
    assert all(each.lower <= each.value <= each.upper for each in parts)


def test_a_long_period_is_solved_in_pieces_and_agrees() -> None:
    """As the mean of its records, weighed by their numbers."""
    made = moving(2, 120)
    of = distribution(made)
    answer = of.quantile(0.5, np.arange(10, 110))
    truth = made.pooled(range(10, 110))
    assert abs(np.mean(truth <= answer.value) - 0.5) < 0.006
    assert answer.lower <= np.median(truth) <= answer.upper


@pytest.mark.parametrize("worlds", [2, pytest.param(30, marks=pytest.mark.long)])
def test_the_next_batch_is_forecast_with_an_interval_that_holds_it(worlds: int) -> None:
    """Its own deviation is in the interval: wider than that of a batch that was counted."""
    held = []
    for seed in range(worlds):
        made = moving(seed, 61)
        of = distribution(Days(made.batches[:60], made.records[:60]))
        found = of.next(0.5, 60.0)
        held.append(found.lower <= np.median(made.records[60]) <= found.upper)
        known = of.quantile(0.5, np.array([59]))
        assert found.upper - found.lower > known.upper - known.lower
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_is_said_of_a_period_that_may_have_hardly_any_records(size: int) -> None:
    """Its counts are noise: a quantile would lie anywhere, and a share be sure all the same."""
    made = days([10_000.0] * 20, 3, size)
    of, every, one = distribution(made), np.arange(20), np.arange(1)
    for ask in (
        lambda: of.quantile(0.5, every),
        lambda: of.share(10_000.0, None, every),
        lambda: of.ranges(5, every),
        lambda: of.next(0.5, 21.0),
        lambda: of.change(np.arange(10), np.arange(10, 20), 0.5),
        lambda: United((of, of)).quantile(0.5, range(20)),
        lambda: United((of, of)).share(10_000.0, None, range(20)),
    ):
        with pytest.raises(QuestionError, match="hardly any records"):
            ask()
    many = days([10_000.0] * 20, 3, 100)
    whole = distribution(many)
    assert whole.quantile(0.5, one).batches == 1
    both = United((whole, distribution(days([10_000.0] * 20, 4, 0))))
    assert abs(both.share(10_000.0, None, range(20)).value - 0.5) < 0.1


def test_nothing_is_said_beyond_the_outermost_cuts() -> None:
    """Neither quantiles nor shares: what lies there was never counted."""
    of, places = distribution(moving(3)), np.arange(7)
    with pytest.raises(ConfigurationError, match="beyond what was counted"):
        of.quantile(0.99, places)
    with pytest.raises(ConfigurationError, match="beyond what was counted"):
        of.share(5000.0, None, places)


def test_shares_have_the_noise_that_is_said() -> None:
    """Covariance of the shares of a batch, against that of a thousand draws."""
    chance = np.random.default_rng(5)
    exact, size = np.full(10, 80.0), 800.0
    drawn = []
    for _ in range(4000):
        stage = Stage(np.arange(9.0), exact + chance.normal(0.0, 10.0, 10), 100.0)
        drawn.append(shares_of(Counted(0.0, (stage,)), size).shares)
    said = shares_of(Counted(0.0, (Stage(np.arange(9.0), exact, 100.0),)), size).noise
    assert np.cov(np.array(drawn).T) == pytest.approx(said, rel=0.15, abs=1e-5)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(3))
def test_a_distribution_that_moves_with_every_batch(seed: int) -> None:
    """The period's own counts decide where days move as no kernel does: it was off by 15 %."""
    draw = np.random.default_rng(seed)
    batches, records = [], []
    for day in range(60):
        own = np.round(draw.normal(1000.0 * day, 3000.0, 400))
        cuts = np.unique(np.round(np.quantile(own, DECILES) + draw.normal(0.0, 200.0)))
        exact = np.histogram(own, np.concatenate(([-np.inf], cuts, [np.inf])))[0]
        noisy = exact + np.round(draw.laplace(0.0, 5.0, len(exact)))
        batches.append(Counted(float(day), (Stage(cuts, noisy, 50.0),)))
        records.append(own)
    history = BatchHistory(tuple(batches))
    weights = dict.fromkeys(range(16, 44), 1 / 28)
    cells = np.quantile(np.concatenate(records[16:44]), DECILES)
    found = share(history, history.fitted(), weights, cells)
    assert np.abs(found.mean - DECILES).max() < 0.02
    deviations = np.sqrt(found.variance)
    assert (np.abs(found.mean - DECILES) < 2.0 * deviations).all()
    assert deviations.max() < 0.05


@pytest.mark.long
def test_what_lies_between_cuts_is_fitted_to_each_history() -> None:
    """Piles of equal values show between cuts; intervals hold them to a 25th of their distance."""
    shapes: list[float] = []
    off: list[list[bool]] = []
    for pile in (1.0, 250.0):
        draw = np.random.default_rng(11)
        batches, records = [], []
        for day in range(70):
            own = np.round(draw.normal(0.0, 1000.0, 600) / pile) * pile
            cuts = np.unique(np.round(np.quantile(own, DECILES) + draw.normal(0.0, 150.0, 9)))
            exact = np.histogram(own, np.concatenate(([-np.inf], cuts + 0.5, [np.inf])))[0]
            batches.append(
                Counted(float(day), (Stage(cuts, exact + draw.laplace(0, 3, 10), 18.0),))
            )
            records.append(own)
        of = distribution(Days(tuple(batches), tuple(records)))
        shapes.append(of.scales.shape)
        whole, places = np.sort(np.concatenate(records[28:56])), np.arange(28, 56)
        found = [of.quantile(each, places) for each in np.arange(0.12, 0.9, 0.03).tolist()]
        true = whole[[math.ceil(each * len(whole)) - 1 for each in np.arange(0.12, 0.9, 0.03)]]
        ends = [(a.lower - 10.0, a.upper + 10.0) for a in found]
        off.append([not a <= x <= b for (a, b), x in zip(ends, true.tolist(), strict=True)])
    assert shapes[1] > 4 * shapes[0]
    assert np.mean(off, axis=1).max() <= 0.1


def test_tails_go_on_from_the_density_of_the_outer_cuts() -> None:
    """A tail is long on one side alone: cuts in the middle do not tell how fast it falls."""
    exponential = -np.log(1.0 - DECILES) * 1000.0
    batch = Shares(exponential, DECILES, np.eye(9) * 1e-8, np.arange(9))
    found = batch.cdf(np.array([-np.log(0.05) * 1000.0]))
    assert abs(found[0] - 0.95) < 0.015


def test_a_day_that_lies_where_no_other_does_tells_nothing_of_them() -> None:
    """The four weeks behind it are answered as if it had been a day like others."""
    answers = []
    for strange in (0.0, 6000.0):
        made = days([strange if day == 27 else 0.0 for day in range(70)], 3)
        history = BatchHistory(made.batches)
        weights = dict.fromkeys(range(28, 56), 1 / 28)
        cells = np.quantile(made.pooled(range(28, 56)), DECILES)
        answers.append(share(history, history.fitted(), weights, cells).mean)
    assert np.abs(answers[1] - answers[0]).max() < 0.001


def test_what_lies_where_no_batch_is_cut_does_not_become_known() -> None:
    """Cuts that never move tell nothing of the records between them, on however many days."""
    chance, cuts = np.random.default_rng(4), np.linspace(100.0, 900.0, 9)
    batches = [
        Counted(float(day), (Stage(cuts, np.round(chance.normal(500.0, 3.0, 10)), 9.0),))
        for day in range(60)
    ]
    history = BatchHistory(tuple(batches))
    weights, cells = dict.fromkeys(range(16, 44), 1 / 28), np.array([400.0, 450.0])
    at, between = np.sqrt(share(history, history.fitted(), weights, cells).variance)
    assert at < 0.005
    assert 0.015 < between < 0.04
