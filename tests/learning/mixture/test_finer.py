"""Finer moves about the likeliest curve: a batch between two moves is not in doubt."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.mixture.belief import BROAD, FINER, FIRST, Belief, with_finer_moves
from streamdp.learning.mixture.curves import MOVES, SIZES, Curves, broad_curves, first_weights
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.records import RecordsPrior
from streamdp.types import FloatArray, Grid

LEVELS = np.linspace(0.001, 0.999, 200)
SHAPE = Distribution.about(-1000.0 * np.log1p(-LEVELS), LEVELS)
BROAD_CURVES = broad_curves(Grid(Fraction(1), -(10**6), 10**6), (0.0, 1000.0))
WEIGHTS = np.concatenate(
    (0.97 * first_weights(), np.full(len(BROAD_CURVES.moves), 0.03 / len(BROAD_CURVES.moves)))
)
BETWEEN = np.array([[1.1, 0.1]])
"""A shift and a stretch that no move has."""


def prior(releases: int) -> Belief:
    """All moves of one shape."""
    grid = Grid(Fraction(1), -(10**6), 10**6)
    groups = {"usual": Curves(SHAPE, MOVES), BROAD: BROAD_CURVES}
    sizes = np.full(len(SIZES), 1.0 / len(SIZES))
    return Belief(grid, groups, WEIGHTS, sizes, RecordsPrior.expected(10**5), releases)


def shown() -> Evidence:
    """Deciles of the batch between two moves, hardly noisy."""
    moved = Curves(SHAPE, BETWEEN)
    cells = np.rint(moved.quantiles(np.arange(1, 10) / 10.0)[0])
    return Evidence(cells, moved.cdf(cells)[0], 1e-8 * np.eye(9), 1e5, 1e-8)


def test_a_batch_between_two_moves_is_known_between_the_cuts_too() -> None:
    """Its size is small, and intervals between the cuts are half as wide, around the truth."""
    targets = np.arange(1, 9) / 10.0 + 0.05
    truth = Curves(SHAPE, BETWEEN).quantiles(targets)[0]
    found = {}
    for releases in (FIRST - 1, FIRST):
        after = prior(releases).after(shown())
        low, high = after.posterior.interval(targets, 0.95)
        assert (low <= truth).all()
        assert (truth <= high).all()
        found[releases] = np.median(high - low), after.size_weights @ SIZES
    (wide, large), (narrow, small) = found[FIRST - 1], found[FIRST]
    assert narrow < wide / 2.0
    assert small < large / 2.0


def test_finer_curves_are_parts_of_the_likeliest() -> None:
    """They have half of its weight, and what is learned is learned of the curves that were."""
    before = prior(FIRST)
    finer, parents, _ = with_finer_moves(before, shown())
    best = parents[before.learned_count]
    assert MOVES[best][0] in (0.8, 1.5)
    assert np.bincount(parents, finer.weights) == pytest.approx(before.weights)
    assert finer.weights[best] == pytest.approx(before.weights[best] / 2.0)
    assert [*finer.groups] == ["usual", FINER, BROAD]
    after = before.after(shown())
    assert after.weights.shape == before.weights.shape
    assert after.weights.sum() == pytest.approx(1.0)


def test_nothing_is_finer_where_a_release_shows_no_move() -> None:
    """Of one or two cells, and of batches that curves about the guess explain."""
    before, seen = prior(FIRST), shown()
    few = Evidence(seen.cells[:2], seen.y[:2], seen.noise[:2, :2], 1e5, 1e-8)
    assert with_finer_moves(before, few)[0] is before

    far = replace(before, weights=_only_broad())
    assert with_finer_moves(far, seen)[0] is far


def _only_broad() -> FloatArray:
    weights = WEIGHTS.copy()
    weights[: len(MOVES)] = 1e-300
    return np.asarray(weights / weights.sum())
