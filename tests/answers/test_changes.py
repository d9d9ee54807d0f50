"""Comparisons: what does not change is seldom called a change, and what does is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from streamdp.answers.changes import _bridged, changed_lately, quantile_change, shift
from streamdp.answers.regression import BatchHistory, bridge
from tests.answers.worlds import days

WEEKS = [(np.arange(14, 42), np.arange(42, 70))]


def compared(by: float, seed: int) -> tuple[float, float, float]:
    chance = np.random.default_rng(500 + seed)
    own = chance.normal(0.0, 30.0, 70)
    made = BatchHistory(
        days([(by if day >= 42 else 0.0) + own[day] for day in range(70)], seed).batches
    )
    scales, (one, other) = made.fitted(), WEEKS[0]
    found = quantile_change(made, scales, one, other, 0.5)
    whole = shift(made, scales, one, other)
    assert found.lower <= found.change <= found.upper
    return found.changed, whole.changed, whole.change


@pytest.mark.parametrize("pairs", [4, pytest.param(40, marks=pytest.mark.long)])
def test_no_change_is_called_one_seldom(pairs: int) -> None:
    """Of pairs of four weeks without a change few are above 95 in 100."""
    found = np.array([compared(0.0, seed)[:2] for seed in range(pairs)])
    assert (found > 0.95).mean(axis=0).max() <= 0.15


@pytest.mark.parametrize("pairs", [4, pytest.param(40, marks=pytest.mark.long)])
def test_a_tenth_of_a_spread_is_found_and_measured(pairs: int) -> None:
    """Four weeks against four."""
    found = np.array([compared(100.0, seed) for seed in range(pairs)])
    assert (found[:, 1] > 0.95).mean() >= 0.85
    assert abs(found[:, 2].mean() - 100.0) < 20.0


def test_a_change_is_no_part_of_how_far_days_that_are_alike_differ() -> None:
    """The deviation that a shift of four weeks is judged by is that of the same days without it.

    It is known by 56 days, less a mean of each period and of each weekday.
    """
    own, deviations = np.random.default_rng(501).normal(0.0, 30.0, 70), []
    for by in (0.0, 100.0):
        made = BatchHistory(days((own + by * (np.arange(70) >= 42)).tolist(), 1).batches)
        found = shift(made, made.fitted(), *WEEKS[0])
        deviations.append(found.change / stdtrit(56 - 8, found.rose))
    assert deviations[1] < 1.1 * deviations[0]


def test_what_weekdays_have_of_their_own_is_no_change() -> None:
    """Weeks have it alike: a shift by a fifth of a spread is sure though Sundays lie far off.

    Quantiles are whole cells, and so are the ends of the interval of how far they lie apart.
    """
    centres = [600.0 * (day % 7 == 6) + 200.0 * (day >= 42) for day in range(70)]
    made = BatchHistory(days(centres, 0).batches)
    scales, (one, other) = made.fitted(), (np.arange(35, 42), np.arange(42, 49))
    found = quantile_change(made, scales, one, other, 0.5)
    assert found.changed > 0.99
    assert shift(made, scales, one, other).changed > 0.99
    assert all(each == round(each) for each in (found.lower, found.change, found.upper))


def test_a_shift_of_the_last_days_is_told_with_its_sign() -> None:
    """Up and down; without one, and where the least change is larger, nothing is told."""
    for by in (500.0, -500.0, 0.0):
        centres = [2000.0 + (by if day >= 40 else 0.0) for day in range(47)]
        made = BatchHistory(days(centres, 7).batches)
        scales = made.fitted()
        assert changed_lately(made, scales, 0.5, 0.1, 0.99) == np.sign(by)
        assert changed_lately(made, scales, 0.5, 0.5, 0.99) == 0
        few = BatchHistory(made.batches[-12:])
        assert changed_lately(few, scales, 0.5, 0.1, 0.99) == 0


@pytest.mark.parametrize("many", [1, 2, 50])
def test_a_bridge_is_weighed_as_by_the_matrix_of_all_pairs(many: int) -> None:
    """Also where cuts lie at one place, or at an end."""
    chance = np.random.default_rng(many)
    cuts, weights = chance.random(many), chance.normal(size=(3, many))
    cuts[: many // 3], cuts[many // 2] = cuts[0], 1.0
    assert _bridged(cuts, weights) == pytest.approx(
        weights @ bridge(cuts[:, None], cuts) @ weights.T
    )
