"""One record of a unit that has others: streams that differ in it lose what statements say.

Which of a unit's records count may change with one of them: that is a unit in other records, two
steps under `add-remove`. Counts of cells, with the bound and the noise of production.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

from streamdp.config.privacy import Unit
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.counts import Count
from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import Caps
from streamdp.privacy.price import Price
from streamdp.reports.statement import _differences
from streamdp.types import Batch, Dimension, Neighbours, UnitBound
from tests.contract.memory.engine import MemoryBackend
from tests.privacy.noise.statistics import Hidden, hidden, loss_between

BATCHES = Batch("s", "one"), Batch("s", "other")
CELLS = Count("cells", Dimension("x", cuts=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)))
NAMES = tuple(f"unit {number}" for number in range(8))
"""Whose hashes begin at other places: units whose choice changes most are among them."""

Records = tuple[tuple[str, int], ...]
"""Unit and cell of each."""


@functools.cache
def hides(at: int, records: Records, rows: int, neighbours: Neighbours, measure: Any) -> Hidden:
    """What production hides of one of the batches, at a price of one for a unit."""
    price = Price(Fraction(1), measure).of_record(rows)
    kind = Statistics((CELLS,), (Fraction(1),), price, neighbours)
    plan = kind.plan(kind.init(), BATCHES[at])
    query = UnitCharging(UnitBound("u", rows)).bounded(plan.query, BATCHES[at])
    columns: dict[str, Any] = {"u": [u for u, _ in records], "x": [x for _, x in records]}
    return hidden(kind, plan, MemoryBackend(columns).answer(query, BATCHES[at]))


def of_unit(name: str, rows: int, first: int = 0) -> Iterator[tuple[Records, Records]]:
    """A unit with one record more than may count, or two, and without some record of them."""
    for size in (rows + 1, rows + 2):
        whole = tuple((name, first + cell) for cell in range(size))
        for place in range(size):
            yield whole, whole[:place] + whole[place + 1 :]


def worst(at: int, rows: int, neighbours: Neighbours, measure: Any) -> Fraction:
    """Largest loss by one record more of a unit in one batch."""
    return max(
        loss_between(
            measure, *(hides(at, each, rows, neighbours, measure) for each in (having, without))
        )
        for name in NAMES
        for having, without in of_unit(name, rows)
    )


def worst_of_two_units(rows: int, neighbours: Neighbours, measure: Any) -> Fraction:
    """Largest loss by a record that one unit has in place of another; their cells are their own."""
    found = Fraction(0)
    for name, other in zip(NAMES, NAMES[::-1], strict=True):
        for mine, less in of_unit(name, rows):
            for more, theirs in of_unit(other, rows, 4):
                pair = (mine + theirs, less + more)
                shown = (hides(0, each, rows, neighbours, measure) for each in pair)
                found = max(found, loss_between(measure, *shown))
    return found


def said(rows: int, neighbours: Neighbours, measure: Any) -> tuple[Fraction, ...]:
    """What a statement says of streams, where a batch may lose one."""
    unit = str(Unit(name="person", column="u", rows=rows))
    caps = Caps(NANO, 100 * NANO, measure=measure)
    told = _differences({"unit": unit, "neighbours": neighbours}, caps)
    return tuple(Fraction(each[f"{measure}_at_most"]) for each in told)


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_record_of_a_unit_loses_what_a_statement_says(
    rows: int, neighbours: Neighbours, measure: Any
) -> None:
    """One more, one that changes its unit, one that changes its batch; all of epsilon is lost."""
    _, replaced, of_another, moved = said(rows, neighbours, measure)
    first, second = (worst(at, rows, neighbours, measure) for at in (0, 1))
    two = worst_of_two_units(rows, neighbours, measure)
    assert first <= replaced
    assert two <= of_another
    assert first + second <= moved
    if measure == "epsilon":
        assert (first, two, first + second) == (replaced, of_another, moved)
