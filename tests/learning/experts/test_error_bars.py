"""Intervals of what is believed: they hold the truth, and doubt what was seldom seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from streamdp.learning.experts.belief import Known
from streamdp.learning.experts.doubt import doubted
from streamdp.learning.experts.evidence import Evidence
from streamdp.learning.experts.mixture import Planned
from streamdp.learning.experts.width_of_rank import width_of_rank
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from tests.learning.experts.worlds import DECILES, ROWS, WIDE, batch, kind, run, truth

TAIL = Fraction(9, 10), Fraction(95, 100), Fraction(99, 100)
NOISE = 40.0
"""Variance of a count."""


@pytest.mark.parametrize("targets", [DECILES, TAIL], ids=["deciles", "tail"])
def test_intervals_hold_quantiles_of_two_humps_that_the_guess_does_not_know(
    targets: tuple[Fraction, ...],
) -> None:
    """Of values and of smoothed ones, at little epsilon; the belief alone held less than half."""
    random = np.random.default_rng(3)
    sides = [np.where(random.random(ROWS) < 0.35, -3.0, 3.0) for _ in range(24)]
    batches = [batch(each + 0.5 * random.normal(size=ROWS)) for each in sides]
    made = kind(targets, Fraction(1, 10))
    rows, _ = run(made, batches)
    held = [
        [
            row["lower"] <= true <= row["upper"],
            row["smoothed_lower"] <= true <= row["smoothed_upper"],
        ]
        for counts, each in zip(batches[4:], rows[4:], strict=True)
        for true, row in zip(truth(made, counts) / 100.0, each, strict=True)
    ]
    assert np.mean(held, axis=0).min() >= 0.93


def known(releases: int, noise: float = NOISE) -> tuple[Planned, Known, Known]:
    """What is believed after one more release, as it is and with doubt, as if after so many."""
    made, random = kind(TAIL), np.random.default_rng(7)
    _, state = run(made, [batch(random.normal(size=ROWS)) for _ in range(3)])
    way = made.learner.way(state)
    assert way is not None
    planned: Planned = way.planned
    belief = replace(planned.belief, releases=releases)
    cuts = np.array([-100.0, 0.0, 100.0, 250.0])
    shares = np.array([0.16, 0.5, 0.84, 0.993])
    below = np.tri(4, 5) - shares[:, None]
    covariance = below @ below.T * noise / ROWS**2
    evidence = Evidence(cuts, shares, covariance, float(ROWS), noise / ROWS**2)
    after = belief.after(evidence)
    return planned, after.known, doubted(belief, evidence, after)


def test_few_releases_leave_more_doubt_than_many() -> None:
    """And many leave more than none: a belief may be surer than what it rests on."""
    one, many = known(1), known(50)
    target = np.array([0.9])
    low, high = one[2].ends(target, 2.0)
    lower, upper = many[2].ends(target, 2.0)
    first, last = many[1].ends(target, 2.0)
    assert low < lower <= first
    assert last <= upper < high


def test_an_outer_interval_reaches_beyond_the_last_place_where_records_are_believed() -> None:
    """Noise hides some that may lie there; what is believed alone ends with those of a thousand."""
    target, (_, believed, wide) = np.array([0.99]), known(50)
    assert believed.ends(target, 2.0)[1] <= believed.cells[-1] + 1.0
    assert wide.ends(target, 2.0)[1] > believed.cells[-1] + 1.0


def test_values_of_a_single_quantile_tell_the_width_of_a_rank_once_there_are_some() -> None:
    """Twice as far from each other, they tell of twice the width."""
    tree = QuantileTree((Fraction(1, 2),), Fraction(1, 2), WIDE)
    values = np.random.default_rng(2).normal(size=30)
    wide = width_of_rank(tree, ROWS, (values * 2.0).tolist())
    assert wide == pytest.approx(2.0 * width_of_rank(tree, ROWS, values.tolist()))
    assert width_of_rank(tree, ROWS, values[:5].tolist()) == 0.0
    assert wide > 0.0


def test_a_single_quantile_whose_guess_is_far_too_narrow_is_held_by_what_past_values_show() -> None:
    """Six times as wide as the guess; the least width that was looked at held few of them."""
    made, random = kind((Fraction(1, 2),)), np.random.default_rng(4)
    batches = [batch(6.0 * random.normal(size=ROWS)) for _ in range(30)]
    rows, _ = run(made, batches)
    held = [
        row["lower"] <= truth(made, counts)[0] / 100.0 <= row["upper"]
        for counts, (row,) in zip(batches[6:], rows[6:], strict=True)
    ]
    assert np.mean(held) >= 0.93
