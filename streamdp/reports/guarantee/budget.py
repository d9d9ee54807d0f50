"""Spent and remaining budget of every source, for commands and pages alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.filters import Item
from streamdp.reports.guarantee.outlook import (
    BatchClock,
    Lasts,
    WhatIf,
    at_pace,
    cap_of,
    clock,
    lasts,
    prices_of_batch,
    sum_of,
)
from streamdp.store.ledger.cap_usage import Room, rooms
from streamdp.store.reading.reports import ScopeReport, Taken, scope_reports, taken_by
from streamdp.types import Json


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one source; amounts in nano units of the measure of its caps.

    Args:
        report: What the ledger has booked.
        worst_nano: The most that one record has lost.
        rooms: Every cap: that over the lifetime, that of a batch, and those over windows.
        clock: Where its batches lie.
        now: For how long it lasts at the prices of the configuration.
        pace: For how long it lasts if batches cost what the last ones did; None if they cost
            nothing.
        takers: What each job and gate takes: its price for a batch, if it is configured, and what
            it was charged.
    """

    report: ScopeReport
    worst_nano: int
    rooms: tuple[Room, ...]
    clock: BatchClock
    now: Lasts
    pace: Lasts | None
    takers: tuple[tuple[str, Item | None, Taken], ...]

    @property
    def left_nano(self) -> int:
        """Remaining budget under the lifetime cap."""
        return max(self.report.lifetime_cap_nano - self.report.lifetime_spent_nano, 0)

    @property
    def fits_next_nano(self) -> int:
        """The largest price that the next batch has room for."""
        measure = self.report.measure
        return min(room.left_nano for room in self.rooms if room.limit.measure == measure)

    @property
    def batches_left(self) -> int | None:
        """How many more batches the lifetime caps have room for; None at no price."""
        return self.now.batches

    @property
    def windows(self) -> tuple[Room, ...]:
        """Caps over windows, and those of delta."""
        return self.rooms[2:]


def budgets(
    configuration: Configuration, database: Database, scope: str | None = None
) -> list[Budget]:
    """Every budget that the ledger knows, or that of one source."""
    return [_budget(configuration, database, each) for each in scope_reports(database, scope)]


def _budget(configuration: Configuration, database: Database, report: ScopeReport) -> Budget:
    """A record of a growing source is in all batches from its own on."""
    scope, measure = report.scope, report.measure
    prices = prices_of_batch(configuration, database, scope)
    price = sum_of(prices.values())
    found = rooms(database, scope, price)
    source = configuration.sources.get(scope)
    growing = source is not None and source.is_growing()
    every, end = (None, None) if source is None else (source.every(), source.end())
    at = clock(database, scope, measure, every, end)
    taken = taken_by(database, scope, measure)
    names = dict.fromkeys((*prices, *taken))
    return Budget(
        report=report,
        worst_nano=report.lifetime_spent_nano if growing else report.worst_batch_nano,
        rooms=found,
        clock=at,
        now=lasts(price, found, at, measure, report.lifetime_cap_nano),
        pace=at_pace(max(report.lifetime_cap_nano - report.lifetime_spent_nano, 0), at),
        takers=tuple((name, prices.get(name), taken.get(name, Taken(0, 0))) for name in names),
    )


def budgets_if(
    configuration: Configuration, database: Database, found: Sequence[Budget], other: WhatIf
) -> dict[str, Lasts]:
    """Return how long each budget that is asked about would last, by its source.

    Args:
        configuration: With the prices in force.
        database: The store.
        found: The budgets.
        other: Other prices, or other caps over the lifetime.
    """
    then = {}
    for each in found:
        report = each.report
        if other.is_about(configuration, report.scope):
            price = sum_of(prices_of_batch(configuration, database, report.scope, other).values())
            cap = cap_of(other, report.scope, report.lifetime_cap_nano)
            then[report.scope] = lasts(price, each.rooms, each.clock, report.measure, cap)
    return then


Amounts = Callable[[int], Json]
"""How an amount in nano units is written as JSON."""

Moments = Callable[[int | None], Json]
"""How the place of a batch is written as JSON."""


def ends_of(budget: Budget, moment: Moments) -> dict[str, Json]:
    """Return how long a budget lasts at the configuration's prices and at its pace, as JSON."""
    pace = budget.pace
    return {
        "batches_left": budget.batches_left,
        "until": moment(budget.now.until),
        "batches_left_at_pace": None if pace is None else pace.batches,
        "until_at_pace": None if pace is None else moment(pace.until),
    }


def jobs_of(budget: Budget, amount: Amounts) -> list[dict[str, Json]]:
    """What each job and gate takes, as JSON: its price for a batch, its charges, their number."""
    measure = budget.report.measure
    return [
        {
            "job": name,
            "price": None if price is None else amount(price.amount(measure)),
            "spent": amount(taken.nano),
            "charges": taken.charges,
        }
        for name, price, taken in budget.takers
    ]


def then_of(budget: Budget, then: Lasts, amount: Amounts, moment: Moments) -> dict[str, Json]:
    """Return how long a budget would last at other prices, as JSON."""
    price = then.price
    return {
        "price_of_batch": amount(0 if price is None else price.amount(budget.report.measure)),
        "batches_left": then.batches,
        "until": moment(then.until),
        "refused_by": list(then.refused_by),
    }
