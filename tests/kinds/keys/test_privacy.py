"""The production draw of keys is private on all tiny neighbours, and broken ones are caught."""

from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest

from streamdp.kinds.keys import kind as kinds
from streamdp.mechanisms.key_selection import selection_at
from streamdp.types import Neighbours, UnitBound
from tests.contract.memory import keys as memory
from tests.kinds.keys.worlds import DELTA, keys, largest_delta

SLACK = 1 + 1e-9


@pytest.mark.thinned(4)
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_more_or_another_costs_epsilon_and_delta(
    rows: int, neighbours: Neighbours
) -> None:
    """Whatever the unit holds: known keys, keys at the threshold, below it and above it."""
    found = largest_delta(keys(rows, neighbours))
    assert found <= float(DELTA) * SLACK
    assert found >= float(DELTA) / (4 * rows), "the worst neighbours are among them"


def test_a_threshold_that_is_off_by_one_is_caught() -> None:
    """Keys that are asked of more units than the coins take to be the least."""
    plan = kinds.Keys.plan

    def off(self: kinds.Keys, state: Any, batch: Any) -> Any:
        made = plan(self, state, batch)
        query: Any = made.query
        return replace(made, query=replace(query, least=self.at_least + 1))

    with patch.object(kinds.Keys, "plan", off):
        assert largest_delta(keys()) > float(DELTA) * SLACK


@pytest.mark.long
def test_a_known_key_that_spends_is_caught() -> None:
    """A key that is counted, and for which a coin is tossed as well."""
    plan = kinds.Keys.plan

    def twice(self: kinds.Keys, state: Any, batch: Any) -> Any:
        made = plan(self, state, batch)
        return replace(made, mechanism=Twice(made.mechanism))

    class Twice:
        """Counts keys by their place, and knows none of them by name."""

        def __init__(self, of: kinds.KeysPlan) -> None:
            self.of, self.reads = of, 0

        def __getattr__(self, name: str) -> Any:
            if name == "known" and not self.reads:
                self.reads = 1
                return ()
            return getattr(self.of, name)

    with patch.object(kinds.Keys, "plan", twice):
        assert largest_delta(keys()) > float(DELTA) * SLACK


@pytest.mark.long
def test_units_that_are_counted_before_they_are_bounded_are_caught() -> None:
    """A unit of three keys, each of which counts."""
    keys_of = memory.keys_of

    def unbounded(query: Any, records: Any) -> Any:
        return keys_of(replace(query, bound=UnitBound("u", 1000)), records)

    with patch("tests.kinds.keys.worlds.keys_of", unbounded):
        assert largest_delta(keys()) > float(DELTA) * SLACK


def test_a_delta_that_each_key_has_for_itself_is_caught() -> None:
    """Of a unit with two keys the deltas add up."""

    def whole(price: Any, delta: Fraction, count: int, at_least: int, **more: Any) -> Any:
        return selection_at(price, delta * count, count, at_least, **more)

    with patch.object(kinds, "selection_at", whole):
        assert largest_delta(keys(rows=2)) > float(DELTA) * SLACK
