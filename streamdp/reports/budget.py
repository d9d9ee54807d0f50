"""What was spent and what is left of every budget, for commands and pages alike."""

from __future__ import annotations

from dataclasses import dataclass

from sqlite_utils import Database

from streamdp.config import Configuration
from streamdp.config.checks.gates import gates_of, price_of_gates
from streamdp.privacy.amounts import exact, nano_up
from streamdp.privacy.filters import Item
from streamdp.store.ledger.cap_usage import Room, rooms
from streamdp.store.reading.reports import ScopeReport, last_rho, scope_reports


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one source; amounts in nano units.

    Args:
        report: What the ledger has booked.
        worst_nano: The most that one record has lost.
        fits_next_nano: The largest epsilon that the next batch has room for.
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
        """What the lifetime cap has left."""
        return max(self.report.lifetime_cap_nano - self.report.lifetime_spent_nano, 0)


def budgets(configuration: Configuration, database: Database) -> list[Budget]:
    """Every budget that the ledger knows."""
    return [_budget(configuration, database, each) for each in scope_reports(database)]


def _budget(configuration: Configuration, database: Database, report: ScopeReport) -> Budget:
    """A record of a growing source is in all batches from its own on."""
    price = _price(configuration, database, report.scope)
    found = rooms(database, report.scope, price)
    source = configuration.sources.get(report.scope)
    growing = source is not None and source.is_growing()
    left = max(report.lifetime_cap_nano - report.lifetime_spent_nano, 0)
    return Budget(
        report=report,
        worst_nano=report.lifetime_spent_nano if growing else report.worst_batch_nano,
        fits_next_nano=min(room.left_nano for room in found if room.limit.measure == "epsilon"),
        batches_left=left // price.epsilon_nano if price.epsilon_nano else None,
        windows=found[2:],
    )


def _price(configuration: Configuration, database: Database, scope: str) -> Item:
    """What all releases of a batch cost; in rho as they last did."""
    jobs = {name: job for name, job in configuration.releases.items() if job.source == scope}
    epsilon = sum(nano_up(exact(job.epsilon)) for job in jobs.values())
    epsilon += price_of_gates(configuration, scope)
    names = [*jobs, *gates_of(configuration, scope)]
    return Item(0, epsilon, sum(last_rho(database, name) for name in names))
