"""Which way of drawing errs less is foretold: forecasts that drift, and shapes that do not fit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning import spacing
from streamdp.learning.filters import WIDTHS, Filters
from streamdp.learning.outlook import forecast_error, misfit
from streamdp.priors.shapes import LINEAR, profile
from streamdp.types import FloatArray

QUANTILES = tuple(Fraction(i, 10) for i in range(1, 10))
TARGETS = np.array([float(q) for q in QUANTILES])
PROFILES = [profile(QUANTILES, name) for name in LINEAR]
ROOT = [1, 4, 6]
DAY = np.array([1.0])


def trusting(expert: int, deviation: float = 0.01) -> Filters:
    """Filters that know their levels, trust one expert at width one, and see such deviations."""
    values = 100.0 * profile(QUANTILES, "normal")
    start = Filters.start(TARGETS, values, 100.0, 0, 1.0)
    density = spacing.densities(TARGETS, start.log_gaps)
    moves = np.diag((deviation / density) ** 2)
    weights = np.full_like(start.log_weights, -np.inf)
    weights[expert, np.flatnonzero(WIDTHS == 1.0)] = 0.0
    return replace(
        start,
        log_weights=weights,
        uncertainties=np.zeros_like(start.uncertainties),
        deviations=np.repeat(moves[None], len(start.deviations), 0),
    )


def test_a_level_that_stays_is_off_by_its_deviations() -> None:
    """Known for certain, it leaves what days differ by, whatever the releases say."""
    for noise in (0.001, 0.1):
        assert forecast_error(trusting(0), DAY, TARGETS, noise) == pytest.approx(0.01)


def test_the_last_release_is_off_by_its_noise_too() -> None:
    """Day against day has twice the deviations and the noise of one release."""
    expected = np.sqrt(2 * 0.01**2 + 0.03**2)
    assert forecast_error(trusting(3), DAY, TARGETS, 0.03) == pytest.approx(expected)


@pytest.mark.parametrize(("expert", "drift"), [(1, 0.03), (2, 0.3)])
def test_a_drifting_level_is_off_by_what_a_filter_is(expert: int, drift: float) -> None:
    """The variance foretold is where Kalman's recursion ends."""
    noise, known = 0.03, 0.0
    for _ in range(1000):
        predicted = known + drift
        known = predicted - predicted**2 / (predicted + 1.0 + (noise / 0.01) ** 2)
    expected = 0.01 * np.sqrt(1.0 + known + drift)
    found = forecast_error(trusting(expert), DAY, TARGETS, noise)
    assert found == pytest.approx(expected)


def test_a_level_that_is_not_known_yet_is_off_by_that() -> None:
    start = Filters.start(TARGETS, 100.0 * profile(QUANTILES, "normal"), 100.0, 0, 1.0)
    assert forecast_error(start, DAY, TARGETS, 0.01) > 0.5


@pytest.mark.parametrize("values", PROFILES)
def test_a_shape_that_is_believed_in_fits(values: FloatArray) -> None:
    """At any place and spread."""
    assert misfit(spacing.log_gaps(5.0 + 300.0 * values, 0.01), TARGETS, ROOT, PROFILES) < 1e-9


def test_a_shape_that_nobody_believes_in_does_not_fit() -> None:
    """Records in two heaps: filled in, quantiles lie between the heaps where nobody is."""
    values = np.concatenate((np.arange(5.0), 1000.0 + np.arange(4.0)))
    gaps = spacing.log_gaps(values, 0.01)
    assert misfit(gaps, TARGETS, ROOT, PROFILES) > 0.02
    assert misfit(gaps, TARGETS, list(range(9)), PROFILES) == pytest.approx(0.0)
    assert misfit(gaps, TARGETS, ROOT, []) == 0.0
