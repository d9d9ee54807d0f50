"""Posterior of the width of a rank: from a guess at first, then from how values differ."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.kinds.quantiles.error_bars.intervals import _between_piles
from streamdp.kinds.quantiles.error_bars.width_of_rank import widths
from streamdp.types import FloatArray

ROWS, NOISE = 1000, 0.02
"""Records of a batch, and the deviation of a rank."""


def median(values: FloatArray, guess: float = 1.0) -> float:
    """Of the posterior after some values."""
    noise = NOISE * np.random.default_rng(1).normal(size=400)
    found = widths(0.5, ROWS, 1e-9, np.array([guess / 2.0, guess * 2.0]), noise, values.tolist())
    return float(found.at(np.array([0.5]))[0])


def released(width: float, count: int = 40) -> FloatArray:
    """Values of batches that stay, as noise and samples have them."""
    deviation = np.hypot(NOISE, np.sqrt(0.25 / ROWS))
    values: FloatArray = width * deviation * np.random.default_rng(2).normal(size=count)
    return values


def test_one_value_leaves_the_guess_and_many_tell_the_width() -> None:
    """Thirty times as wide, and as narrow; at first the middle of .4 to 10 guesses."""
    assert median(released(1.0, 1)) == pytest.approx(2.0, rel=0.15)
    for width in (1.0 / 30.0, 1.0, 30.0):
        assert median(released(width)) == pytest.approx(width, rel=0.4)


def test_a_jump_and_a_drift_are_not_taken_for_noise() -> None:
    """A shift by a thousand deviations, and drifts of one, forty and four thousand a batch."""
    still = released(1.0)
    jumped = still + 30.0 * (np.arange(40) > 20)
    drifting = [still + slope * np.arange(40) for slope in (0.02, 1.0, 100.0)]
    for values in (jumped, *drifting):
        assert median(values) == pytest.approx(median(still), rel=0.5)


def test_a_walk_that_moves_far_more_than_noise_leaves_the_guess() -> None:
    """By fifty deviations a batch: were that noise, a rank would be fifty times as wide."""
    walk = np.cumsum(np.random.default_rng(3).normal(size=40))
    assert median(released(1.0) + walk) < 4.0


def test_a_value_between_piles_may_belong_to_either_and_one_at_a_pile_does() -> None:
    """Whole numbers on a fine grid: values that repeat are those that many records have."""
    piles = [31.0] * 6 + [32.0] * 6
    spread = [30.0 + each / 7.0 for each in range(1, 20)]
    assert _between_piles(np.array([*spread, *piles, 31.4]), 0.001).ravel().tolist() == [31.0, 32.0]
    assert _between_piles(np.array([*spread, *piles, 31.0]), 0.001).ravel().tolist() == [
        np.inf,
        -np.inf,
    ]
    assert _between_piles(np.array([*spread, 31.4]), 0.001).ravel().tolist() == [np.inf, -np.inf]
