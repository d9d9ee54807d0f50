"""Clipping follows what was released, and believes the guess where noise hides a tail."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.mechanisms.clip import DISTANCES, Clip

SKEWED = [500, 250, 120, 60, 30, 20, 12, 6, 2]
"""Records by distance of a column with a long tail."""


def seen(noise: float, days: int = 60) -> Clip:
    chance, clip = np.random.default_rng(1), Clip.first(0, 160, 40.0)
    for _ in range(days):
        released = np.rint(np.array(SKEWED) + chance.normal(0.0, noise, DISTANCES)).astype(int)
        clip = clip.observed(released.tolist(), noise**2)
    return clip


def test_shares_are_a_law_and_those_that_are_seen_where_noise_is_little() -> None:
    """Within a hundredth of the true shares."""
    shares = seen(1.0).shares()
    assert np.abs(shares - np.array(SKEWED) / sum(SKEWED)).max() < 0.01
    for noise in (0.1, 100.0, 1e9):
        for falling in (False, True):
            found = seen(noise).shares(falling=falling)
            assert (found >= 0.0).all()
            assert abs(found.sum() - 1.0) < 1e-9


def test_pooled_numbers_fall_and_keep_their_sum() -> None:
    """Numbers that are sure stay as they are."""
    clip = Clip(0, 100, 10, 30.0, (1.0, 9.0, 500.0, 3.0, 7.0, -40.0, 60.0, 0.0, 8.0), 400.0)
    found = clip.falling()
    assert found[:3].tolist() == [1.0, 9.0, 500.0]
    assert sum(found) == pytest.approx(548.0)
    assert (np.diff(found[3:]) <= 1e-9).all()
