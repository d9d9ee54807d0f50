"""Custom tests of gates where neighbours differ in several records: scores move by one."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamdp.errors import ConfigurationError
from streamdp.gates.configured import thresholding_gate
from streamdp.gates.run import ThresholdingGate
from streamdp.gates.section import Gate
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Terms
from streamdp.types import CellCounts, Grid, Json, Neighbours, Past, UnitBound
from tests.privacy.gates.cases import neighbour

EPSILON, DELTA = Fraction(1, 20), Fraction(1, 1000)
"""Of one run of a test, for one record."""


@dataclass(frozen=True)
class HowMany:
    """A score that one record moves by one."""

    def describe(self) -> Json:
        return {"kind": "how many"}

    def test(self, past: Past, statistic: CellCounts) -> Fraction:
        return Fraction(int(statistic.counts.sum()))


@dataclass(frozen=True)
class Point:
    name: str = "how many"

    def load(self) -> Callable[[Grid, Fraction], HowMany]:
        return lambda grid, epsilon: HowMany()


def gate(
    monkeypatch: pytest.MonkeyPatch, rows: int, neighbours: Neighbours, delta: Fraction = DELTA
) -> ThresholdingGate:
    """A gate that stands alone, over units of so many records."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Point()])
    section: dict[str, Any] = {
        "test": {"kind": "custom", "name": "how many", "delta": str(delta), "sampled": False},
        "epsilon": 4,
        "test_epsilon": str(EPSILON),
        "horizon": 5,
        "success": "9/10",
        "source": "s",
        "column": "x",
        "resolution": 1,
        "bounds": [0, 9],
        "sinks": ["pager"],
    }
    bound = UnitBound("u", rows)
    made = Gate.model_validate(section)
    return thresholding_gate("g", made, None, None, "duckdb", bound, neighbours)


def steps(chance: float, records: int, up: bool) -> float:
    """A chance that so many records have moved as far as one after the other may."""
    for _ in range(records):
        chance = neighbour(chance, Terms(EPSILON, DELTA), up)
    return chance


def pairs(records: int) -> Iterator[tuple[float, float]]:
    """Chances of neighbours, the smallest ones too."""
    for chance in (0.0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0):
        for up in (False, True):
            yield chance, steps(chance, records, up)


@pytest.mark.parametrize(
    ("rows", "neighbours"), [(1, "substitute"), (3, "add-remove"), (2, "substitute")]
)
def test_records_of_a_unit_move_the_score_of_a_procedure_by_one_at_most(
    monkeypatch: pytest.MonkeyPatch, rows: int, neighbours: Neighbours
) -> None:
    """And by nearly one: the records move the chance by their own epsilon and delta each."""
    (terms,) = gate(monkeypatch, rows, neighbours).terms_of_tests
    records = rows * (2 if neighbours == "substitute" else 1)
    moved = [
        abs(terms.score(Chance(one, 1.0 - one)) - terms.score(Chance(other, 1.0 - other)))
        for one, other in pairs(records)
    ]
    assert 0.9 <= max(moved) <= 1.0 + 1e-9


def test_records_of_a_unit_move_a_score_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package counts records, whoever they are of."""
    question = gate(monkeypatch, 4, "add-remove").question
    few, more = (
        question.test(Past(0, ()), CellCounts(np.array([1]), np.array([count])))
        for count in (10, 14)
    )
    assert (few, more) == (Fraction(10, 4), Fraction(14, 4))


def test_a_delta_that_a_unit_outgrows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four records of a delta of a third are no private procedure."""
    with pytest.raises(ConfigurationError, match="delta of a test, times the 4 records"):
        gate(monkeypatch, 4, "add-remove", Fraction(1, 3))
