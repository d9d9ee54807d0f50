"""The filter follows levels and weekdays, keeps its word on intervals, and survives anything."""

from __future__ import annotations

import json

import numpy as np
import pytest

from streamdp.kinds.statistics.measures.moments import ends, noise_of_quotient
from streamdp.kinds.statistics.measures.series_filter import (
    DOUBT_OF_STAYING,
    Estimates,
    SeriesFilter,
    drawn_together,
)
from streamdp.types import FloatArray


def run(
    truth: FloatArray, scale: float, seed: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Released values, estimates and ends of intervals, each of shape (days, series)."""
    chance = np.random.default_rng(seed)
    q = np.exp(-1 / scale)
    released = truth + chance.geometric(1 - q, truth.shape) - chance.geometric(1 - q, truth.shape)
    count = truth.shape[1]
    series = SeriesFilter(tuple(map(str, range(count))))
    state, found = None, []
    for day, values in enumerate(released):
        noise = [2 * q / (1 - q) ** 2] * count
        state, seen = series.step(json.loads(json.dumps(state)), values.tolist(), noise, day % 7)
        found.append((seen.point, seen.lower, seen.upper))
    point, lower, upper = (np.array(each) for each in zip(*found, strict=True))
    return released, point, lower, upper


def errors(truth: FloatArray, scale: float) -> tuple[float, float, float]:
    """Mean absolute errors of released and smoothed values, and cover, from the second month on."""
    released, point, lower, upper = run(truth, scale)
    late = slice(30, None)
    cover = ((lower <= truth) & (truth <= upper))[late].mean()
    raw, smoothed = (np.abs(each - truth)[late].mean() for each in (released, point))
    return float(raw), float(smoothed), float(cover)


def test_still_series_are_learned_nearly_whole() -> None:
    """Thirty levels that stay: a tenth of the noise is left."""
    truth = np.repeat(np.arange(30.0)[None], 200, axis=0)
    raw, smoothed, cover = errors(truth, 10.0)
    assert smoothed < 0.2 * raw
    assert cover > 0.9


@pytest.mark.thinned(2)
@pytest.mark.parametrize("told", [True, False])
def test_gaussian_noise_is_told_from_changes_of_the_truth(told: bool) -> None:
    """Its even spread passes for changes where the filter expects the peaks of Laplace's law."""
    chance, count = np.random.default_rng(1), 120
    truth = np.arange(count) % 12.0
    series, state, errors = SeriesFilter(tuple(map(str, range(count))), gaussian=told), None, []
    for day in range(200):
        values = np.rint(truth + chance.normal(0.0, 10.0, count)).tolist()
        state, seen = series.step(state, values, [100.0] * count, day % 7)
        errors.append(np.abs(seen.point - truth).mean())
    assert bool(np.mean(errors[60:]) < 0.15 * 8.0) == told


def test_weekdays_are_learned() -> None:
    """A week that repeats: without offsets the error would be that of its spread."""
    week = np.array([100, 100, 100, 100, 120, 60, 40.0])
    truth = np.tile(week, 40)[:, None]
    raw, smoothed, cover = errors(truth, 20.0)
    assert smoothed < 0.7 * raw
    assert cover > 0.93


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scale", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("spread", [3.0, 30.0, 300.0])
def test_volatile_series_are_not_worse_than_released_and_covered(
    scale: float, spread: float
) -> None:
    """A single series that jumps each day, with heavy tails: nothing to learn."""
    chance = np.random.default_rng(4)
    truth = np.maximum(np.rint(300 + spread * chance.standard_t(3, 365)), 0)[:, None]
    raw, smoothed, cover = errors(truth, scale)
    assert smoothed <= 1.04 * raw
    assert cover >= 0.92


def test_a_new_level_is_followed() -> None:
    """Twenty days after a jump most of it is known."""
    truth = np.concatenate((np.full(100, 50.0), np.full(60, 400.0)))[:, None]
    _, point, _, _ = run(truth, 10.0)
    assert abs(point[120:] - 400).mean() < 15


def test_series_may_come_and_go() -> None:
    """One that is new starts with its first value; the others keep what they know."""
    state, _ = SeriesFilter(("a",)).step(None, [100.0], [2.0], 0)
    for _ in range(20):
        state, _ = SeriesFilter(("a",)).step(state, [100.0], [2.0], 0)
    _, seen = SeriesFilter(("b", "a")).step(state, [7.0, 100.0], [2.0, 2.0], 0)
    assert abs(seen.point[1] - 100) < 0.5
    assert abs(seen.point[0] - 7) < 1


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e15, -1e15], [-5.0, -5.0], [1e300, 1.0]])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_any_value_leaves_finite_numbers(values: list[float], nonnegative: bool) -> None:
    """Also after many like it."""
    series = SeriesFilter(("a", "b"), nonnegative=nonnegative)
    state = None
    with np.errstate(all="ignore"):
        for day in range(5):
            state, seen = series.step(state, values, [200.0, 200.0], None if day % 2 else day)
    if max(map(abs, values)) < 1e100:
        assert np.isfinite([seen.point, seen.lower, seen.upper]).all()
    assert not nonnegative or not (seen.lower < 0).any()


