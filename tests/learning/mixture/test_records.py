"""How many records a batch has: intervals hold it, and empty batches are told from small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from streamdp.learning.mixture.records import Number, RecordsPrior

BINS, DAYS = 10, 60

STREAMS: dict[str, Callable[[np.random.Generator, int], int]] = {
    "steady": lambda chance, day: int(chance.poisson(900)),
    "uneven": lambda chance, day: int(900 * np.exp(0.3 * chance.normal())),
    "weekends": lambda chance, day: int(chance.poisson(450 if day % 7 > 4 else 900)),
    "grows": lambda chance, day: int(chance.poisson(500 * 1.02**day)),
    "empty now and then": lambda chance, day: int(chance.poisson(900)) * (day % 15 != 14),
    "shrinks for good": lambda chance, day: int(chance.poisson(900 if day < 25 else 250)),
    "thrice the guess": lambda chance, day: int(chance.poisson(2700)),
}


def numbers(
    stream: Callable[[np.random.Generator, int], int], deviation: float, seed: int
) -> Iterator[tuple[int, Number]]:
    """The number of records of each day, and what its noisy total says of it."""
    chance, known = np.random.default_rng(seed), RecordsPrior.expected(900)
    scale = deviation / np.sqrt(2.0 * BINS)
    for day in range(DAYS):
        true = stream(chance, day)
        total = true + chance.laplace(0.0, scale, BINS).sum()
        number = Number.of(known, [total], [deviation**2])
        known = RecordsPrior.from_json(known.updated(number, day + 2).to_json())
        yield true, number


@pytest.mark.thinned(3)
@pytest.mark.parametrize("deviation", [2.0, 10.0, 40.0, 150.0])
@pytest.mark.parametrize("name", STREAMS)
def test_intervals_hold_the_number_and_are_no_wider_than_noise(name: str, deviation: float) -> None:
    """At .95 of 480 days, with room for chance; `width` is over that of the noise alone."""
    found = [each for seed in range(8) for each in numbers(STREAMS[name], deviation, seed)]
    ends = np.array([each.interval() for _, each in found])
    true = np.array([each for each, _ in found])
    assert ((ends[:, 0] <= true) & (true <= ends[:, 1])).mean() > 0.9
    assert np.mean(ends[:, 1] - ends[:, 0]) < 1.1 * 2 * 1.96 * deviation
    points = np.array([each.point for _, each in found])
    assert np.abs(points - true).mean() < deviation


@pytest.mark.parametrize(("deviation", "seen"), [(2.0, 1.0), (10.0, 1.0), (40.0, 0.85)])
def test_empty_days_are_seen_and_no_others(deviation: float, seen: float) -> None:
    """Of those in a noise of a twentieth of the records nearly all; the days after are usual."""
    name = "empty now and then"
    found = [each for seed in range(8) for each in numbers(STREAMS[name], deviation, seed)]
    assert np.mean([number.hardly_any for true, number in found if not true]) >= seen
    assert not any(number.hardly_any for true, number in found if true)
    assert all(number.p_usual > 0.5 for true, number in found if true > 700)


def test_a_stream_that_has_shrunk_for_good_is_followed() -> None:
    """Within ten days its days are usual ones again."""
    known = RecordsPrior.expected(900)
    for day in range(60):
        total = 900.0 if day < 40 else 90.0
        number = Number.of(known, [total], [25.0])
        known = known.updated(number, day + 2)
        if day == 40:
            assert number.p_usual < 0.1
        if day >= 50:
            assert number.p_usual > 0.5


def test_a_release_without_counts_teaches_nothing() -> None:
    """Drawn quantiles do not tell how many records there were."""
    known = RecordsPrior.expected(100)
    assert known.updated(None, 1) == known


def test_a_state_of_three_numbers_is_read() -> None:
    """Those of states from before there was a posterior."""
    assert RecordsPrior.from_json([90.0, 400.0, 20.0]) == RecordsPrior(90.0, 400.0)


@pytest.mark.parametrize("total", [-1e15, -3.0, 0.0, 1e15])
@pytest.mark.parametrize("variance", [0.0, 1e-300, 2.0, 1e14])
@pytest.mark.parametrize("mean", [1.0, 1e9])
def test_any_total_has_a_posterior(total: float, variance: float, mean: float) -> None:
    """Finite, a law, and its interval in order."""
    number = Number.of(RecordsPrior(mean, (0.02 * mean) ** 2), [total], [variance])
    low, high = number.interval()
    assert np.isfinite(number.weights).all()
    assert number.weights.sum() == pytest.approx(1.0)
    assert 0.0 <= low <= number.point <= high
    assert 0.0 <= number.p_usual <= 1.0
    assert np.isfinite([number.mean, number.variance, number.extra_sampling_variance]).all()
    assert number.mean >= 1.0
