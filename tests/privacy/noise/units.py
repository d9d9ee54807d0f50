"""Numbers of units: their largest loss over tiny batches of units that have several records.

As `statistics`, but a neighbour has another unit, or other records of one, and what is charged is
the charge of production, with its bound on the records of a unit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.statistics.kind import Statistics
from streamdp.kinds.statistics.measures.counts import Count
from streamdp.kinds.statistics.measures.protocol import Allowance, Measure
from streamdp.kinds.statistics.measures.units import Units, UnitSizes
from streamdp.privacy.events import epsilon_of, rho_of
from streamdp.privacy.price import Price
from streamdp.types import Batch, Neighbours, Query, UnitBound, with_bound
from tests.contract.memory.engine import MemoryBackend
from tests.privacy.noise.statistics import BATCH, CONCENTRATED, PURE, Hidden, hidden, loss_between

LISTED, OTHERS = ("g", "h", "i"), ("none", None)
MOST = 4
"""Records of the unit that differs."""

BESIDE: tuple[tuple[tuple[str | None, Any], ...], ...] = (
    (),
    (("b", "g"), ("b", "g"), ("b", "h"), (None, "g")),
)
"""Records of others, and of nobody."""


@dataclass(frozen=True)
class Case:
    """Measures of units, and perhaps of records beside.

    Args:
        name: Of what is measured.
        neighbours: Relation of one unit.
        rows: The most records, or groups, of a unit that count.
        grouped: Whether it is released of three public groups.
        price: Of the release, for a unit.
    """

    name: str
    neighbours: Neighbours = "add-remove"
    rows: int = 1
    grouped: bool = False
    price: Price = PURE

    def __str__(self) -> str:
        groups = " of groups" if self.grouped else ""
        return f"{self.name}{groups}, rows {self.rows}, {self.price.measure}"

    def kind(self) -> Statistics:
        """The production kind, the price shared evenly."""
        units = Units("who", "person", self.rows, len(LISTED) if self.grouped else 1)
        sizes = UnitSizes("sizes", (2, 3), "person", self.rows)
        of_name: dict[str, tuple[Measure, ...]] = {
            "units": (units,),
            "records a unit": (sizes,),
            "units and records": (Count("records"), units),
        }
        measures = of_name[self.name]
        share = (Fraction(1, len(measures)),) * len(measures)
        by, groups = (("g",), tuple((g,) for g in LISTED)) if self.grouped else ((), ((),))
        price = self.price.of_record(self.rows)
        return Statistics(measures, share, price, self.neighbours, by=by, groups=groups)

    def largest_loss(self) -> float:
        """Over all neighbours, over what production charges."""
        charging = UnitCharging(UnitBound("u", self.rows))
        plan = self.kind().plan({}, BATCH)
        cost = epsilon_of if self.price.measure == "epsilon" else rho_of
        charge = cost(charging.charge(plan).event)
        assert charge is not None
        worst = Fraction(0)
        for beside in BESIDE:
            found = [self.hides((*beside, *mine)) for mine in _records(self.grouped)]
            pairs: Iterator[tuple[Hidden, Hidden]] = itertools.combinations(found, 2)
            if self.neighbours == "add-remove":
                pairs = ((found[0], each) for each in found[1:])
            worst = max([worst, *(loss_between(self.price.measure, *pair) for pair in pairs)])
        return float(worst / charge)

    def hides(self, records: Sequence[tuple[str | None, Any]]) -> Hidden:
        """What production hides of a batch of (unit, group)."""
        kind = self.kind()
        plan = kind.plan(kind.init(), BATCH)
        columns = {"u": [u for u, _ in records], "g": [g for _, g in records]}
        query = UnitCharging(UnitBound("u", self.rows)).bounded(plan.query, BATCH)
        return hidden(kind, plan, MemoryBackend(columns).answer(query, BATCH))


def _records(grouped: bool) -> Iterator[tuple[tuple[str, Any], ...]]:
    """All that one unit may have: first nothing."""
    for size in range(MOST + 1):
        places = (*LISTED, *OTHERS) if grouped else ("g",)
        for groups in itertools.combinations_with_replacement(places, size):
            yield tuple(("a", group) for group in groups)


_PURE = (
    Case("units"),
    Case("units", rows=3),
    Case("units", "substitute", rows=2),
    Case("units", grouped=True),
    Case("units", grouped=True, rows=2),
    Case("units", grouped=True, rows=5),
    Case("records a unit", rows=2),
    Case("records a unit", "substitute", rows=3),
    Case("units and records", rows=2),
    Case("units and records", rows=2, grouped=True),
)

CASES = (*_PURE, *(replace(case, price=CONCENTRATED) for case in _PURE))


@dataclass(frozen=True)
class Mutant:
    """A mistake in production, and a case that shows it."""

    name: str
    case: Case
    made: Callable[[], AbstractContextManager[Any]]

    def loss(self) -> float:
        """Largest loss over the charge, with the mistake."""
        with self.made():
            return self.case.largest_loss()


def _as_added(
    self: Allowance, added: int, exchanged: int, share: Fraction = Fraction(1), entries: int = 1
) -> Any:
    return _noise(self, added, added, share)


_noise = Allowance.noise


def _unbounded(self: UnitCharging, query: Query, batch: Batch) -> Query:
    return with_bound(query, UnitBound("u", 1000))


def _one_group() -> Any:
    return patch.object(Units, "most", property(lambda self: 1))


MUTANTS = (
    Mutant("a unit priced as in one group", Case("units", grouped=True, rows=2), _one_group),
    Mutant(
        "a unit priced as in one group, in rho",
        Case("units", grouped=True, rows=2, price=CONCENTRATED),
        _one_group,
    ),
    Mutant(
        "a unit that counts in all of its groups",
        Case("units", grouped=True, rows=2),
        lambda: patch.object(UnitCharging, "bounded", _unbounded),
    ),
    Mutant(
        "units that are not charged",
        Case("units and records", rows=2),
        lambda: patch.object(Statistics, "_counts_units", lambda self: False),
    ),
    Mutant(
        "exchanged records priced as a unit more",
        Case("records a unit", "substitute", rows=2),
        lambda: patch.object(Allowance, "noise", _as_added),
    ),
)
