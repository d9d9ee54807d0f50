"""At most k records of a unit: a unit's records decide about nothing but themselves."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.errors import ConfigurationError
from streamdp.types import Batch, CellQuery, Grid, UnitBound
from tests.contract.memory.engine import MemoryBackend

GRID = Grid(Fraction(1), 0, 20)
Records = list[tuple[str, int]]

units = st.sampled_from(["ann", "bob", "eve"])
records = st.lists(st.tuples(units, st.integers(0, 20)), max_size=40)


def counted(rows: Records, k: int, key: str = "") -> Counter[int]:
    columns: dict[str, list[Any]] = {"u": [unit for unit, _ in rows], "x": [x for _, x in rows]}
    found = MemoryBackend(columns).answer(
        CellQuery("x", GRID, bound=UnitBound("u", k, key)), Batch("s", "b")
    )
    return Counter(dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True)))


@given(records, st.lists(st.integers(0, 20), max_size=30), st.integers(1, 5))
def test_one_unit_more_adds_at_most_k_counts(rows: Records, own: list[int], k: int) -> None:
    """And takes none away: what others count stays as it was."""
    without = counted(rows, k)
    both = counted(rows + [("zoe", x) for x in own], k)
    assert without <= both
    added = both - without
    assert added.total() == min(k, len(own))
    assert added == counted([("zoe", x) for x in own], k)


@given(records, st.randoms(use_true_random=False), st.integers(1, 5))
def test_the_order_of_the_records_means_nothing(rows: Records, chance: object, k: int) -> None:
    """Engines scan in any order."""
    shuffled = list(rows)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert counted(shuffled, k) == counted(rows, k)


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": ("g",), "groups": (("a",), ("b",), ("a",))},
        {"by": ("g", "h"), "groups": (("a",),)},
        {"by": ("g",)},
    ],
)
def test_groups_are_disjoint_by_construction(wrong: dict[str, Any]) -> None:
    """One that stands twice would count its records twice for one price."""
    with pytest.raises(ConfigurationError):
        CellQuery("x", GRID, **wrong)


@pytest.mark.parametrize("rows", [0, -1, 1001])
def test_a_bound_is_a_number_that_bounds(rows: int) -> None:
    with pytest.raises(ConfigurationError):
        UnitBound("u", rows)


def test_every_record_has_the_same_chance() -> None:
    """Over keys, each of eleven records is among three about 3/11 of the time, ties or none.

    A rule that took the first, or drew among distinct values, would be off by half and more.
    """
    values = [0, 0, 0, 0, 0, 0, 3, 5, 5, 9, 20]
    keys = 1000
    found = sum(
        (counted([("ann", x) for x in values], 3, str(key)) for key in range(keys)), Counter()
    )
    for x, times in Counter(values).items():
        expected = keys * 3 * times / len(values)
        assert abs(found[x] - expected) < 5 * np.sqrt(expected)
