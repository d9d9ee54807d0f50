"""One step of the experts, against the Kalman filter it is where noise is normal."""

from __future__ import annotations

import numpy as np
import pytest

from streamdp.learning.experts.belief.density import Usual
from streamdp.learning.experts.memory.forecast import Change
from streamdp.learning.experts.memory.levels import WIDTHS, Levels
from streamdp.learning.experts.memory.own import own_covariances
from streamdp.types import FloatArray

SIZE = 3
DENSITY = np.array([0.5, 1.0, 0.8])
COMMON = np.full((SIZE, SIZE), 1.0 / SIZE)
USUAL = Usual(DENSITY, COMMON, 0.01)
TARGETS = np.array([0.2, 0.5, 0.9])
OWN = own_covariances(np.array([0.004, 0.01]), TARGETS, USUAL)
INPUTS = np.array([1.0, -0.7])
NINE = 9
NINE_TARGETS = np.arange(1, 10) / 10
NINE_USUAL = Usual(np.ones(NINE), np.full((NINE, NINE), 1.0 / NINE), 0.01)


def levels() -> Levels:
    return Levels.start(np.array([-1.0, 0.0, 1.2]), len(INPUTS), USUAL)


def seen_in_part(width: int) -> tuple[Levels, Change, FloatArray, FloatArray]:
    """Two quantiles observed with normal noise; all weight on one width."""
    before = levels()
    forecast = before.forecast(INPUTS, OWN)
    observe, noise = np.eye(SIZE)[[0, 2]], np.diag([0.01, 0.02])
    values = np.array([-0.4, 1.9])
    means, spreads = [], []
    for mean, spread in zip(forecast.means, forecast.spreads, strict=True):
        gain = spread @ observe.T @ np.linalg.inv(observe @ spread @ observe.T + noise)
        means.append(mean + gain @ (values - observe @ mean))
        spreads.append(spread - gain @ observe @ spread)
    shares = np.zeros((len(forecast.means), len(WIDTHS)))
    shares[:, width] = 1.0
    change = Change.of(forecast, np.array(means), np.array(spreads), shares)
    return before, change, observe, noise


@pytest.mark.parametrize("width", range(len(WIDTHS)))
def test_coefficients_follow_the_kalman_filter(width: int) -> None:
    """Means and covariances of the coefficients are those of the exact filter, then drift."""
    before, after, observe, noise = seen_in_part(width)
    values = np.array([-0.4, 1.9])
    learned = before.learned(after, USUAL, 0.1)
    for k in range(len(before.drifts)):
        prior = before.uncertainties[k]
        mean = before.coefficients[k].ravel()
        design = np.kron(np.eye(SIZE), INPUTS)
        move = WIDTHS[width] ** 2 * before.moves[k] + OWN.sum(axis=0)
        seen = observe @ design
        covariance = seen @ prior @ seen.T + observe @ move @ observe.T + noise
        gain = prior @ seen.T @ np.linalg.inv(covariance)
        exact = mean + gain @ (values - seen @ mean)
        assert learned.coefficients[k].ravel() == pytest.approx(exact, rel=1e-9)
        left = prior - gain @ seen @ prior
        drift = learned.uncertainties[k] - left
        effects = np.arange(SIZE) * 2 + 1
        assert np.abs(drift[np.ix_(effects, effects)]).max() < 1e-9
        assert (np.diag(drift)[::2] > 0.0).all()


def test_own_moves_are_seen_where_quantiles_leave_the_common_directions() -> None:
    """Excess is positive after a surprise in one quantile, negative after none."""
    before = levels()
    forecast = before.forecast(INPUTS, OWN)
    shares = np.full(forecast.spreads.shape[:2], 1.0 / len(WIDTHS))
    tight = forecast.spreads * 1e-3
    still = np.repeat(forecast.means[:, None], len(WIDTHS), axis=1)
    odd = still + np.array([0.0, 3.0, 0.0])
    calm = Change.of(forecast, still, tight, shares).own(TARGETS, DENSITY)
    wild = Change.of(forecast, odd, tight, shares).own(TARGETS, DENSITY)
    assert calm[0].shape == (2, len(before.drifts))
    assert (calm[0] < 0.0).all()
    assert (wild[0] > calm[0]).all()
    assert (wild[1] == calm[1]).all()
    nothing = Change.of(forecast, still, forecast.spreads, shares).own(TARGETS, DENSITY)
    assert np.abs(nothing[0]).max() < 1e-12
    assert np.abs(nothing[1]).max() < 1e-12


def test_neighbours_that_move_alike_are_told_from_one_that_moves_alone() -> None:
    """A move shared by four neighbours speaks for samples that vary, more than one of one does."""
    before = Levels.start(np.zeros(NINE), 1, NINE_USUAL)
    own = own_covariances(np.full(2, 0.01), NINE_TARGETS, NINE_USUAL)
    forecast = before.forecast(np.ones(1), own)
    shares = np.full(forecast.spreads.shape[:2], 1.0 / len(WIDTHS))

    def excess(places: list[int]) -> FloatArray:
        moved = np.repeat(forecast.means[:, None], len(WIDTHS), axis=1)
        moved[..., places] += 0.5 / np.sqrt(len(places))
        after = Change.of(forecast, moved, forecast.spreads * 1e-3, shares)
        return after.own(NINE_TARGETS, NINE_USUAL.density)[0][:, 0]

    together, alone = excess([1, 2, 3, 4]), excess([2])
    assert together[0] > alone[0]
    assert together[1] < alone[1]


def test_moves_grow_along_the_common_directions_alone() -> None:
    """D takes what was seen of shifts; a quantile that moves by itself adds none to others."""
    before = levels()
    forecast = before.forecast(INPUTS, OWN)
    shares = np.full(forecast.spreads.shape[:2], 1.0 / len(WIDTHS))
    shifted = forecast.means[:, None] + 2.0 / DENSITY
    means = np.repeat(shifted, len(WIDTHS), axis=1)
    after = Change.of(forecast, means, forecast.spreads * 1e-3, shares)
    learned = before.learned(after, USUAL, 1.0)
    ranks = USUAL.in_ranks(learned.moves)
    assert np.allclose(COMMON @ ranks @ COMMON, ranks)
    assert (np.trace(ranks, axis1=1, axis2=2) > SIZE * 0.05**2).all()
