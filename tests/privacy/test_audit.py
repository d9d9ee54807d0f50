from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import pytest

from streamdp.mechanisms.quantile_tree import sharpness
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.privacy.draws import OperatingSystemEntropy
from tests.privacy.audit import Draw, epsilon_lower_bound
from tests.privacy.quantiles.neighbours import Records, Steps, counts_of, unit_grid

EPSILON = Fraction(1)
CELLS = 5
FAVOURITE = 40.0
"""Prior mass of the favourite cell over any other: near the worst, and still seen in draws."""

SETTINGS = {
    "median": (("1/2",), (4,), {}),
    "quartiles": (("1/4", "1/2", "3/4"), (1, 1, 4), {}),
    "joint quartiles": (("1/4", "1/2", "3/4"), (1, 2, 4), {"branching": 4, "node": "joint"}),
}


def released(name: str, records: Records) -> Draw:
    """One release through the public face, real grains and the system's entropy."""
    targets, favourites, options = SETTINGS[name]
    tree = QuantileTree(tuple(map(Fraction, targets)), EPSILON, unit_grid(CELLS), **options)  # type: ignore[arg-type]
    priors = tuple(
        Steps(tuple(FAVOURITE if cell == favourite else 1.0 for cell in range(CELLS)))
        for favourite in favourites
    )
    entropy, statistic = OperatingSystemEntropy(), counts_of(records)
    return lambda: tree.draw(statistic, priors, entropy)


NEIGHBOURS: tuple[Records, Records] = ((0,), (0, 3))


def both_ways(name: str) -> list[tuple[Draw, Draw]]:
    mine, other = (released(name, records) for records in NEIGHBOURS)
    return [(mine, other), (other, mine)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["median"])
def test_an_audit_finds_no_more_than_epsilon(name: str) -> None:
    """The lower bound from draws alone stays below the claim, on neighbours that lose much."""
    for pair in both_ways(name):
        assert epsilon_lower_bound(pair, 1_000) <= EPSILON


@pytest.mark.long
def test_an_audit_exposes_a_sharpness_three_times_too_high() -> None:
    """The same audit has power: of draws three times as sharp it proves more than epsilon."""
    real = sharpness.Level.sharpness

    def sharper(self: sharpness.Level, targets: tuple[Fraction, ...]) -> Fraction:
        return 3 * real(self, targets)

    with patch.object(sharpness.Level, "sharpness", sharper):
        assert epsilon_lower_bound(both_ways("median")[1], 3_000) > EPSILON


@pytest.mark.long
@pytest.mark.parametrize("name", SETTINGS)
def test_a_long_audit(name: str) -> None:
    """With a hundred thousand draws each the bound comes near the claim and stays below."""
    bounds = [epsilon_lower_bound(pair, 100_000) for pair in both_ways(name)]
    assert max(bounds) <= EPSILON
    assert max(bounds) > 0.6 or name != "median"
