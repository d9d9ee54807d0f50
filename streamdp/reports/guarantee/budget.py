"""Spent and remaining budget of every source, for commands and pages alike."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.reports.guarantee.prices import price_of_batch
from streamdp.store.ledger.cap_usage import Room, rooms
from streamdp.store.reading.reports import ScopeReport, scope_reports


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one source; amounts in nano units of the measure of its caps.

    Args:
        report: What the ledger has booked.
        worst_nano: The most that one record has lost.
        fits_next_nano: The largest price that the next batch has room for.
        batches_left: How many more batches the lifetime cap has room for; None at no price.
        windows: Caps over windows.
    """

    report: ScopeReport
    worst_nano: int
    fits_next_nano: int
    batches_left: int | None
    windows: tuple[Room, ...]

    @property
    def left_nano(self) -> int:
        """Remaining budget under the lifetime cap."""
        return max(self.report.lifetime_cap_nano - self.report.lifetime_spent_nano, 0)


def budgets(configuration: Configuration, database: Database) -> list[Budget]:
    """Every budget that the ledger knows."""
    return [_budget(configuration, database, each) for each in scope_reports(database)]


def _budget(configuration: Configuration, database: Database, report: ScopeReport) -> Budget:
    """A record of a growing source is in all batches from its own on."""
    price = price_of_batch(configuration, database, report.scope)
    found = rooms(database, report.scope, price)
    source = configuration.sources.get(report.scope)
    growing = source is not None and source.is_growing()
    lasts = [
        room.left_nano // each
        for room in found
        if room.limit.lifetime and room.limit.measure in (report.measure, "delta")
        if (each := price.amount(room.limit.measure))
    ]
    return Budget(
        report=report,
        worst_nano=report.lifetime_spent_nano if growing else report.worst_batch_nano,
        fits_next_nano=min(
            room.left_nano for room in found if room.limit.measure == report.measure
        ),
        batches_left=min(lasts, default=None),
        windows=found[2:],
    )