@pytest.mark.long
def test_small_counts_under_much_noise_are_covered_each() -> None:
    """Where the belief of a count lies below 0 the interval is that of what is left of it."""
    means = np.repeat([0.5, 1.0, 2.0, 4.0, 20.0], 30)
    truth = np.random.default_rng(5).poisson(means, (200, len(means))).astype(float)
    _, _, lower, upper = run(truth, 100.0, seed=6)
    held = ((lower <= truth) & (truth <= upper))[31:].mean(axis=0)
    assert held.min() > 0.85


def test_a_state_with_weights_of_other_models_goes_on_with_its_levels() -> None:
    """As those of earlier versions, which had 24: their weights begin anew."""
    series = SeriesFilter(("a",))
    state, _ = series.step(None, [100.0], [2.0], 0)
    for _ in range(20):
        state, _ = series.step(state, [100.0], [2.0], 0)
    earlier = {"series": state["series"], "weights": [-3.0] * 24}
    after, seen = series.step(earlier, [100.0], [2.0], 0)
    assert len(after["weights"]) == len(state["weights"])
    assert abs(seen.point[0] - 100) < 0.5


def test_what_was_expected_is_the_level_with_its_weekday() -> None:
    """Nothing of a series that is new."""
    series, state = SeriesFilter(("a",)), None
    for day in range(70):
        state, _ = series.step(state, [50.0 if day % 7 == 3 else 100.0], [2.0], day % 7)
    assert abs(series.expected(state, 3)[0][0] - 50) < 5 < series.expected(state, 2)[0][0] - 90
    assert np.isnan(SeriesFilter(("b",)).expected(state, 3)).all()


def test_a_change_that_a_release_shows_widens_the_interval_at_once() -> None:
    """Three deviations of noise above all that was usual."""
    series, state = SeriesFilter(("a",)), None
    noise = np.random.default_rng(3).laplace(0.0, 10.0, 60)
    for day, each in enumerate(noise.tolist()):
        state, _ = series.step(state, [100.0 + each], [200.0], day % 7)
    _, seen = series.step(state, [145.0], [200.0], 4)
    assert seen.lower[0] <= 100.0
    assert seen.upper[0] >= 159.0


def test_means_that_stay_are_averaged_under_much_noise() -> None:
    """Better than by a running mean; with equal first weights the error is 1.07 of its."""
    keys, chance = tuple(map(str, range(20))), np.random.default_rng(8)
    series = SeriesFilter(keys, nonnegative=False, base=4.0, weekly=0.05)
    state, total, smoothed, running = None, np.zeros(20), 0.0, 0.0
    for day in range(60):
        values = chance.laplace(0.0, 10.0, 20)
        total += values
        state, seen = series.step(state, values.tolist(), [200.0] * 20, day % 7)
        smoothed += np.abs(seen.point).mean() * (day >= 30)
        running += np.abs(total / (day + 1)).mean() * (day >= 30)
    assert smoothed <= 0.9 * running


def test_a_new_level_under_much_noise_ends_what_was_averaged() -> None:
    """As near as a running mean before it, and .2 of its error after it; .5 with one level."""
    errors, running = np.zeros(200), np.zeros(200)
    for seed in range(10):
        chance, series, state = np.random.default_rng(seed), _of_mean(), None
        truth = np.where(np.arange(200) > 100, 50.0, 0.0)
        values = truth + chance.laplace(0.0, 15.0, 200)
        for day, each in enumerate(values.tolist()):
            state, seen = series.step(state, [each], [450.0], day % 7)
            errors[day] += abs(seen.point[0] - truth[day])
        running += np.abs(np.cumsum(values) / np.arange(1, 201) - truth)
    assert errors[31:100].sum() < 1.05 * running[31:100].sum()
    assert errors[101:].sum() < 0.3 * running[101:].sum()


def _of_mean() -> SeriesFilter:
    return SeriesFilter(("a",), nonnegative=False, base=3.5, weekly=0.05)


def test_a_state_with_one_level_for_all_drifts_goes_on_with_it() -> None:
    """As those of earlier versions."""
    series, state = _of_mean(), None
    for _ in range(20):
        state, _ = series.step(state, [100.0], [2.0], 0)
    earlier = {name: each for name, each in (state or {}).items() if name != "drifting"}
    after, seen = series.step(earlier, [100.0], [2.0], 0)
    assert abs(seen.point[0] - 100) < 0.5
    assert "drifting" in after


