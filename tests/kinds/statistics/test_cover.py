"""Intervals of moments hold where noise tells little, within bounds, and in unlike groups."""

from __future__ import annotations

from fractions import Fraction

import pytest

from streamdp.privacy.price import Price
from tests.benchmarks.calibration_kinds import statistics, values

STREAMS = {each.name: each for each in values.development()}


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("name", "moment", "epsilon"),
    [
        ("tiny", "mean", "0.1"),
        ("tiny", "sum", "0.1"),
        ("normal", "variance", "0.01"),
        ("groups of 10 to 2,000", "mean", "1"),
        ("groups of 10 to 2,000", "sum", "0.01"),
        ("rate", "mean", "0.01"),
        ("bounds that clip", "variance", "0.01"),
    ],
)
def test_intervals_hold_where_they_once_did_not(name: str, moment: str, epsilon: str) -> None:
    """Each held between .04 and .8 of sixty batches."""
    for row in statistics.of_moment(STREAMS[name], moment, Price(Fraction(epsilon)), 40):
        assert float(row["coverage"] or 0) >= 0.9, row


def test_within_bounds_nothing_is_said_to_be_hidden() -> None:
    """Values of 0 and 1 cannot lie beyond a reach that covers both."""
    rows = statistics.of_moment(STREAMS["rate"], "sum", Price(Fraction(1)), 40)
    assert all(float(row["width_ratio"] or 9) < 2.0 for row in rows)


def test_an_unsure_number_of_records_does_not_multiply_the_width_of_a_mean() -> None:
    """It once did: 18.6 times what is needed, of which what clipping may hide is about half."""
    _, smoothed = statistics.of_moment(STREAMS["normal"], "mean", Price(Fraction("0.1")), 60)
    assert float(smoothed["width_ratio"] or 99) < 14.0, smoothed
