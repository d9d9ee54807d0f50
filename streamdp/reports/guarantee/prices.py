"""Price of the next release of a job, or run of a gate, in both measures."""

from __future__ import annotations

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.amounts import nano_up
from streamdp.privacy.filters import Item
from streamdp.store.reading.reports import last_rho


def price_of_release(configuration: Configuration, database: Database, job: str) -> Item:
    """Price of one release; for one in epsilon, rho is the last release's (0 before the first)."""
    return configuration.releases[job].price.item(last_rho(database, job))


def price_of_run(configuration: Configuration, database: Database, gate: str) -> Item:
    """Price of a run that is still to be armed."""
    epsilon = configuration.all_gates()[gate].epsilon
    return Item(0, nano_up(epsilon), last_rho(database, gate))
