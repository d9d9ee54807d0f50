"""Keys at a price in rho lose it, but with chance delta, on tiny neighbours; mistakes are seen."""

from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from streamdp.kinds.keys import kind as kinds
from streamdp.mechanisms import key_selection
from streamdp.mechanisms.key_selection import GaussianThreshold
from streamdp.mechanisms.noise import GaussianNoise
from streamdp.types import Neighbours, UnitBound
from tests.contract.memory import keys as memory
from tests.privacy.keys.rho import keys, largest_losses

SLACK = 1 + 1e-9


@pytest.mark.thinned(4)
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_more_or_another_costs_rho_but_with_chance_delta(
    rows: int, neighbours: Neighbours
) -> None:
    """Whatever it holds: known keys, keys at the border, below it and above it; and hardly less."""
    delta, rho = largest_losses(keys(rows, neighbours))
    assert 0.5 / rows <= delta <= SLACK
    assert 0.5 <= rho <= SLACK


@pytest.mark.long
def test_a_border_for_one_key_of_several_is_seen() -> None:
    """Deltas of a unit's keys add up."""
    distance = key_selection._distance

    def near(squared: Fraction, delta: Fraction) -> int:
        return distance(squared, delta * 2)

    with patch.object(key_selection, "_distance", near):
        assert largest_losses(keys(rows=2))[0] > 1.05


def test_noise_for_one_key_of_several_is_seen() -> None:
    """A unit with two known keys, or two that are not, moves two numbers."""

    def noise(self: GaussianThreshold) -> GaussianNoise:
        return GaussianNoise(self.rho, 1, 1)

    with patch.object(GaussianThreshold, "noise", property(noise)):
        assert largest_losses(keys(rows=2))[1] > 1.5


def test_a_border_that_is_off_by_one_is_seen() -> None:
    """Keys that are asked of more units than the coins take to be the least."""
    plan = kinds.Keys.plan

    def off(self: kinds.Keys, state: Any, batch: Any) -> Any:
        made = plan(self, state, batch)
        query: Any = made.query
        return replace(made, query=replace(query, least=self.at_least + 1))

    with patch.object(kinds.Keys, "plan", off):
        assert largest_losses(keys())[0] > 1.02


@pytest.mark.long
def test_units_that_are_counted_before_they_are_bounded_are_seen() -> None:
    """A unit of three keys, each of which counts."""
    keys_of = memory.keys_of

    def unbounded(query: Any, records: Any) -> Any:
        return keys_of(replace(query, bound=UnitBound("u", 1000)), records)

    with patch("tests.privacy.keys.rho.keys_of", unbounded):
        assert max(largest_losses(keys())) > 1.5