def test_noise_of_a_quotient_follows_from_what_was_believed_of_it() -> None:
    """A large noisy value has not the larger noise; a belief that values refute is not followed."""
    numbers = Estimates(*(np.array([each, each]) for each in (100.0, 80.0, 120.0, 100.0)))
    value, doubt, own = np.array([20.0, 40.0]), np.array([4.0, 4.0]), np.array([2.0, 2.0])
    known = noise_of_quotient(value, np.array([10.0, 10.0]), doubt, own, numbers, 50.0)
    assert known[0] == known[1] > 2.0
    stale = noise_of_quotient(
        np.array([1.0, 1.0]), np.array([45.0, 30.0]), doubt, own, numbers, 50.0
    )
    assert stale.max() < known.min()
    first = noise_of_quotient(value, np.full(2, np.nan), np.full(2, np.nan), own, numbers, 50.0)
    assert known[0] < first[0] < first[1]


def test_an_unsure_number_of_records_adds_to_the_noise_of_a_quotient() -> None:
    """At the centre it adds little; far from it, what the number may be off by. Never less."""
    numbers = Estimates(*(np.array([each, each]) for each in (100.0, 60.0, 140.0, 400.0)))
    below, above = ends(np.array([0.0, 30.0]), np.full(2, 4.0), np.full(2, 4.0), numbers)
    assert (below >= 4.0).all()
    assert max(below[0], above[0]) < 1.1 * 4.0
    assert above[1] > 30.0 * (100.0 / 60.0 - 1.0)
    assert 30.0 * (1.0 - 100.0 / 140.0) < below[1] < 4.0 + 30.0 * (1.0 - 100.0 / 140.0)


def test_small_counts_of_a_table_are_known_together() -> None:
    """Forty of .3 under noise of deviation 14, near what 0 errs; each by itself errs by .7."""
    off, zero, held = 0.0, 0.0, 0.0
    for seed in range(4):
        truth = np.random.default_rng(11 + seed).poisson(0.3, (80, 40)).astype(float)
        _, point, lower, upper = run(truth, 10.0, seed)
        off, zero = off + np.abs(point - truth)[30:].sum(), zero + truth[30:].sum()
        held += ((lower <= truth) & (truth <= upper))[30:].mean() / 4
    assert off <= 1.15 * zero
    assert held >= 0.95


def test_large_counts_beside_small_ones_are_not_drawn_to_them() -> None:
    """Ten of 200 beside fifty of .1."""
    means = np.repeat([0.1, 200.0], [50, 10])
    truth = np.random.default_rng(12).poisson(means, (60, 60)).astype(float)
    released, point, _, _ = run(truth, 10.0)
    off = np.abs(point - truth)[30:].mean(axis=0)
    assert off[50:].mean() <= 1.02 * np.abs(released - truth)[30:, 50:].mean()
    assert off[:50].mean() <= 0.3


def test_levels_are_drawn_to_those_of_their_table() -> None:
    """Known ones stay; unknown ones go to where the others are, or to none."""
    level, variance = np.array([5.0] * 20 + [300.0, 60.0, 9.0]), np.array([0.01] * 22 + [100.0])
    mean, left = drawn_together(level, variance)
    assert np.abs(mean[:22] - level[:22]).max() < 0.1
    assert abs(mean[22] - 5.0) < 1.5
    assert (left <= variance + 60.0).all()
    alone, _ = drawn_together(np.array([4.0]), np.array([100.0]))
    assert 0.0 <= alone[0] < 2.5


def test_intervals_of_sums_do_not_trust_that_series_stay() -> None:
    """Sums that vary by chance, beneath noise that hides how much: estimates stay as they are."""
    held, points = [], []
    for doubt in (0.0, DOUBT_OF_STAYING):
        found = [_of_one_sum(seed, doubt) for seed in range(8)]
        held.append(float(np.mean([inside for inside, _ in found])))
        points.append([point for _, point in found])
    assert points[0] == points[1]
    assert held[0] < 0.93 < held[1] < 0.98


def _of_one_sum(seed: int, doubt: float) -> tuple[float, list[float]]:
    """How often the interval holds from the second month on, and the estimates."""
    chance, state, inside, points = np.random.default_rng(seed), None, [], []
    series = SeriesFilter(("",), nonnegative=False, base=100.0, doubt=doubt)
    for day in range(100):
        truth = 400.0 + chance.normal(0.0, 6.5)
        noise = chance.laplace(0.0, 7.0)
        state, seen = series.step(state, [truth + noise], [98.0], day % 7)
        inside.append(bool(seen.lower[0] <= truth <= seen.upper[0]))
        points.append(float(seen.point[0]))
    return float(np.mean(inside[30:])), points


def test_a_first_value_under_much_noise_stays_near_the_guess() -> None:
    """And a clear one is followed, however wrong the guess."""
    guessed = SeriesFilter(("a",), nonnegative=False, base=1.0, guess=(100.0, 100.0**2))
    for noise, low, high in ((1000.0, 90.0, 120.0), (1.0, 899.0, 901.0)):
        _, found = guessed.step(None, [900.0], [noise**2], None)
        assert low < found.point[0] < high
