from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.experts.belief.belief import Belief
from streamdp.learning.experts.drawing.ways import MEAN_ABSOLUTE, Turn
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import Grid

QUANTILES = tuple(Fraction(index, 10) for index in range(1, 10))
WHOLE = QuantileTree(QUANTILES, Fraction(1), Grid(Fraction(1, 100), -10_000, 10_000))
TURN = Turn.of(WHOLE, (1, 4, 7), 100)
FLAT = np.ones(9)
"""Density of a batch spread evenly over one unit."""


def belief(*deviations: float, weights: tuple[float, ...] = (1.0,)) -> Belief:
    """Parts that know each quantile alone, to some ranks."""
    parts = np.array([np.eye(9) * deviation**2 for deviation in deviations])
    return Belief(
        np.log(np.array(weights)), np.tile(np.arange(1, 10) / 10.0, (len(parts), 1)), parts
    )


def test_what_is_foretold_is_the_belief_where_noise_is_large_and_noise_where_it_is_not() -> None:
    """Quantiles alone: those drawn err as their noise and the belief together, others as it."""
    blind = Turn.of(WHOLE, (1, 4, 7), 1)
    assert blind.error(belief(1e-3), FLAT, 1.0, 0.0) == pytest.approx(
        MEAN_ABSOLUTE * 1e-3, rel=0.01
    )
    sharp = Turn.of(WHOLE, tuple(range(9)), 10**6)
    assert sharp.error(belief(10.0), FLAT, 1.0, 0.0) < 1e-4


def test_a_part_that_expects_anything_counts_by_its_weight() -> None:
    """The variance of the mixture is a hundred times larger; what is foretold is not."""
    alone = TURN.error(belief(0.02), FLAT, 0.05**2, 0.0)
    with_wild = TURN.error(belief(0.02, 20.0, weights=(0.99, 0.01)), FLAT, 0.05**2, 0.0)
    assert alone < with_wild < 1.03 * alone


def test_a_smooth_law_bounds_what_is_inferred_and_what_was_missed_is_its_least() -> None:
    """Nothing is believed: six inferred quantiles err by the law; by what was seen if larger."""
    bounded = TURN.error(belief(50.0), FLAT, 0.05**2, 0.0)
    assert MEAN_ABSOLUTE * 6 / 9 * 0.05 < bounded < MEAN_ABSOLUTE * (6 / 9 * 0.05 + 3 / 9 * 0.06)
    sure = TURN.error(belief(1e-6), FLAT, 0.05**2, 0.03**2)
    assert sure == pytest.approx(MEAN_ABSOLUTE * 6 / 9 * 0.03, rel=0.01)
    every = Turn.of(WHOLE, tuple(range(9)), 100)
    assert every.error(belief(1e-6), FLAT, 0.05**2, 0.03**2) < 1e-5


def test_less_noise_is_foretold_to_err_less() -> None:
    """Twice the records, and nothing else."""
    twice = replace(TURN, draws=Turn.of(WHOLE, TURN.targets, 200).draws)
    args = belief(0.05), FLAT, 0.05**2, 0.0
    assert twice.error(*args) < 0.95 * TURN.error(*args)
