"""Price of the next release of a job, or run of a gate, and what the lifetime cap has left."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.filters import Item, Measure
from streamdp.store.ledger.chain import spent_of
from streamdp.store.ledger.ledger import caps_of, declaration_of
from streamdp.store.reading.reports import last_rho


@dataclass(frozen=True, slots=True)
class Purse:
    """Spent part of a source's caps over the lifetime, in units of their measures."""

    source: str
    measure: Measure
    spent_nano: int
    cap_nano: int
    spent_delta_atto: int = 0
    cap_delta_atto: int = 0

    def lasts(self, price: Item) -> int | None:
        """Return for how many more charges there is room; None where they cost nothing."""
        left = (
            (self.cap_nano - self.spent_nano, price.amount(self.measure)),
            (self.cap_delta_atto - self.spent_delta_atto, price.delta_atto),
        )
        return min((max(room, 0) // each for room, each in left if each), default=None)


def price_of_release(configuration: Configuration, database: Database, job: str) -> Item:
    """Price of one release; for one in epsilon, rho is the last release's (0 before the first)."""
    return configuration.releases[job].price.item(last_rho(database, job))


def price_of_run(configuration: Configuration, database: Database, gate: str) -> Item:
    """Price of a run that is still to be armed."""
    epsilon = configuration.all_gates()[gate].epsilon
    return Item(0, nano_up(epsilon), last_rho(database, gate))


def purse_of(database: Database, source: str) -> Purse | None:
    """Spent part of a source's caps over the lifetime; None where the ledger does not know it."""
    if declaration_of(database, source) is None:
        return None
    caps = caps_of(database, source)
    spent = spent_of(database, source, caps.measure)
    most = min(limit.nano for limit in caps.deltas if limit.lifetime)
    delta = spent_of(database, source, "delta")
    return Purse(source, caps.measure, spent, caps.lifetime_nano, delta, most)
